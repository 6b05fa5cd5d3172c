//! `pping report`: a day or a week on one page that needs neither scripts nor a network, for a meeting, a ticket or a printer.
//!
//! [`digest`] makes figures of the history, [`html`] makes a page of them.

mod chart;
mod digest;
mod html;
mod marks;

use std::path::{Path, PathBuf};

use clap::Args;

use self::digest::{Report, Scope};
use crate::{
    history::{Archive, DAY, DEFAULT_DIRECTORY, Error, HOUR, moment, now},
    quality,
};

/// The options of `pping report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArguments {
    /// Report the 24 hours up to the last full hour
    #[arg(long)]
    pub day: bool,
    /// Report the seven days up to the last full hour (the default)
    #[arg(long, conflicts_with = "day")]
    pub week: bool,
    /// End at the full hour before this moment instead: `2026-11-23`, `2026-11-25 21:00`, `-24h`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Only groups whose column `site` in the groups file has this value
    #[arg(long, value_name = "SITE")]
    pub site: Option<String>,
    /// Write one JSON document instead of a page
    #[arg(long)]
    pub json: bool,
    /// Score by the first profile of this file instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub quality: Option<PathBuf>,
    /// The directory that `--history` of pping names
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub history: PathBuf,
}

/// Performs `pping report`. Returns what it prints.
///
/// # Errors
/// If there is no history, nothing was measured, or an option is invalid.
pub fn perform(asked: &ReportArguments) -> Result<String, Error> {
    let usage = |option: &str, reason: String| Error::Usage(format!("--{option}: {reason}"));
    let profiles = quality::load(asked.quality.as_deref());
    let profiles = profiles.map_err(|error| usage("quality", error.to_string()))?;
    let now = now();
    let end = asked.to.as_deref().map_or(Ok(now), |text| moment(text, now));
    let end = end.map_err(|reason| usage("to", reason))?;
    let archive = Archive::new(asked.history.clone());
    let length = if asked.day { DAY } else { 7 * DAY };
    let report = |to: u64| {
        let scope = Scope { range: to.saturating_sub(length)..to, now, site: asked.site.as_deref() };
        Report::new(&archive, scope, &profiles)
    };
    let report = match report(end - end % HOUR) {
        // Who has just begun wants to see something.
        Err(Error::Empty(_)) if asked.to.is_none() => report(end - end % HOUR + HOUR),
        report => report,
    }?;
    for reason in &report.damaged {
        tracing::warn!("{reason}; it is left out");
    }
    if asked.json {
        let text = serde_json::to_string(&report);
        return Ok(text.map_err(|error| Error::write(Path::new("standard output"), error.into()))? + "\n");
    }
    Ok(html::page(&report))
}

#[cfg(test)]
mod tests;
