//! The configuration that pping would have.

use super::report::Check;
use crate::config::{self, Arguments, Config, Loader};

/// Makes the configuration. If it has mistakes, pping cannot run, and the other checks are for the command line alone.
///
/// # Errors
/// What is wrong with the command line.
pub(super) fn configuration(loader: &Loader, typed: Arguments) -> Result<(Config, Check), config::Error> {
    match loader.sourceless() {
        Ok((config, file)) => {
            let found = file.map_or_else(
                || "no file is read".to_owned(),
                |file| format!("{} has no mistakes", file.display()),
            );
            Ok((config, Check::ok("configuration", found)))
        }
        Err(error @ (config::Error::Invalid(_) | config::Error::Open { .. })) => {
            let remedy = "correct it (pping config check says the same): pping does not start with it";
            Ok((Config::try_from(typed)?, Check::missing("configuration", error.to_string(), remedy)))
        }
        Err(error) => Err(error),
    }
}
