//! pping's chores: `cargo xtask CHORE`. What takes long to compile is in crates of their own beside this one.
//!
//! Chores print their progress to standard error. Standard output is for results, and for the program that a chore
//! starts.

mod everything;
mod fuzz;
mod run;
mod test;

use std::{env, ffi::OsString, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use pping_chores::{
    build::{self, Profile},
    chore::{self, Chore},
    command, environment,
    setup::{self, Report, Scope},
};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some((chore, its)) = elsewhere(&arguments) {
        // A signal for this process is for the chore: a soak that is interrupted cleans up.
        let replaced = command::replace_process(&mut chore.command(its));
        return chore::exit_code(replaced.map(|never| match never {}));
    }
    let listed = chore::ALL.iter().map(|chore| Command::new(chore.name).about(chore.help));
    let given = chore::command_line().subcommands(here()).subcommands(listed).get_matches();
    chore::exit_code(environment::complete_path().and_then(|()| perform(&given)))
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

/// Returns the chores that are compiled with this program. No macro derives them: compiling the macro would take longer
/// than compiling this program.
fn here() -> [Command; 6] {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    let passed_on = |what: &'static str, help: &'static str| {
        let arguments = Arg::new(ARGUMENTS).value_name(what).help(help);
        arguments.last(true).num_args(1..).action(ArgAction::Append).value_parser(value_parser!(OsString))
    };
    [
        Command::new("setup")
            .about("Install what building pping needs, or say what is missing")
            .arg(flag("tests", "Also what the tests need"))
            .arg(flag("lints", "Also what `lint` needs")),
        Command::new("build")
            .about("Build the kernel programs and the agent")
            .arg(flag("release", "Optimised, as it is meant to run")),
        Command::new("run")
            .about("Set up, build and start pping: `cargo xtask run -- -i eth0 --rate-limit 100ms`")
            .arg(flag("release", "Optimised, as it is meant to run for long"))
            .arg(passed_on("PPING ARGUMENTS", "Arguments for pping")),
        Command::new("test")
            .about("Set up, build and run all tests (as root: they make network namespaces)")
            .arg(
                Arg::new("filter")
                    .value_name("FILTER")
                    .help("Only the tests whose names contain this")
                    .value_parser(value_parser!(OsString)),
            )
            .arg(passed_on("TEST ARGUMENTS", "Arguments for the test programs: `-- --nocapture`")),
        Command::new("fuzz")
            .about("Look for input that breaks what must hold: any bytes, packets and captures")
            .arg(
                Arg::new("target")
                    .value_name("TARGET")
                    .help("Fuzz only this target")
                    .value_parser(value_parser!(fuzz::Target)),
            )
            .arg(
                Arg::new("seconds")
                    .long("seconds")
                    .value_name("SECONDS")
                    .help("Seconds for each target")
                    .default_value("10")
                    .value_parser(value_parser!(u32)),
            )
            .arg(
                Arg::new("runs")
                    .long("runs")
                    .value_name("RUNS")
                    .help("Run this many inputs instead, the same every time")
                    .conflicts_with("seconds")
                    .value_parser(value_parser!(u32)),
            ),
        Command::new("everything")
            .about("Run the slow checks of a release: some hours, with nothing else running (as root)")
            .arg(Arg::new("from").long("from").value_name("PART").help("Resume from this part")),
    ]
}

/// Names the arguments that are passed on to another program.
const ARGUMENTS: &str = "arguments";

fn perform(given: &ArgMatches) -> Result<()> {
    match given.subcommand() {
        Some(("setup", given)) => {
            setup::run(Scope { tests: given.get_flag("tests"), lints: given.get_flag("lints") }, Report::All)
        }
        Some(("build", given)) => build::run(Profile::from_release(given.get_flag("release"))).map(drop),
        Some(("run", given)) => {
            let profile = if given.get_flag("release") { Profile::Release } else { Profile::Quick };
            run::run(profile, &passed_on(given))
        }
        Some(("test", given)) => {
            let filter = given.get_one::<OsString>("filter").map(OsString::as_os_str);
            test::run(filter, &passed_on(given), test::Extent::Ci)
        }
        Some(("fuzz", given)) => {
            let seconds = fuzz::Extent::Seconds(*given.get_one("seconds").unwrap_or(&10));
            let extent = given.get_one("runs").map_or(seconds, |runs| fuzz::Extent::Runs(*runs));
            fuzz::run(given.get_one("target").copied(), extent)
        }
        Some(("everything", given)) => everything::run(given.get_one::<String>("from").map(String::as_str)),
        chore => bail!("there is no such chore: {chore:?}"),
    }
}

fn passed_on(given: &ArgMatches) -> Vec<OsString> {
    given.get_many(ARGUMENTS).into_iter().flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        chore::command_line().subcommands(here()).debug_assert();
    }

    #[test]
    fn a_chore_of_another_crate_gets_its_arguments() {
        let called = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            let (chore, its) = elsewhere(&arguments)?;
            Some((chore.name, its))
        };
        assert_eq!(called(&["soak", "--for", "3m"]), Some(("soak", vec!["--for".into(), "3m".into()])));
        assert_eq!(called(&["help", "vm"]), Some(("vm", vec!["--help".into()])));
        assert_eq!(called(&["test", "soak"]), None);
        assert_eq!(called(&[]), None);
    }
}
