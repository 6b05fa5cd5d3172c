//! Chores that are crates of their own, which cargo compiles when they are called, so that nobody waits for others.

use std::{
    ffi::OsStr,
    process::{Command, ExitCode},
};

use anyhow::Result;
use clap::Subcommand;

use crate::{command, environment};

/// A chore in a crate of its own. The crate's program takes the name of the chore first, and then its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Chore {
    /// What follows `cargo xtask`.
    pub name: &'static str,
    /// The package of the crate.
    pub package: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
}

/// Shows pping at work.
pub const DEMO: Chore = Chore {
    name: "demo",
    package: "pping-demo",
    help: "Watch pping at work: a client and a server 20 ms apart, and pping on the router between them",
};

/// Checks sources and pages.
pub const LINT: Chore = Chore {
    name: "lint",
    package: "pping-lint",
    help: "Check formatting, spelling, links and cycles of modules, and run clippy for both sides",
};

/// Draws the graph of modules.
pub const MODULES: Chore = Chore {
    name: "modules",
    package: "pping-lint",
    help: "Print which module uses which, and fail if some use each other in a cycle",
};

/// Takes pictures of pping's screens.
pub const PICTURES: Chore = Chore {
    name: "pictures",
    package: "pping-screens",
    help: "Make the pictures of docs/images, of real traffic (as root)",
};

/// Keeps pping's screens open.
pub const WATCHED: Chore = Chore {
    name: "watched",
    package: "pping-screens",
    help: "Have `pping top`, the page and a stream open for long, and fail if memory grows or an update is late (as root)",
};

/// Makes a release.
pub const DIST: Chore = Chore {
    name: "dist",
    package: "pping-dist",
    help: "Make a release in target/dist: Debian packages, static archives, a container image, bills of materials, checksums",
};

/// Has pping run for long.
pub const SOAK: Chore = Chore {
    name: "soak",
    package: "pping-soak",
    help: "Have interfaces come and go, reloads, scrapes and crashes for long, and count every packet",
};

/// Boots other kernels.
pub const VM: Chore = Chore {
    name: "vm",
    package: "pping-vm",
    help: "Run the tests of pping/tests/vm on other kernels, each in a virtual machine",
};

/// Times what pping does.
pub const BENCH: Chore = Chore { name: "bench", package: "pping-measure", help: "Measure what pping costs" };

/// Counts instructions.
pub const INSTRUCTIONS: Chore = Chore {
    name: "instructions",
    package: "pping-measure",
    help: "Count the instructions of what is done for each packet in user space, and compare with docs/lab/performance.md",
};

/// All of them, in the order of the help.
pub const ALL: [Chore; 10] = [DEMO, LINT, MODULES, PICTURES, WATCHED, DIST, SOAK, VM, BENCH, INSTRUCTIONS];

impl Chore {
    /// Returns the command that compiles the chore, unless it is compiled, and runs it where the caller is.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut cargo = environment::cargo();
        // The arguments may name files from there.
        cargo.current_dir(".").args(["run", "--quiet", "--manifest-path"]);
        cargo.arg(environment::repository().join("Cargo.toml")).args([
            "--package",
            self.package,
            "--",
            self.name,
        ]);
        cargo.args(arguments);
        cargo
    }

    /// Runs the chore as a part of another one.
    pub fn run(&self, arguments: &[&str]) -> Result<()> {
        command::run(&mut self.command(arguments))
    }
}

/// Returns a command line without chores yet.
pub fn command_line() -> clap::Command {
    let line = clap::Command::new("cargo xtask").bin_name("cargo xtask").about("pping's chores");
    line.subcommand_required(true).arg_required_else_help(true)
}

/// Is the `main` of a crate with chores: reads the command line, and performs the chore that it names.
pub fn main<C: Subcommand>(perform: impl FnOnce(C) -> Result<()>) -> ExitCode {
    let given = C::augment_subcommands(command_line()).get_matches();
    let chore = C::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    exit_code(environment::complete_path().and_then(|()| perform(chore)))
}

/// Prints the error, if there is one.
pub fn exit_code(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
