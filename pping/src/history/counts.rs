//! What was counted besides series: how much was seen, and what of it was not measured.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use pping_common::{
    abi::{Counters, PacketCounters},
    parse::Untracked,
};
use serde::{Deserialize, Serialize};

use super::time::{HOUR, Moment};
use crate::labels::untracked_name;

/// The seconds in which pping measured.
pub(crate) const SECONDS: &str = "seconds";

/// The packets of all interfaces.
pub(crate) const PACKETS: &str = "packets";

/// Begins the name of packets that were not tracked; the reason follows.
pub(crate) const UNTRACKED: &str = "untracked.";

/// Numbers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<Cow<'static, str>, u64>);

impl Counts {
    /// What is counted since the start of the counters. `lines_lost` are the records that could not be written.
    pub(crate) fn of(counters: &Counters, lines_lost: u64) -> Self {
        let packets = counters.traffic.iter().flatten().map(PacketCounters::packets).sum();
        let named = [
            (PACKETS, packets),
            ("samples", counters.samples.iter().flatten().sum()),
            ("recordings_skipped", counters.contended + counters.pending_full + counters.no_pending),
            ("unaggregated", counters.unaggregated),
            ("events_lost", counters.lost.iter().sum::<u64>() + lines_lost),
            ("one_way_flows", counters.one_way_flows),
            ("still_timestamps", counters.still_timestamps),
            ("dns_queries", counters.dns_queries.iter().sum()),
            ("dns_unanswered", counters.dns_unanswered),
        ];
        let untracked = Untracked::ALL.into_iter().map(|reason| {
            (format!("{UNTRACKED}{}", untracked_name(reason)).into(), counters.untracked[reason as usize])
        });
        let named = named.into_iter().map(|(name, count)| (name.into(), count));
        Self(named.chain(untracked).filter(|&(_, count)| count > 0).collect())
    }

    /// The count of seconds alone.
    pub(super) fn seconds(seconds: u64) -> Self {
        Self([(SECONDS.into(), seconds)].into())
    }

    /// What was counted since these counts. Counters of an interface that is gone are too, so less than before is nothing.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let more = |(name, count): (&Cow<'static, str>, &u64)| {
            (name.clone(), count.saturating_sub(earlier.get(name)))
        };
        Self(self.0.iter().map(more).filter(|&(_, count)| count > 0).collect())
    }

    /// Adds those of another time.
    pub(super) fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The count with a name.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

/// Counts by the hour in which they were counted, seconds since the Unix epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct HourlyCounts(BTreeMap<Moment, Counts>);

impl HourlyCounts {
    /// Those of a moment.
    pub(super) fn at(moment: Moment, counts: Counts) -> Self {
        Self([(moment - moment % HOUR, counts)].into())
    }

    /// Adds others.
    pub(super) fn add(&mut self, other: &Self) {
        for (hour, counts) in &other.0 {
            self.0.entry(*hour).or_default().add(counts);
        }
    }

    /// The sum of the hours that begin in a range.
    pub(super) fn sum(&self, range: &Range<Moment>) -> Counts {
        let mut sum = Counts::default();
        for (_, counts) in self.0.iter().filter(|(hour, _)| range.contains(hour)) {
            sum.add(counts);
        }
        sum
    }

    /// The hours that begin in a range, each with the seconds in which pping measured.
    pub(super) fn measured(&self, range: &Range<Moment>) -> impl Iterator<Item = (Moment, u64)> {
        self.0.range(range.clone()).map(|(&hour, counts)| (hour, counts.get(SECONDS)))
    }

    /// As a fact about a file.
    pub(super) fn to_fact(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From the fact about a file; nothing if that is damaged.
    pub(super) fn from_fact(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}
