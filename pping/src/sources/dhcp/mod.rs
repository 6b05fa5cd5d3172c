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

use self::{
    lease::LabelBy,
    leases::{LeaseFile, ReadError},
};
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
/// If a file may not be read, or is of another kind when it is read first.
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
    until_stopped(move |stop| Follower::new(files, Feed::new(socket, source, false)).follow(stop))
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

    /// Follows them until it is told to stop.
    ///
    /// # Errors
    /// If a file is of another kind. Once everything was passed on, such a file changes nothing.
    fn follow(mut self, stop: &Stop) -> Result<(), Error> {
        let notify = Notify::from_environment();
        let mut changes = Vec::new();
        for file in &mut self.files {
            file.read_earlier(now(), &mut changes, &mut self.complaints);
        }
        let start = Instant::now();
        let (mut is_complete, mut told) = (false, String::new());
        notify.ready("reading leases");
        while !stop.is_set() {
            let are_read = self.poll(&mut changes, is_complete)?;
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
        Ok(())
    }

    /// Reads what has changed. Returns whether all files have been read.
    ///
    /// # Errors
    /// If a file is of another kind before everything was passed on once (`is_complete`): what an earlier run said stays.
    fn poll(&mut self, changes: &mut Vec<Change>, is_complete: bool) -> Result<bool, Error> {
        let mut are_read = true;
        for file in &mut self.files {
            let path = file.path().to_owned();
            match file.poll(now(), changes, &mut self.complaints) {
                Ok(is_read) => are_read &= is_read,
                Err(error @ ReadError::Foreign(_)) if !is_complete => {
                    return Err(Error::Leases { path, reason: error.to_string() });
                }
                Err(error) => {
                    are_read = false;
                    let kept = if matches!(error, ReadError::Foreign(_)) { "; its names stay" } else { "" };
                    self.complaints.warn("times that a file could not be read", || {
                        format!("{}: {error}{kept}", path.display())
                    });
                }
            }
        }
        for change in changes.drain(..) {
            self.feed.apply(considering(&self.files, change), &mut self.complaints);
        }
        Ok(are_read)
    }

    fn status(&self) -> String {
        format!("{} leases{}", self.feed.len(), self.complaints.summary())
    }
}

/// What a change of one file comes to: the end of a lease is none if another file has an active one of the same address.
fn considering(files: &[LeaseFile], change: Change) -> Change {
    match change {
        Change::Unset(prefix) => {
            let name = files.iter().find_map(|file| file.name_of(&prefix));
            name.map_or(change, |name| Change::Set(prefix, name))
        }
        Change::Set(..) => change,
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    /// A follower of lease files of dnsmasq, and the names that follow from them.
    fn follower(files: &[&std::path::Path]) -> Follower {
        let files = files.iter().map(|path| LeaseFile::dnsmasq(path.into(), LabelBy::Hostname)).collect();
        Follower::new(files, Feed::new("nowhere".into(), "dhcp".into(), false))
    }

    fn labels(follower: &mut Follower) -> Vec<String> {
        // A file is read at the second look.
        for _ in 0..2 {
            follower.poll(&mut Vec::new(), true).unwrap();
        }
        let mut labels: Vec<_> =
            follower.feed.names().map(|(prefix, name)| format!("{prefix} {}", name.label)).collect();
        labels.sort();
        labels
    }

    #[test]
    fn a_lease_of_one_file_is_not_hidden_by_an_expired_one_of_another() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
        let (active, expired) = (4_000_000_000_u64, 1_100_000_000);
        let line = |expires: u64, name: &str| format!("{expires} 02:00:00:00:00:01 10.0.0.1 {name} *\n");
        for (first, second) in [(&one, &other), (&other, &one)] {
            fs::write(first, line(active, "new")).unwrap();
            fs::write(second, line(expired, "old")).unwrap();
            let mut follower = follower(&[&one, &other]);
            assert_eq!(labels(&mut follower), ["10.0.0.1/32 new"]);
            // It is given back in the other one, too.
            fs::write(second, "").unwrap();
            assert_eq!(labels(&mut follower), ["10.0.0.1/32 new"]);
            fs::write(first, "").unwrap();
            assert_eq!(labels(&mut follower), [""; 0]);
        }
        // The one that was said last counts, and then the other one again.
        fs::write(&one, line(active, "one")).unwrap();
        fs::write(&other, line(active, "other")).unwrap();
        let mut follower = follower(&[&one, &other]);
        assert_eq!(labels(&mut follower), ["10.0.0.1/32 other"]);
        fs::write(&other, "").unwrap();
        assert_eq!(labels(&mut follower), ["10.0.0.1/32 one"]);
    }

    #[test]
    fn a_file_of_another_kind_is_an_error_at_first_and_changes_nothing_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases");
        let kea =
            "address,hwaddr,client_id,valid_lifetime,expire\n10.0.0.1,02:00:00:00:00:01,,60,4000000000\n";
        fs::write(&path, kea).unwrap();
        let mut first = follower(&[&path]);
        assert!(!first.poll(&mut Vec::new(), false).unwrap());
        let said = first.poll(&mut Vec::new(), false).unwrap_err();
        assert!(said.is_usage());
        assert!(
            said.to_string().contains("leases: this is no lease file of dnsmasq; give those of Kea to --kea"),
            "{said}"
        );
        fs::write(&path, "0 02:00:00:00:00:01 10.0.0.1 radio *\n").unwrap();
        let mut follower = follower(&[&path]);
        assert_eq!(labels(&mut follower), ["10.0.0.1/32 radio"]);
        for foreign in [kea, "lease 10.0.0.1 { binding state free; }\n", "\0\0\0\n"] {
            fs::write(&path, foreign).unwrap();
            assert_eq!(labels(&mut follower), ["10.0.0.1/32 radio"]);
        }
        assert!(follower.status().contains("times that a file could not be read"), "{}", follower.status());
        fs::write(&path, "").unwrap();
        assert_eq!(labels(&mut follower), [""; 0]);
    }
}
