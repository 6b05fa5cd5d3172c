//! The commands of pping: measure, show and check its configuration, clean up, and write its documentation.

use std::{
    env,
    io::{self, Write as _},
    path::Path,
};

use clap::{ArgMatches, FromArgMatches as _};
use tokio::signal::unix::{SignalKind, signal};

#[cfg(not(all(feature = "history", feature = "top")))]
use crate::features::Missing;
#[cfg(feature = "top")]
use crate::top;
use crate::{
    Error, Summary,
    cli::{Cli, Command, ConfigCommand},
    config::{self, Config, DEFAULT_FILE, Loaded, Loader, RemoteBy},
    generate, groups,
    groups::{Levels, Networks, PrefixRule},
    output, quality, replay, set_verbosity,
};
#[cfg(feature = "live")]
use crate::{agent, check, groups_command};
#[cfg(feature = "history")]
use crate::{history, report};

/// Performs the command of `matches`, the parsed command line of [`Cli`].
///
/// # Errors
/// If the command fails.
pub fn perform(matches: &ArgMatches) -> Result<(), Error> {
    let cli = Cli::from_arg_matches(matches).map_err(|error| config::Error::Arguments(error.to_string()))?;
    match cli.command {
        None => measure(loader(matches)),
        Some(Command::Config { command: ConfigCommand::Check { file } }) => {
            check_file(file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)))
        }
        Some(Command::Config { command: ConfigCommand::Show(_) }) => {
            let shown = matches.subcommand_matches("config").and_then(|it| it.subcommand_matches("show"));
            write(loader(shown.unwrap_or(matches)).show()?.as_bytes())
        }
        #[cfg(feature = "live")]
        Some(Command::Check(asked)) => {
            let typed = matches.subcommand_matches("check").unwrap_or(matches);
            let (report, verdict) = check::perform(&loader(typed), *asked)?;
            write(report.as_bytes())?;
            verdict
        }
        #[cfg(feature = "top")]
        Some(Command::Top(asked)) => {
            let typed = matches.subcommand_matches("top").unwrap_or(matches);
            top::look(typed, &loader(typed), *asked)
        }
        #[cfg(feature = "history")]
        Some(Command::History(asked)) => write(history::perform(*asked)?.as_bytes()),
        #[cfg(feature = "history")]
        Some(Command::Report(asked)) => write(report::perform(&asked)?.as_bytes()),
        #[cfg(feature = "live")]
        Some(Command::Groups(asked)) => Ok(groups_command::perform(*asked)?),
        #[cfg(feature = "live")]
        Some(Command::Unpin { directory }) => agent::unpin(&directory),
        #[cfg(feature = "live")]
        Some(Command::Cleanup { interfaces }) => cleanup(&interfaces),
        #[cfg(not(feature = "live"))]
        Some(Command::Check(_)) => Err(Missing::command("pping check", "live").into()),
        #[cfg(not(feature = "live"))]
        Some(Command::Groups { .. }) => Err(Missing::command("pping groups", "live").into()),
        #[cfg(not(feature = "live"))]
        Some(Command::Unpin { .. }) => Err(Missing::command("pping unpin", "live").into()),
        #[cfg(not(feature = "live"))]
        Some(Command::Cleanup { .. }) => Err(Missing::command("pping cleanup", "live").into()),
        #[cfg(not(feature = "history"))]
        Some(Command::History { .. }) => Err(Missing::command("pping history", "history").into()),
        #[cfg(not(feature = "history"))]
        Some(Command::Report { .. }) => Err(Missing::command("pping report", "history").into()),
        #[cfg(not(feature = "top"))]
        Some(Command::Top(_)) => Err(Missing::command("pping top", "top").into()),
        Some(Command::Generate { page }) => write(&generate::generate(page)),
    }
}

fn loader(matches: &ArgMatches) -> Loader {
    Loader::new(matches.clone(), env::vars_os())
}

fn measure(loader: Loader) -> Result<(), Error> {
    let Loaded { config, layered } = loader.load()?;
    set_verbosity(config.verbosity);
    // The HTTP server has its own thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = async { run(config, loader, shutdown_requested()?).await };
    let summary = runtime.block_on(run).map_err(|error| {
        match error.option().and_then(|option| layered.origin(option)) {
            Some(origin) => Error::SetBy { error: error.into(), origin: origin.clone() },
            None => error,
        }
    })?;
    say(&summary.to_string());
    summary.capture.and_then(|capture| capture.fault).map_or(Ok(()), Err)
}

/// Watches interfaces, or reads a capture, until `shutdown` resolves, the reader of the output is gone, or the capture
/// ends. `loader` makes the configuration again at each SIGHUP.
///
/// # Errors
/// If it could not start, or stopped early. Nothing stays attached unless it is pinned.
async fn run(
    config: Config,
    #[cfg_attr(not(feature = "live"), expect(unused_variables, reason = "a capture is read once"))]
    loader: Loader,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    match config.capture.clone() {
        #[cfg(feature = "live")]
        None => agent::run(config, loader, shutdown).await,
        #[cfg(not(feature = "live"))]
        None => Err(Missing { asked: "-i", option: Some("interface"), feature: "live" }.into()),
        Some(file) => replay::run(config, file, shutdown).await,
    }
}

/// Resolves at SIGINT or SIGTERM.
///
/// # Errors
/// If the signals cannot be caught.
fn shutdown_requested() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(feature = "live")]
fn cleanup(interfaces: &[String]) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let removed = runtime.block_on(agent::cleanup(interfaces))?;
    if removed.is_empty() {
        return write(b"nothing to remove\n");
    }
    removed.iter().try_for_each(|it| write(format!("{it}\n").as_bytes()))
}

fn check_file(path: &Path) -> Result<(), Error> {
    let check_named = |key: &str, path: &Path, has_socket: bool, remote_by: RemoteBy| -> Vec<String> {
        match key {
            "groups" => {
                let errors = groups::check(path, PrefixRule::of(has_socket));
                errors.iter().map(ToString::to_string).collect()
            }
            "remote-groups" => {
                let error = Networks::default().load(path, remote_by).err();
                error.iter().map(ToString::to_string).collect()
            }
            _ => quality::load(Some(path)).err().iter().map(ToString::to_string).collect(),
        }
    };
    let missing_levels = |path: &Path, levels: &[String]| groups::missing_levels(path, &Levels::new(levels));
    for warning in config::check(path, check_named, missing_levels)? {
        say(&format!("pping: warning: {warning}\n"));
    }
    write(format!("{}: fine\n", path.display()).as_bytes())
}

fn write(text: &[u8]) -> Result<(), Error> {
    Ok(output::print(text)?)
}

/// Writes to standard error. Ignores a closed pipe, as in `pping -i eth0 2>&1 | head -1`.
fn say(text: &str) {
    io::stderr().write_all(text.as_bytes()).ok();
}
