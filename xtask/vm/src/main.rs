//! The program of `cargo xtask vm`.

use std::process::ExitCode;

use pping_chores::chore::{self, VM};
use pping_vm::Arguments;

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = VM.help)]
    Vm(Arguments),
}

fn main() -> ExitCode {
    chore::main(|Chore::Vm(arguments)| pping_vm::run(&arguments))
}
