//! Signs that pping is in the wrong place: it sees one direction of flows only, or `--inside` does not fit the traffic.

use std::fmt;

use pping_common::{abi::Counters, group::Side};

/// How many flows have to end before their share says something.
const LEAST_ENDED: u64 = 50;

/// What to do about flows of which only one direction was seen.
const ONE_DIRECTION: &str =
    "it may pass another port: join them (-i eth1+eth2), or let the mirror show both directions";

/// As [`ONE_DIRECTION`], for a capture.
const ONE_DIRECTION_CAPTURED: &str = "it may pass another port: capture both into one file and read it with --join, or let the mirror show both directions";

/// Flows that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedFlows {
    /// TCP flows with segments of one direction only.
    pub(crate) one_way: u64,
    /// All flows, without those that were evicted before they ended.
    pub(crate) all: u64,
}

impl EndedFlows {
    /// Reads them from counters.
    pub(crate) fn of(counters: &Counters) -> Self {
        let removed: u64 = counters.entries_deleted.iter().sum();
        Self { one_way: counters.one_way_flows, all: removed.saturating_sub(counters.evicted) }
    }

    /// The share of flows with one direction, in percent, once enough have ended.
    pub(crate) fn percent(self) -> Option<u64> {
        (self.all >= LEAST_ENDED).then(|| (100 * self.one_way / self.all).min(100))
    }

    /// Whether the other direction of this many percent of the flows passes somewhere else. Some are normal: hosts that vanished,
    /// scans, and flows that had just begun.
    pub(crate) const fn are_many(percent: u64) -> bool {
        percent >= 10
    }

    /// What is wrong, if that is so.
    pub(crate) fn warning(self, is_capture: bool) -> Option<OneDirection> {
        let percent = self.percent().filter(|&percent| Self::are_many(percent))?;
        Some(OneDirection { percent, is_capture })
    }
}

/// Says that the other direction of flows was not seen, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OneDirection {
    pub(crate) percent: u64,
    pub(crate) is_capture: bool,
}

impl fmt::Display for OneDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percent, is_capture } = self;
        let advice = if *is_capture { ONE_DIRECTION_CAPTURED } else { ONE_DIRECTION };
        write!(f, "the other direction of {percent} % of the flows was not seen; {advice}")
    }
}

/// Says that all hosts that replied are on this side of the network: then `--inside` may be wrong.
pub(crate) const fn only(side: Side) -> &'static str {
    match side {
        Side::Inside => "no host outside of the network replied; if one did, --inside names its network, too",
        Side::Outside => {
            "no host inside of the network replied; if one did, --inside does not name its network"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(one_way: u64, all: u64, evicted: u64) -> EndedFlows {
        EndedFlows::of(&Counters {
            one_way_flows: one_way,
            entries_deleted: [all, evicted],
            evicted,
            ..Counters::ZERO
        })
    }

    #[test]
    fn a_tenth_of_enough_flows_is_many() {
        for (few, all) in [(0, 0), (49, 49), (4, 50), (9, 99)] {
            assert_eq!(ended(few, all, 0).warning(false), None, "{few} of {all}");
        }
        for (many, all, percent) in [(5, 50, 10), (50, 50, 100), (333, 1_000, 33)] {
            let warning = ended(many, all, 0).warning(false);
            assert_eq!(warning, Some(OneDirection { percent, is_capture: false }), "{many} of {all}");
        }
    }

    #[test]
    fn evicted_flows_have_not_ended() {
        assert_eq!(ended(6, 50, 1_000_000).percent(), Some(12));
        assert_eq!(ended(6, 49, 1_000_000).percent(), None);
    }

    #[test]
    fn the_warning_says_what_to_do() {
        let said = |is_capture| ended(60, 80, 0).warning(is_capture).unwrap().to_string();
        assert!(
            said(false).starts_with("the other direction of 75 % of the flows was not seen; it may pass")
        );
        assert!(said(false).contains("(-i eth1+eth2)") && said(true).contains("--join"));
    }
}
