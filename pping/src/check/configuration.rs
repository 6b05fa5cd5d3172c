//! What pping would be told to do.

use super::report::Check;
use crate::config::{self, Arguments, Config, Loader};

/// Makes the configuration. One with mistakes keeps pping from running, and the rest is looked at with what was typed.
///
/// # Errors
/// What is wrong with what was typed.
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
