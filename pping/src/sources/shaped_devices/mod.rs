//! `pping groups shaped-devices`: the circuits of LibreQoS.

mod circuits;
mod file;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, path::PathBuf, sync::Arc, thread, time::Duration};

use clap::Args;
use ipnet::IpNet;

use self::{
    circuits::LabelBy,
    file::{parse, read},
};
use super::{
    change::{Change, Name},
    complaints::Complaints,
    error::Error,
    feed::Feed,
    run::{Stop, give_up_privileges, until_stopped},
    settled::Settled,
};
use crate::{log::say_started, notify::Notify, output, spelling::counted, text::FileError};

/// The interval at which the file is looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// The options of `pping groups shaped-devices`.
#[derive(Clone, Debug, Args)]
pub struct ShapedDevicesArguments {
    /// File of circuits, most often /opt/libreqos/src/ShapedDevices.csv
    pub file: PathBuf,
    /// Name groups after this; a name that several circuits have gets the ID of each
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = LabelBy::CircuitName)]
    pub label_by: LabelBy,
    /// Go on, and take the file again each time it changes
    #[arg(long)]
    pub follow: bool,
}

/// Takes the file once, or follows it until it is stopped.
///
/// # Errors
/// If the file cannot be read or is no such file, or pping cannot be reached (without `--follow`).
pub(super) fn run(arguments: ShapedDevicesArguments, socket: PathBuf, source: Arc<str>) -> Result<(), Error> {
    give_up_privileges()?;
    let ShapedDevicesArguments { file, label_by, follow } = arguments;
    let mut feed = Feed::new(socket, source, false);
    let mut complaints = Complaints::default();
    let circuits = read(&file, label_by, &mut complaints)?;
    if circuits.is_empty() && !follow {
        let reason = without_circuits(feed.source());
        return Err(FileError::Invalid { path: file, line: 1, column: 1, reason }.into());
    }
    if follow {
        let prefixes = counted(circuits.len(), "prefix", "prefixes");
        say_started(&format!("following {}: {prefixes}", file.display()));
        return until_stopped(move |stop| {
            replace(&mut feed, circuits, &mut complaints);
            follow_file(file, label_by, feed, complaints, stop);
            Ok(())
        });
    }
    replace(&mut feed, circuits, &mut complaints);
    feed.flush_once(&mut complaints)?;
    let (source, prefixes, summary) = (feed.source(), feed.len(), complaints.summary());
    let prefixes = counted(prefixes, "prefix", "prefixes");
    let text = format!("{source} lists {prefixes} now{summary}\n");
    Ok(output::print(text.as_bytes())?)
}

fn follow_file(file: PathBuf, label_by: LabelBy, mut feed: Feed, mut complaints: Complaints, stop: &Stop) {
    let notify = Notify::from_environment();
    notify.ready(&counted(feed.len(), "prefix", "prefixes"));
    let mut settled = Settled::new(file);
    while !stop.is_set() {
        match settled.poll() {
            Ok(None) => {}
            Ok(Some(bytes)) => match parse(&bytes, settled.path(), label_by, &mut complaints) {
                Ok(circuits) => {
                    replace(&mut feed, circuits, &mut complaints);
                    let prefixes = counted(feed.len(), "prefix", "prefixes");
                    notify.status(&format!("{prefixes}{}", complaints.summary()));
                }
                Err(error) => tracing::error!("{error}; the groups stay as they were"),
            },
            Err(error) => {
                let path = settled.path().display();
                complaints.warn("times that the file could not be read", || format!("{path}: {error}"));
            }
        }
        // Without a pping that listens, everything waits in the feed.
        feed.flush(&mut complaints).ok();
        notify.alive();
        thread::sleep(INTERVAL);
    }
    notify.stopping();
}

/// Says that a file has no circuits. Another program made it, and most likely failed.
fn without_circuits(source: &str) -> String {
    format!(
        "there is no circuit with an address in this file, so the groups stay as they were; to remove them all, stop what \
         follows the file, and run: pping groups remove --all --source {source}"
    )
}

/// Makes these all that the feed has, unless there are none.
fn replace(feed: &mut Feed, circuits: HashMap<IpNet, Name>, complaints: &mut Complaints) {
    if circuits.is_empty() {
        complaints.warn("times that the file had no circuits", || without_circuits(feed.source()));
        return;
    }
    let gone: Vec<IpNet> = feed.prefixes().filter(|prefix| !circuits.contains_key(prefix)).collect();
    let set = circuits.into_iter().map(|(prefix, name)| Change::Set(prefix, name));
    for change in gone.into_iter().map(Change::Unset).chain(set) {
        feed.apply(change, complaints);
    }
    feed.complete();
}
