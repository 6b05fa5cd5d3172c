//! The hosts that replied with the samples of a series in the last minute.

use pping_common::series::SeriesCounts;

use crate::worst::Hosts;

/// The hosts of this minute and of the one before. They cover up to a minute more than the samples do, but take a small
/// part of the memory that a set for each cell would.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentHosts {
    /// The number of the present minute.
    minute: u64,
    present: Hosts,
    before: Hosts,
}

impl RecentHosts {
    /// Adds the hosts of a second of this minute. If the clock goes back, they count for the present minute.
    pub(super) fn add(&mut self, minute: u64, counts: &SeriesCounts) {
        self.advance(minute);
        self.present.add(counts);
    }

    /// Drops hosts that are older than the minute before this one.
    pub(super) fn advance(&mut self, minute: u64) {
        if minute <= self.minute {
            return;
        }
        let present = std::mem::take(&mut self.present);
        self.before = if minute == self.minute + 1 { present } else { Hosts::NONE };
        self.minute = minute;
    }

    /// Returns the hosts of this minute and of the one before.
    pub(super) fn recent(&self, minute: u64) -> Hosts {
        let mut recent = Hosts::NONE;
        if self.minute + 1 >= minute {
            recent.merge(&self.present);
        }
        if self.minute >= minute {
            recent.merge(&self.before);
        }
        recent
    }

    /// Returns the memory that it takes beside itself, bytes.
    pub(super) fn size(&self) -> usize {
        self.present.size() + self.before.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(host: u64) -> SeriesCounts {
        let mut counts = SeriesCounts::EMPTY;
        counts.sample(1_000_000, host);
        counts
    }

    #[test]
    fn hosts_are_known_for_a_minute_or_two() {
        let mut hosts = RecentHosts::default();
        hosts.add(7, &counts(1));
        hosts.add(8, &counts(2));
        // A clock that goes back loses no host.
        hosts.add(6, &counts(4));
        let count = |hosts: &RecentHosts, minute| hosts.recent(minute).count();
        assert_eq!([7, 8, 9, 10].map(|minute| count(&hosts, minute)), [Some(3), Some(3), Some(2), None]);
        hosts.add(9, &counts(1));
        assert_eq!(count(&hosts, 9), Some(3));
        hosts.add(11, &counts(8));
        assert_eq!(count(&hosts, 11), Some(1));
    }

    #[test]
    fn what_is_forgotten_takes_no_memory() {
        let mut hosts = RecentHosts::default();
        hosts.add(7, &counts(1));
        assert!(hosts.size() > 0);
        hosts.advance(9);
        assert_eq!(hosts.size(), 0);
    }
}
