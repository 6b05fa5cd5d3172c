//! pping's chores: `cargo xtask CHORE`. What takes long to compile is in crates of their own beside this one.
//!
//! Chores print their progress to standard error. Standard output is for results, and for the program that a chore
//! starts.

mod everything;
mod fuzz;
mod run;
mod test;

use std::{env, ffi::OsString, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pping_chores::{
    build,
    chore::{self, Chore},
    command, environment, setup,
};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "pping's chores")]
struct Arguments {
    #[command(subcommand)]
    chore: Here,
}

/// The chores that are compiled with this program.
#[derive(Subcommand)]
enum Here {
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
    /// Run the slow checks of a release: some hours, with nothing else running (as root)
    Everything {
        /// Resume from this part
        #[arg(long, value_name = "PART")]
        from: Option<String>,
    },
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some((chore, its)) = elsewhere(&arguments) {
        // A signal for this process is for the chore: a soak that is interrupted cleans up.
        let replaced = command::replace_process(&mut chore.command(its));
        return chore::exit_code(replaced.map(|never| match never {}));
    }
    let listed = chore::ALL.iter().map(|chore| clap::Command::new(chore.name).about(chore.help));
    let matches = Arguments::command().subcommands(listed).get_matches();
    match Arguments::from_arg_matches(&matches) {
        Ok(Arguments { chore }) => chore::exit_code(perform(chore)),
        Err(error) => error.exit(),
    }
}

/// Returns the chore that the arguments call, if it is in a crate of its own, and the arguments for it.
fn elsewhere(arguments: &[OsString]) -> Option<(&'static Chore, Vec<OsString>)> {
    let named = |name: &OsString| chore::ALL.iter().find(|chore| name == chore.name);
    match arguments {
        [help, name] if help == "help" => Some((named(name)?, vec!["--help".into()])),
        [name, rest @ ..] => Some((named(name)?, rest.to_vec())),
        [] => None,
    }
}

fn perform(chore: Here) -> anyhow::Result<()> {
    environment::complete_path()?;
    match chore {
        Here::Setup { tests, lints } => setup::run(setup::Scope { tests, lints }, setup::Report::All),
        Here::Build { release } => build::run(build::Profile::from_release(release)).map(drop),
        Here::Run { debug, arguments } => run::run(build::Profile::from_release(!debug), &arguments),
        Here::Test { filter, arguments } => test::run(filter.as_deref(), &arguments, test::Extent::Gate),
        Here::Fuzz { target, seconds, runs } => {
            fuzz::run(target, runs.map_or(fuzz::Extent::Seconds(seconds), fuzz::Extent::Runs))
        }
        Here::Everything { from } => everything::run(from.as_deref()),
    }
}
