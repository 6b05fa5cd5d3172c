//! pping's chores, one file each: `cargo xtask CHORE`.
//!
//! Chores print their progress to standard error. Standard output is for results, and for the program that a chore
//! starts.

mod archive;
mod bench;
mod cross;
mod demo;
mod dist;
mod everything;
mod fuzz;
mod instructions;
mod lint;
mod modules;
mod run;
mod screens;
mod soak;
mod test;
mod vm;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use pping_chores::{build, duration, environment, setup};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "pping's chores")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what building pping needs, or say what is missing
    Setup {
        /// Also what the tests need
        #[arg(long)]
        tests: bool,
        /// Also what `lint` needs
        #[arg(long)]
        lints: bool,
    },
    /// Build the kernel programs and the agent
    Build {
        /// Optimised, as it is meant to run
        #[arg(long)]
        release: bool,
    },
    /// Set up, build and start pping: `cargo xtask run -- -i eth0 --rate-limit 100ms`
    Run {
        /// Start an unoptimised build
        #[arg(long)]
        debug: bool,
        /// Arguments for pping
        #[arg(last = true, value_name = "PPING ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Set up, build and run all tests (as root: they make network namespaces)
    Test {
        /// Only the tests whose names contain this
        filter: Option<OsString>,
        /// Arguments for the test programs: `-- --nocapture`
        #[arg(last = true, value_name = "TEST ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Look for input that breaks what must hold: any bytes, packets and captures
    Fuzz {
        /// Fuzz only this target
        target: Option<fuzz::Target>,
        /// Seconds for each target
        #[arg(long, default_value_t = 10)]
        seconds: u32,
        /// Run this many inputs instead, the same every time
        #[arg(long, conflicts_with = "seconds")]
        runs: Option<u32>,
    },
    /// Check formatting, spelling, links and circles of modules, and run clippy for both sides
    Lint,
    /// Run the slow checks of a release: some hours, with nothing else running (as root)
    Everything {
        /// Resume from this part
        #[arg(long, value_name = "PART")]
        from: Option<String>,
    },
    /// Print which module uses which, and fail if some use each other in a circle
    Modules {
        /// File by file, in place of top-level modules
        #[arg(long)]
        files: bool,
    },
    /// Watch pping at work: a client and a server 20 ms apart, and pping on the router between them
    Demo,
    /// Make the pictures of docs/images, of real traffic (as root)
    Pictures {
        /// Traffic before the pictures are taken
        #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = duration::parse)]
        length: std::time::Duration,
        /// Use this pping binary
        #[arg(long, value_name = "FILE")]
        pping: Option<PathBuf>,
    },
    /// Have `pping top`, the page and a stream open for long, and fail if memory grows or an update is late (as root)
    Watched {
        /// For how long: `90s`, `5m`, `2h`
        #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration::parse)]
        length: std::time::Duration,
        /// Use this pping binary
        #[arg(long, value_name = "FILE")]
        pping: Option<PathBuf>,
    },
    /// Make a release in target/dist: Debian packages, static archives, a container image, bills of materials, checksums
    Dist(dist::Arguments),
    /// Have interfaces come and go, reloads, scrapes and crashes for long, and count every packet
    Soak {
        /// For how long: `90s`, `5m`, `1h`
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
        length: std::time::Duration,
        /// Soak an unoptimised build
        #[arg(long)]
        debug: bool,
        /// Use this pping binary
        #[arg(long, value_name = "FILE", conflicts_with = "debug")]
        pping: Option<PathBuf>,
    },
    /// Run the tests of pping/tests/vm on other kernels, each in a virtual machine
    Vm(vm::Arguments),
    /// Measure what pping costs
    Bench(bench::Arguments),
    /// Count the instructions of what is done for each packet in user space, and compare with docs/lab/performance.md
    Instructions {
        /// Write them down there
        #[arg(long)]
        write: bool,
    },
}

fn main() -> ExitCode {
    match perform(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(chore: Chore) -> anyhow::Result<()> {
    environment::complete_path()?;
    match chore {
        Chore::Setup { tests, lints } => setup::run(setup::Scope { tests, lints }, setup::Report::All),
        Chore::Build { release } => build::run(build::Profile::from_release(release)).map(drop),
        Chore::Run { debug, arguments } => run::run(build::Profile::from_release(!debug), &arguments),
        Chore::Test { filter, arguments } => test::run(filter.as_deref(), &arguments, test::Extent::Gate),
        Chore::Fuzz { target, seconds, runs } => {
            fuzz::run(target, runs.map_or(fuzz::Extent::Seconds(seconds), fuzz::Extent::Runs))
        }
        Chore::Lint => lint::run(),
        Chore::Everything { from } => everything::run(from.as_deref()),
        Chore::Modules { files } => modules::run(files),
        Chore::Pictures { length, pping } => {
            setup::run(setup::Scope { tests: true, ..Default::default() }, setup::Report::Changes)?;
            let pping = pping.map_or_else(|| build::run(build::Profile::Release), Ok)?;
            screens::take(&pping, length, &environment::repository().join("docs/images"))
        }
        Chore::Watched { length, pping } => {
            setup::run(setup::Scope { tests: true, ..Default::default() }, setup::Report::Changes)?;
            screens::watch(&pping.map_or_else(|| build::run(build::Profile::Release), Ok)?, length)
        }
        Chore::Demo => {
            setup::run(setup::Scope { tests: true, ..Default::default() }, setup::Report::Changes)?;
            demo::run(&build::run(build::Profile::Release)?)
        }
        Chore::Dist(arguments) => dist::run(arguments),
        Chore::Soak { length, debug, pping } => {
            setup::run(setup::Scope { tests: true, ..Default::default() }, setup::Report::Changes)?;
            let build = || build::run(build::Profile::from_release(!debug));
            soak::run(&pping.map_or_else(build, Ok)?, soak::Plan::new(length))
        }
        Chore::Vm(arguments) => vm::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Instructions { write } => instructions::run(write),
    }
}
