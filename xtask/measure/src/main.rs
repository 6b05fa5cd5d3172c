//! The program of `cargo xtask bench` and `cargo xtask instructions`.

mod bench;
mod instructions;

use std::process::ExitCode;

use pping_chores::chore::{self, BENCH, INSTRUCTIONS};

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = BENCH.help)]
    Bench(bench::Arguments),
    #[command(about = INSTRUCTIONS.help)]
    Instructions {
        /// Write them down there
        #[arg(long)]
        write: bool,
    },
}

fn main() -> ExitCode {
    chore::main(|chore| match chore {
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Instructions { write } => instructions::run(write),
    })
}
