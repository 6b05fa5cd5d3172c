//! Finds out from the options what to watch.

use clap::{ArgMatches, CommandFactory as _, parser::ValueSource};

use super::watched::WatchTarget;
#[cfg(feature = "history")]
use crate::history;
use crate::{
    Error,
    cli::{NOT_FOR_TOP, TopArguments},
    client::Source,
    config::{self, Arguments, Loader},
};

/// Returns what the options on the command line, `typed`, ask to watch. `loader` makes the configuration from them.
///
/// # Errors
/// If there is an error in the options.
pub(super) fn target(typed: &ArgMatches, loader: &Loader, asked: TopArguments) -> Result<WatchTarget, Error> {
    #[cfg(feature = "history")]
    let asked_at = asked.at.clone();
    let TopArguments { connect, user, cacert, insecure, cert, key, arguments, .. } = asked;
    #[cfg(feature = "history")]
    if let Some(at) = asked_at {
        refuse(typed, true, &["history"])?;
        let directory = arguments.history.unwrap_or_else(|| history::DEFAULT_DIRECTORY.into());
        let at = history::moment(&at, history::now()).map_err(history::Error::Usage)?;
        return Ok(WatchTarget::Past(history::Archive::new(directory), at));
    }
    let is_service = arguments.interfaces.is_empty() && arguments.read.is_none();
    refuse(typed, is_service, &[])?;
    if is_service {
        return Ok(WatchTarget::Service(Source {
            url: connect,
            user: user.map(with_password).transpose()?,
            authorities: cacert,
            is_insecure: insecure,
            certificate: cert,
            key,
        }));
    }
    let loader = loader.clone().for_viewing();
    let config = Box::new(loader.load()?.config.for_viewing());
    Ok(match config.capture.clone() {
        Some(path) => WatchTarget::Capture(config, path),
        None => WatchTarget::Interfaces(config, loader),
    })
}

/// Returns a user's name with the password. Asks for the password on the terminal if there is none.
fn with_password(user: String) -> Result<String, Error> {
    if user.contains(':') {
        return Ok(user);
    }
    let password = rpassword::prompt_password(format!("password of {user}: "))?;
    Ok(format!("{user}:{password}"))
}

/// Refuses options that would have no effect, other than those that `have_effect`.
fn refuse(typed: &ArgMatches, is_service: bool, have_effect: &[&str]) -> Result<(), Error> {
    for option in Arguments::command().get_arguments() {
        if have_effect.contains(&option.get_id().as_str()) {
            continue;
        }
        if typed.value_source(option.get_id().as_str()) != Some(ValueSource::CommandLine) {
            continue;
        }
        let reason = if NOT_FOR_TOP.contains(&option.get_id().as_str()) {
            "pping top only shows measurements; leave this out"
        } else if is_service {
            "use this with -i or -r; a running pping has its own setting"
        } else {
            continue;
        };
        let option = option.get_long().unwrap_or_default();
        return Err(config::Error::Arguments(format!("--{option}: {reason}")).into());
    }
    Ok(())
}
