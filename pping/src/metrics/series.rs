//! The metrics of a series.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pping_common::{
    abi::{BUCKETS, Direction, LedgerTotals, Tally, Traffic},
    hist::{self, BINS_PER_OCTAVE},
    rtt::Method,
};

use super::{
    export::{Attributes, Pushed},
    inflation::Inflation,
    ledger::EntryRef,
    page,
};
use crate::{
    fingerprint::fingerprint,
    groups::SeriesName,
    records::{direction_name, method_name},
};

/// The identity of a series in metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesId {
    interface: Option<Arc<str>>,
    method: Method,
    matched: Option<Direction>,
    pub(super) group: Arc<str>,
}

impl SeriesId {
    /// The series `name`, counted under the label `group`.
    pub(super) fn new(name: &SeriesName, group: &Arc<str>) -> Self {
        let SeriesName { interface, method, matched, .. } = name;
        Self { interface: interface.clone(), method: *method, matched: *matched, group: Arc::clone(group) }
    }

    /// A hash that is the same in every run.
    pub(super) fn fingerprint(&self) -> u128 {
        let Self { interface, method, matched, group } = self;
        let matched = matched.map_or("", direction_name);
        fingerprint(&[interface.as_deref().unwrap_or_default(), method_name(*method), matched, group])
    }

    /// The labels by name.
    pub(super) fn attributes(&self) -> Attributes {
        let matched = self.matched.map_or("", direction_name);
        vec![
            ("interface".into(), self.interface.clone().unwrap_or_default()),
            ("method".into(), method_name(self.method).into()),
            ("matched".into(), matched.into()),
            ("group".into(), Arc::clone(&self.group)),
        ]
    }

    /// The labels and what separates them from the value, as in every line of the series.
    fn labels(&self) -> String {
        let mut labels = String::new();
        page::label(&mut labels, "interface", self.interface.as_deref().unwrap_or_default());
        page::label(&mut labels, "method", method_name(self.method));
        page::label(&mut labels, "matched", self.matched.map_or("", direction_name));
        page::label(&mut labels, "group", &self.group);
        labels.push_str("} ");
        labels
    }
}

/// A series.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) labels: Box<str>,
    /// Samples by bucket, not cumulative.
    buckets: [u64; BUCKETS],
    /// Sum of the RTTs, ns.
    pub(super) sum: u128,
    /// Sent by the hosts whose packets are timed, and by those that reply.
    pub(super) traffic: [Traffic; 2],
    pub(super) inflation: Inflation,
    /// Its entry in the ledger, if it has one.
    pub(super) entry: Option<EntryRef>,
    /// What is for an exporter, if there is one.
    pub(super) pushed: Option<Pushed>,
}

impl Series {
    pub(super) fn new(id: &SeriesId, baseline: Duration, now: Instant) -> Self {
        Self {
            labels: id.labels().into(),
            buckets: [0; BUCKETS],
            sum: 0,
            traffic: [Traffic::default(); 2],
            inflation: Inflation::new(baseline, now),
            entry: None,
            pushed: None,
        }
    }

    /// Adds what was measured since the last time.
    pub(super) fn add(&mut self, tally: &Tally, now: Instant) {
        self.traffic[0].add(&tally.sent);
        self.traffic[1].add(&tally.received);
        if let Some(pushed) = &mut self.pushed {
            pushed.add(tally);
        }
        if !tally.has_samples() {
            return;
        }
        self.sum += u128::from(tally.sum);
        self.buckets[0] += u64::from(tally.bins[hist::UNDERFLOW]);
        for (bucket, bins) in self.buckets[1..].iter_mut().zip(tally.bins[1..].chunks(BINS_PER_OCTAVE)) {
            *bucket += bins.iter().map(|&count| u64::from(count)).sum::<u64>();
        }
        self.inflation.add(tally, now);
    }

    /// Continues from the totals of an earlier run.
    pub(super) fn restore(&mut self, totals: &LedgerTotals) {
        let [low, high] = totals.sum;
        self.buckets = totals.buckets;
        self.sum = u128::from(high) << 64 | u128::from(low);
        self.traffic = totals.traffic;
    }

    /// The counters to keep.
    pub(super) fn totals(&self) -> LedgerTotals {
        let Self { buckets, sum, traffic, .. } = *self;
        LedgerTotals { buckets, sum: [sum as u64, (sum >> 64) as u64], traffic, ..LedgerTotals::ZERO }
    }

    /// The number of samples up to the bound of each bucket; the last is the number of all.
    pub(super) fn cumulative(&self) -> [u64; BUCKETS] {
        let mut sum = 0;
        self.buckets.map(|count| {
            sum += count;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::groups::GroupName;

    fn series(group: &str) -> Series {
        let name = GroupName { label: group.into(), prefix: None, dscp: None, more: Vec::new() };
        let name = SeriesName {
            interface: Some("eth0".into()),
            method: Method::TcpTs,
            matched: Some(Direction::Egress),
            group: name.into(),
        };
        let id = SeriesId::new(&name, &name.group.label);
        Series::new(&id, Duration::from_mins(10), Instant::now())
    }

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(
            &*series("a \"b\"\\c\nd").labels,
            "interface=\"eth0\",method=\"tcp-ts\",matched=\"egress\",group=\"a \\\"b\\\"\\\\c\\nd\"} "
        );
    }

    proptest! {
        #[test]
        fn buckets_count_samples_up_to_their_bound(rtts in prop::collection::vec((0_u32..40, 0_u64..9), 1..200)) {
            let rtts: Vec<u64> = rtts.into_iter().map(|(octave, offset)| (hist::upper_bound(0) << octave) + offset - 4).collect();
            let (mut tally, mut series) = (Tally::EMPTY, series("all"));
            for &rtt in &rtts {
                tally.sample(rtt);
            }
            series.add(&tally, Instant::now());
            series.add(&tally, Instant::now());
            let up_to = |bound: u64| 2 * rtts.iter().filter(|&&rtt| rtt <= bound).count() as u64;
            let expected: [u64; BUCKETS] = std::array::from_fn(|octave| match octave {
                octave if octave == BUCKETS - 1 => up_to(u64::MAX),
                octave => up_to((1_000_000_000 << octave) >> hist::FIRST_OCTAVE.unsigned_abs()),
            });
            prop_assert_eq!(series.cumulative(), expected);
            prop_assert_eq!(series.sum, 2 * rtts.iter().map(|&rtt| u128::from(rtt)).sum::<u128>());
        }
    }
}
