//! `pping groups dhcp`: the leases of DHCP servers, from their files.

mod dnsmasq;
mod isc;
mod kea;
mod lease;
mod leases;
mod tail;

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use clap::{ArgGroup, Args};

use self::{lease::LabelBy, leases::LeaseFile};
use super::{
    change::Change,
    complaints::Complaints,
    error::Error,
    feed::Feed,
    run::{Stop, give_up_privileges, until_stopped},
};
use crate::{
    log::say_started,
    notify::Notify,
    text::{self, FileError},
};

/// The interval at which files are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// How long a file may be missing at the start, before what an earlier run said of its leases goes.
const MISSING: Duration = Duration::from_secs(30);

/// The options of `pping groups dhcp`.
#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("lease_files").args(["kea", "dnsmasq", "isc"]).required(true).multiple(true)))]
pub struct DhcpArguments {
    /// Follow this lease file of Kea (`memfile`), for IPv4 or IPv6 (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub kea: Vec<PathBuf>,
    /// Follow this lease file of dnsmasq (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub dnsmasq: Vec<PathBuf>,
    /// Follow this lease file of ISC's dhcpd, for IPv4 or IPv6 (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub isc: Vec<PathBuf>,
    /// Name leases after this; those that have none are named after another
    ///
    /// Clients choose their host names, and two may have the same: they are one group then.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = LabelBy::Hostname)]
    pub label_by: LabelBy,
}

/// Follows the files until it is stopped.
///
/// # Errors
/// If a file may not be read.
pub(super) fn run(arguments: DhcpArguments, socket: PathBuf, source: Arc<str>) -> Result<(), Error> {
    give_up_privileges()?;
    let DhcpArguments { kea, dnsmasq, isc, label_by } = arguments;
    let files: Vec<LeaseFile> = (kea.into_iter().map(|path| LeaseFile::kea(path, label_by)))
        .chain(dnsmasq.into_iter().map(|path| LeaseFile::dnsmasq(path, label_by)))
        .chain(isc.into_iter().map(|path| LeaseFile::isc(path, label_by)))
        .collect();
    for file in &files {
        match text::open(file.path()) {
            // A server that has not started yet has no file.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::Open { path: file.path().to_owned(), source: error }.into());
            }
            _ => {}
        }
    }
    say_started(&format!("following {} lease files", files.len()));
    until_stopped(move |stop| {
        Follower::new(files, Feed::new(socket, source, false)).follow(stop);
        Ok(())
    })
}

/// Follows files.
struct Follower {
    files: Vec<LeaseFile>,
    feed: Feed,
    complaints: Complaints,
}

impl Follower {
    fn new(files: Vec<LeaseFile>, feed: Feed) -> Self {
        Self { files, feed, complaints: Complaints::default() }
    }

    fn follow(mut self, stop: &Stop) {
        let notify = Notify::from_environment();
        let mut changes = Vec::new();
        for file in &mut self.files {
            file.read_earlier(now(), &mut changes, &mut self.complaints);
        }
        let start = Instant::now();
        let (mut is_complete, mut told) = (false, String::new());
        notify.ready("reading leases");
        while !stop.is_set() {
            let are_read = self.poll(&mut changes);
            if !is_complete && (are_read || start.elapsed() >= MISSING) {
                is_complete = true;
                self.feed.complete();
            }
            // Without a pping that listens, everything waits in the feed.
            self.feed.flush(&mut self.complaints).ok();
            notify.alive();
            let status = self.status();
            if status != told {
                notify.status(&status);
                told = status;
            }
            thread::sleep(INTERVAL);
        }
        notify.stopping();
        say_started(&self.status());
    }

    /// Reads what has changed. Returns whether all files have been read.
    fn poll(&mut self, changes: &mut Vec<Change>) -> bool {
        let mut are_read = true;
        for file in &mut self.files {
            match file.poll(now(), changes, &mut self.complaints) {
                Ok(is_read) => are_read &= is_read,
                Err(error) => {
                    are_read = false;
                    let path = file.path().display();
                    self.complaints
                        .warn("times that a file could not be read", || format!("{path}: {error}"));
                }
            }
        }
        for change in changes.drain(..) {
            self.feed.apply(change, &mut self.complaints);
        }
        are_read
    }

    fn status(&self) -> String {
        format!("{} leases{}", self.feed.len(), self.complaints.summary())
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: DhcpArguments,
    }

    #[test]
    fn one_file_is_needed_and_several_may_be_followed() {
        let typed = |line: &str| Typed::try_parse_from(line.split(' ')).map(|typed| typed.arguments);
        let said = typed("dhcp --label-by mac").map(drop).unwrap_err().to_string();
        assert!(said.contains("--kea <FILE>|--dnsmasq <FILE>|--isc <FILE>"), "{said}");
        let both = typed("dhcp --kea 4.csv --kea 6.csv --dnsmasq leases").unwrap();
        assert_eq!((both.kea.len(), both.dnsmasq.len(), both.isc.len()), (2, 1, 0));
    }
}
