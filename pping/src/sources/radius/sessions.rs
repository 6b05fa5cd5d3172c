//! The sessions of each NAS, and which of them has a prefix. Neither reads a clock, nor sends anything.
//!
//! Of two sessions that claim the same prefix, the one that began later has it. So a late report of the earlier one changes
//! nothing, and neither does its end.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use ipnet::IpNet;

use super::{
    adopted::Adopted,
    report::{Kind, Nas, Report, Status},
};
use crate::sources::change::{Change, Name};

/// The column that has the NAS.
const NAS: &str = "nas";

/// The highest number of sessions.
const MAX_SESSIONS: usize = 1 << 19;

/// The highest number of prefixes of a session.
const MAX_PREFIXES: usize = 16;

/// A session ends if it has not reported for this many of its intervals.
const MISSED_INTERVALS: u32 = 3;

/// The shortest time without a report after which a session ends, unless the user says otherwise: reports may be lost.
const SHORTEST: Duration = Duration::from_mins(10);

/// The time without a report after which a session ends that never said how often it reports.
const LONGEST: Duration = Duration::from_hours(24);

/// How long the end of a session is remembered, for reports from before it that come after it.
const REMEMBER: Duration = Duration::from_mins(10);

/// The highest number of ends that are remembered.
const MAX_ENDED: usize = 1 << 16;

/// Times that a NAS gives are whole seconds, and it may count them from a moment later or earlier.
const ROUNDING: Duration = Duration::from_secs(2);

/// The NAS and its Acct-Session-Id.
type Key = (Nas, Arc<[u8]>);

/// A session.
struct Session {
    label: Arc<str>,
    prefixes: Vec<(Kind, IpNet)>,
    began: Instant,
    reported: Instant,
    /// How often it reports: as the NAS says, or else the longest time between two reports.
    interval: Option<Duration>,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// It has no name, and there is no session with one.
    Unnamed,
    /// There are too many sessions, or too many prefixes of one.
    NoRoom,
}

/// The sessions.
pub(super) struct Sessions {
    known: HashMap<Key, Session, RandomState>,
    owners: HashMap<IpNet, Key, RandomState>,
    /// When sessions ended.
    ended: HashMap<Key, Instant, RandomState>,
    /// What an earlier run said, and no session has claimed yet.
    adopted: Adopted,
    expire: Option<Duration>,
}

impl Sessions {
    /// No sessions. They end after `expire` without a report; without it, after three intervals.
    pub(super) fn new(expire: Option<Duration>) -> Self {
        Self {
            known: HashMap::default(),
            owners: HashMap::default(),
            ended: HashMap::default(),
            adopted: Adopted::default(),
            expire,
        }
    }

    /// The number of sessions.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Takes what an earlier run said. It stays until a session claims it, its session ends, or it expires.
    pub(super) fn adopt(&mut self, names: Vec<(IpNet, Name)>, now: Instant, changes: &mut Vec<Change>) {
        let deadline = now + self.expire.unwrap_or(LONGEST);
        for (prefix, name) in names {
            if !self.owners.contains_key(&prefix) && !self.adopted.add(prefix, name, deadline) {
                changes.push(Change::Unset(prefix));
            }
        }
        self.adopted.is_known = true;
    }

    /// Takes a report.
    pub(super) fn take(&mut self, report: Report, now: Instant, changes: &mut Vec<Change>) -> Outcome {
        let key = (report.nas.clone(), Arc::clone(&report.session));
        match report.status {
            Status::Start | Status::Interim => self.refresh(key, report, now, changes),
            Status::Stop => {
                self.stop(&key, &report, now, changes);
                Outcome::Done
            }
            Status::NoSessions => {
                self.end_all_of(&report.nas, changes);
                Outcome::Done
            }
            Status::Other => Outcome::Done,
        }
    }

    /// Ends sessions that have not reported for too long.
    pub(super) fn expire(&mut self, now: Instant, changes: &mut Vec<Change>) {
        let silent: Vec<Key> = self
            .known
            .iter()
            .filter(|(_, session)| self.is_silent(session, now))
            .map(|(key, _)| key.clone())
            .collect();
        for key in silent {
            tracing::info!("session {} of {} expires", String::from_utf8_lossy(&key.1), key.0.name);
            self.end(&key, changes);
        }
        self.adopted.expire(now, changes);
        self.ended.retain(|_, ended| now.duration_since(*ended) < REMEMBER);
    }

    fn is_silent(&self, session: &Session, now: Instant) -> bool {
        let longest = self.expire.unwrap_or_else(|| {
            session.interval.map_or(LONGEST, |interval| (interval * MISSED_INTERVALS).max(SHORTEST))
        });
        now.duration_since(session.reported) > longest
    }

    fn refresh(&mut self, key: Key, report: Report, now: Instant, changes: &mut Vec<Change>) -> Outcome {
        let Report { status, nas, label, prefixes, delay, age, interval, .. } = report;
        let happened = now.checked_sub(delay).unwrap_or(now);
        if self.ended.get(&key).is_some_and(|ended| happened <= *ended && !delay.is_zero()) {
            // It was overtaken by the end of its session.
            return Outcome::Done;
        }
        let is_other = |session: &Session| label.as_ref().is_some_and(|label| *label != session.label);
        let known = self.known.get(&key);
        if known.is_some_and(is_other) {
            // The NAS has given the number of the session to another one.
            self.end(&key, changes);
        }
        let began =
            if status == Status::Start { happened } else { happened.checked_sub(age).unwrap_or(happened) };
        let mut session = match self.known.remove(&key) {
            Some(mut known) => {
                let since = now.duration_since(known.reported);
                known.interval =
                    interval.or(known.interval.max((status == Status::Interim).then_some(since)));
                if status == Status::Start {
                    known.began = known.began.max(began);
                }
                known
            }
            None if self.known.len() >= MAX_SESSIONS => return Outcome::NoRoom,
            None => {
                let Some(label) = label else { return Outcome::Unnamed };
                Session { label, prefixes: Vec::new(), began, reported: now, interval }
            }
        };
        session.reported = now;
        self.ended.remove(&key);
        // What a report does not mention stays: not all reports of a session have all of its addresses.
        let is_kept = |kind: &Kind| !prefixes.iter().any(|(new, _)| new == kind);
        let kept = session.prefixes.iter().filter(|(kind, _)| is_kept(kind));
        let mut claimed: Vec<_> = kept.chain(&prefixes).copied().collect();
        let is_too_many = claimed.len() > MAX_PREFIXES;
        claimed.truncate(MAX_PREFIXES);
        let before = std::mem::take(&mut session.prefixes);
        for (_, prefix) in before {
            if !claimed.iter().any(|(_, new)| *new == prefix) {
                self.release(prefix, &key, changes);
            }
        }
        let columns = Some(vec![(NAS.into(), nas.name)]);
        let name = Name { label: Arc::clone(&session.label), columns };
        claimed.retain(|(_, prefix)| self.claim(*prefix, &key, session.began, &name, changes));
        session.prefixes = claimed;
        self.known.insert(key, session);
        if is_too_many { Outcome::NoRoom } else { Outcome::Done }
    }

    /// Gives a prefix to a session, unless one has it that began later. Returns whether it has it now.
    fn claim(
        &mut self,
        prefix: IpNet,
        key: &Key,
        began: Instant,
        name: &Name,
        changes: &mut Vec<Change>,
    ) -> bool {
        if let Some(owner) = self.owners.get(&prefix).filter(|owner| *owner != key)
            && let Some(other) = self.known.get_mut(owner)
        {
            if other.began > began {
                return false;
            }
            other.prefixes.retain(|(_, theirs)| *theirs != prefix);
        }
        self.adopted.forget(&prefix);
        self.owners.insert(prefix, key.clone());
        changes.push(Change::Set(prefix, name.clone()));
        true
    }

    /// Takes a prefix from a session, if it has it.
    fn release(&mut self, prefix: IpNet, key: &Key, changes: &mut Vec<Change>) {
        if self.owners.get(&prefix) == Some(key) {
            self.owners.remove(&prefix);
            changes.push(Change::Unset(prefix));
        }
    }

    fn stop(&mut self, key: &Key, report: &Report, now: Instant, changes: &mut Vec<Change>) {
        let happened = now.checked_sub(report.delay).unwrap_or(now);
        match self.known.get(key) {
            // It is the end of another session, which had the same number before.
            Some(known) if report.label.as_ref().is_some_and(|label| *label != known.label) => return,
            Some(known) if happened + ROUNDING < known.began => return,
            Some(_) => self.end(key, changes),
            None => {
                let prefixes = report.prefixes.iter().map(|(_, prefix)| *prefix);
                let free = prefixes.filter(|prefix| !self.owners.contains_key(prefix));
                self.adopted.stop(free, report.label.as_deref(), changes);
            }
        }
        if self.ended.len() < MAX_ENDED {
            self.ended.insert(key.clone(), happened);
        }
    }

    fn end(&mut self, key: &Key, changes: &mut Vec<Change>) {
        let prefixes = self.known.remove(key).map(|session| session.prefixes).unwrap_or_default();
        for (_, prefix) in prefixes {
            self.release(prefix, key, changes);
        }
    }

    fn end_all_of(&mut self, nas: &Nas, changes: &mut Vec<Change>) {
        let theirs: Vec<Key> = self.known.keys().filter(|(of, _)| of == nas).cloned().collect();
        tracing::info!("{} begins anew: {} sessions end", nas.name, theirs.len());
        for key in &theirs {
            self.end(key, changes);
        }
    }
}

#[cfg(test)]
mod tests;
