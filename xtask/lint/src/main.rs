//! `cargo xtask lint`: formatting, words and links, dependencies, pointers, cycles of modules, and clippy for user space and
//! kernel.

mod dependencies;
mod modules;
mod pages;
mod pointers;

use std::{env, process::ExitCode};

use anyhow::{Context as _, Result};
use pping_chores::{
    chore::{self, LINT, MODULES},
    command, environment,
    setup::{self, Report, Scope},
};
use pping_ebpf_build::{TARGET, Toolchain, rustc_flags};

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = LINT.help)]
    Lint,
    #[command(about = MODULES.help)]
    Modules {
        /// File by file, in place of top-level modules
        #[arg(long)]
        files: bool,
    },
}

fn main() -> ExitCode {
    chore::main(|chore| match chore {
        Chore::Lint => run(),
        Chore::Modules { files } => modules::run(files),
    })
}

const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];

/// Checks everything and stops at the first complaint.
fn run() -> Result<()> {
    setup::run(Scope { lints: true, ..Scope::default() }, Report::Changes)?;
    command::run(environment::cargo().args(["fmt", "--all", "--check"]))?;
    pages::check()?;
    dependencies::check()?;
    pointers::check()?;
    modules::run(false)?;
    // `--all-targets` leaves out the tests of virtual machines, since `cargo test` leaves them out.
    for targets in [&["--all-targets"][..], &["--test", "vm"]] {
        command::run(
            environment::cargo()
                .args(["clippy", "--workspace", "--exclude", "pping-ebpf"])
                .args(targets)
                .args(DENY_WARNINGS),
        )?;
    }
    // The pages of the library have no broken link.
    command::run(
        environment::cargo()
            .args(["doc", "--package", "pping-common", "--features", "std", "--no-deps"])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    // Nothing else here compiles the pping that only reads captures, and the one without any other feature.
    lint_small_build(&["--all-targets"])?;
    lint_small_build(&["--features", "live"])?;
    let toolchain = Toolchain::find().context("no Rust compiler for BPF found")?;
    lint_kernel_programs(toolchain)
}

/// Checks a build of pping with these features alone.
fn lint_small_build(arguments: &[&str]) -> Result<()> {
    command::run(
        environment::cargo()
            .args(["clippy", "--package", "pping", "--no-default-features"])
            .args(arguments)
            .args(DENY_WARNINGS),
    )
}

/// The variants of the kernel programs, and the processors they differ by.
const VARIANTS: [(&str, &str); 3] =
    [("fetch", env::consts::ARCH), ("add-only", "x86_64"), ("add-only", "aarch64")];

fn lint_kernel_programs(toolchain: Toolchain) -> Result<()> {
    VARIANTS.into_iter().try_for_each(|(feature, arch)| lint_variant(toolchain, feature, arch))
}

fn lint_variant(toolchain: Toolchain, feature: &str, arch: &str) -> Result<()> {
    // The same flags and a directory apart from the host's, as in the real build.
    let flags = rustc_flags(arch);
    command::run(
        toolchain
            .command("cargo")
            .current_dir(environment::repository())
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            .args(["clippy", "--package", "pping-ebpf", "--package", "pping-bench-programs"])
            .args(["--target", TARGET])
            .args(["--features", &format!("pping-ebpf/{feature},pping-bench-programs/kernel")])
            .arg("--target-dir")
            .arg(environment::target_directory().join("bpf").join(arch))
            .args(toolchain.cargo_arguments())
            .args(DENY_WARNINGS),
    )
}
