//! The commands of pping: measure, show and check its configuration, clean up, and write its documentation.

use std::{
    env,
    io::{self, Write as _},
    path::Path,
};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, parser::ValueSource};

use crate::{
    Error, agent,
    cli::{Cli, Command, ConfigCommand, NOT_FOR_TOP, TopArguments},
    config::{self, DEFAULT_FILE, Loaded, Loader},
    generate,
    groups::{self, Labels},
    output, run, set_verbosity, shutdown,
};

/// Does what the command line asks for, which [`Cli`] parsed into `matches`.
///
/// # Errors
/// Why it could not be done.
pub fn perform(matches: &ArgMatches) -> Result<(), Error> {
    let cli = Cli::from_arg_matches(matches).map_err(|error| config::Error::Arguments(error.to_string()))?;
    match cli.command {
        None => measure(loader(matches)),
        Some(Command::Config { command: ConfigCommand::Check { file } }) => {
            check(file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)))
        }
        Some(Command::Config { command: ConfigCommand::Show(_) }) => {
            let shown = matches.subcommand_matches("config").and_then(|it| it.subcommand_matches("show"));
            write(loader(shown.unwrap_or(matches)).show()?.as_bytes())
        }
        Some(Command::Check(asked)) => {
            let typed = matches.subcommand_matches("check").unwrap_or(matches);
            let (report, verdict) = crate::check::perform(&loader(typed), *asked)?;
            write(report.as_bytes())?;
            verdict
        }
        Some(Command::Top(asked)) => top(matches.subcommand_matches("top").unwrap_or(matches), *asked),
        Some(Command::Unpin { directory }) => agent::unpin(&directory),
        Some(Command::Cleanup { interfaces }) => cleanup(&interfaces),
        Some(Command::Generate { page }) => write(&generate::generate(page)),
    }
}

fn loader(matches: &ArgMatches) -> Loader {
    Loader::new(matches.clone(), env::vars_os())
}

fn measure(loader: Loader) -> Result<(), Error> {
    let Loaded { config, layered } = loader.load()?;
    set_verbosity(config.verbosity);
    // The HTTP server has a thread of its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = async { run(config, loader, shutdown::requested()?).await };
    let summary = runtime.block_on(run).map_err(|error| {
        match error.option().and_then(|option| layered.origin(option)) {
            Some(origin) => Error::SetBy { error: error.into(), origin: origin.clone() },
            None => error,
        }
    })?;
    say(&summary.to_string());
    summary.capture.and_then(|capture| capture.fault).map_or(Ok(()), Err)
}

#[cfg(feature = "live")]
fn top(matches: &ArgMatches, asked: TopArguments) -> Result<(), Error> {
    use crate::{
        client::Source,
        top::{Origin, Settings, run},
    };

    let TopArguments { connect, user, cacert, cert, key, interval, once, arguments } = asked;
    let is_service = arguments.interfaces.is_empty() && arguments.read.is_none();
    refuse_for_top(matches, is_service)?;
    let origin = if is_service {
        Origin::Service(Source {
            url: connect,
            user: user.map(with_password).transpose()?,
            authorities: cacert,
            certificate: cert,
            key,
        })
    } else {
        let loader = loader(matches);
        let config = Box::new(loader.load()?.config.looked_at());
        match config.capture.clone() {
            Some(path) => Origin::Capture(config, path),
            None => Origin::Interfaces(config, loader),
        }
    };
    run(Settings { origin, interval, is_once: once })
}

/// A name with its password, which is asked for on the terminal if it has none.
#[cfg(feature = "live")]
fn with_password(user: String) -> Result<String, Error> {
    if user.contains(':') {
        return Ok(user);
    }
    let password = rpassword::prompt_password(format!("password of {user}: "))?;
    Ok(format!("{user}:{password}"))
}

/// Refuses options that would have no effect.
#[cfg(feature = "live")]
fn refuse_for_top(matches: &ArgMatches, is_service: bool) -> Result<(), Error> {
    for option in config::Arguments::command().get_arguments() {
        if matches.value_source(option.get_id().as_str()) != Some(ValueSource::CommandLine) {
            continue;
        }
        let reason = if NOT_FOR_TOP.contains(&option.get_id().as_str()) {
            "pping top shows what is measured and does nothing else with it; leave this out"
        } else if is_service {
            "this goes with -i or -r; the running pping that is looked at has its own"
        } else {
            continue;
        };
        let option = option.get_long().unwrap_or_default();
        return Err(config::Error::Arguments(format!("--{option}: {reason}")).into());
    }
    Ok(())
}

#[cfg(not(feature = "live"))]
fn top(_: &ArgMatches, _: TopArguments) -> Result<(), Error> {
    Err(Error::NotLive("top".to_owned()))
}

fn cleanup(interfaces: &[String]) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let removed = runtime.block_on(agent::cleanup(interfaces))?;
    if removed.is_empty() {
        return write(b"nothing to remove\n");
    }
    removed.iter().try_for_each(|it| write(format!("{it}\n").as_bytes()))
}

fn check(path: &Path) -> Result<(), Error> {
    let check_groups = |path: &Path| groups::load(path, &mut Labels::default()).map(drop);
    for warning in config::check(path, check_groups)? {
        say(&format!("pping: warning: {warning}\n"));
    }
    write(format!("{}: fine\n", path.display()).as_bytes())
}

/// Writes to standard output. A reader that closes it is not an error.
///
/// # Errors
/// When writing fails.
fn write(text: &[u8]) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(output::Error::Write { target: "standard output".to_owned(), source }.into())
        }
        _ => Ok(()),
    }
}

/// Writes to standard error, unless that is a closed pipe, as in `pping -i eth0 2>&1 | head -1`.
fn say(text: &str) {
    io::stderr().write_all(text.as_bytes()).ok();
}
