//! `pping history`: prints the past, and looks after its files.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use pping_common::{limits::SECOND, method::Method};

use super::{
    archive::{Archive, Asked},
    error::Error,
    export, inspect, line, nothing, print,
    store::Store,
    tier::Tier,
    time::{Moment, length, now, range},
    upkeep::keep_up,
};
use crate::{
    config::{HistoryKeep, HistoryLimits, history_disk, history_keep},
    quality,
    recent::HistoryQuery,
};

/// Where the packages keep the history.
pub const DEFAULT_DIRECTORY: &str = "/var/lib/pping/history";

/// The options of `pping history`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HistoryArguments {
    /// What to do with the files; without a command, the past is printed.
    #[command(subcommand)]
    pub command: Option<HistoryCommand>,
    /// The history.
    #[command(flatten)]
    pub source: HistorySource,
    /// Only this group, by its label; without it all groups together
    #[arg(long, value_name = "LABEL", conflicts_with = "worst")]
    pub group: Option<String>,
    /// List the N groups with the highest 95th percentile, of those with at least 20 samples
    #[arg(long, value_name = "N")]
    pub worst: Option<usize>,
    /// The range.
    #[command(flatten)]
    pub range: HistoryRange,
    /// The length of an interval, for instance `5m` (default: by the range)
    ///
    /// Intervals begin at multiples of it in UTC. They are longer where the files have longer ones only.
    #[arg(long, value_name = "TIME", conflicts_with = "worst")]
    pub step: Option<String>,
    /// Only series of this interface
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Only series of this method
    #[arg(long, value_name = "NAME", value_parser = method_name())]
    pub method: Option<String>,
    /// Only series of this side of the network: `inside` or `outside`
    #[arg(long, value_name = "SIDE", value_parser = ["inside", "outside"])]
    pub side: Option<String>,
    /// Write one JSON document, with the histogram of each interval
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Write lines of comma-separated values, times in ns since 1970, steps and RTTs in ns
    ///
    /// A text that begins with =, +, -, @ or a tab gets a ' before it, so that no spreadsheet takes a label for a formula.
    #[arg(long)]
    pub csv: bool,
}

/// Where the history is.
#[derive(Clone, Debug, Args)]
pub struct HistorySource {
    /// The directory that `--history` of pping names
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub history: PathBuf,
}

/// A range of time.
#[derive(Clone, Debug, Args)]
pub struct HistoryRange {
    /// The first moment: `-24h`, `2026-11-25 21:00`, `2026-11-25T21:00:00Z`
    #[arg(long, value_name = "TIME", default_value = "-24h", allow_hyphen_values = true)]
    pub from: String,
    /// The moment after the last
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    pub to: String,
}

/// The commands of `pping history`.
#[derive(Clone, Debug, Subcommand)]
pub enum HistoryCommand {
    /// Read all files, and report what they have and which are damaged
    ///
    /// The exit status is 1 if a file is damaged.
    Check {
        /// The history.
        #[command(flatten)]
        source: HistorySource,
    },
    /// Merge what can be merged, and remove what exceeds the limits, while pping does not run
    ///
    /// Give the limits that pping has: those that are not given are the defaults, and what exceeds them is removed.
    Compact {
        /// The history.
        #[command(flatten)]
        source: HistorySource,
        /// How much is kept.
        #[command(flatten)]
        limits: HistoryKept,
    },
    /// Copy a range into one Parquet file, while pping may run
    ///
    /// A file of that name is replaced once the new one is complete.
    Export {
        /// The history.
        #[command(flatten)]
        source: HistorySource,
        /// The range.
        #[command(flatten)]
        range: HistoryRange,
        /// The resolution
        #[arg(long, value_name = "TIER", default_value = "5m", value_parser = tier)]
        tier: Tier,
        /// The file to write
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// How much of a history is kept.
#[derive(Clone, Debug, Args)]
pub struct HistoryKept {
    /// As `--history-disk` of pping
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = history_disk)]
    pub history_disk: u64,
    /// As `--history-keep` of pping
    #[arg(long, value_name = "DAYS", default_value = "3d,60d,2y", value_parser = history_keep)]
    pub history_keep: HistoryKeep,
}

fn method_name() -> PossibleValuesParser {
    Method::ALL.map(Method::name).into()
}

fn tier(text: &str) -> Result<Tier, &'static str> {
    Tier::named(text).ok_or("give 1m, 5m or 1h")
}

impl HistoryRange {
    /// The moments.
    ///
    /// # Errors
    /// If they are no range, in words.
    fn moments(&self) -> Result<(Moment, Moment), String> {
        range(Some(&self.from), Some(&self.to), now())
    }
}

/// Performs `pping history`. Returns what it prints.
///
/// # Errors
/// If the question is invalid, or there is no history.
pub fn perform(asked: HistoryArguments) -> Result<String, Error> {
    match asked.command {
        None => print(&asked),
        Some(HistoryCommand::Check { source }) => inspect::check(&source.history, now()),
        Some(HistoryCommand::Compact { source, limits }) => compact(&source.history, &limits),
        Some(HistoryCommand::Export { source, range, tier, file }) => {
            let (from, to) = range.moments().map_err(Error::Usage)?;
            let rows = export::export(&source.history, tier, from, to, &file)?;
            Ok(format!("{}: {rows} rows\n", file.display()))
        }
    }
}

fn compact(directory: &Path, limits: &HistoryKept) -> Result<String, Error> {
    let limits = HistoryLimits { disk: limits.history_disk, keep: limits.history_keep };
    Store::open(directory)?;
    let store = Store::create(directory)?;
    let profiles = quality::load(None).unwrap_or_default();
    let upkeep = keep_up(&store, now(), &limits, None, &profiles)?;
    upkeep.merged?;
    let files = |number: u64, what: &str| match number {
        0 => String::new(),
        1 => format!(", 1 {what}"),
        _ => format!(", {number} {}", what.replacen("file", "files", 1)),
    };
    let damaged = files(upkeep.damaged, "damaged file set aside");
    let removed = files(upkeep.removed, "file beyond the limits removed");
    Ok(format!("{}: {} MiB{damaged}{removed}\n", directory.display(), upkeep.disk.div_ceil(1 << 20)))
}

fn print(asked: &HistoryArguments) -> Result<String, Error> {
    let query = HistoryQuery {
        interface: asked.interface.clone(),
        method: asked.method.clone(),
        matched: None,
        side: asked.side.clone(),
        from: Some(asked.range.from.clone()),
        to: Some(asked.range.to.clone()),
        step: asked.step.clone(),
        group: asked.group.clone(),
    };
    let question = Asked::from_texts(&query).map_err(Error::Usage)?;
    let archive = Archive::new(asked.source.history.clone());
    let (lines, answer) = if let Some(limit) = asked.worst {
        let (lines, damaged) = archive.worst(&question, limit)?;
        warn(&damaged);
        (lines, None)
    } else {
        let answer = archive.history(&question)?;
        warn(&answer.damaged);
        let step = answer.cell / SECOND;
        if asked.step.is_some() && step != question.step {
            let [asked, step] = [question.step, step].map(length);
            tracing::warn!("--step: this range is not kept in intervals of {asked}; these are of {step}");
        }
        (line::lines(&answer, asked.group.as_deref()), Some(answer))
    };
    if lines.is_empty() && asked.worst != Some(0) {
        let reason = nothing::reason(&archive, &question, asked.worst.is_some())?;
        if !asked.json && !asked.csv {
            return Ok(reason + "\n");
        }
        tracing::warn!("{reason}");
    }
    match answer {
        _ if asked.csv => Ok(print::csv(&lines)),
        _ if !asked.json => Ok(print::table(&lines)),
        Some(answer) => json(&answer),
        None => json(&lines),
    }
}

fn warn(damaged: &[String]) {
    for reason in damaged {
        tracing::warn!("{reason}; it is left out");
    }
}

fn json(answer: &impl serde::Serialize) -> Result<String, Error> {
    let text = serde_json::to_string(answer);
    Ok(text.map_err(|error| Error::write(Path::new("standard output"), error.into()))? + "\n")
}
