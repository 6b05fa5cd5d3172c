//! Ranks the worst flows and groups of an interval.

use indexmap::IndexMap;
use pping_common::abi::Figure;

use super::{
    aggregate::AggregateRecord,
    record::Record,
    worst::{Rank, WorstFlowRecord, WorstGroupRecord},
};
use crate::worst::{By, Hosts, MeasuredGroup, Ranked, Ranking, WorstFlow, expected_rtt, from_millionths};

/// A series of a group, with the figures that rank it.
#[derive(Clone)]
struct RankedSeries<'a> {
    record: &'a AggregateRecord,
    hosts: &'a Hosts,
    baseline: u64,
    figures: [u64; Figure::COUNT],
    /// The share of packets that were retransmitted; `None` with too few packets.
    retransmissions: Option<f64>,
}

impl<'a> RankedSeries<'a> {
    fn new(record: &'a AggregateRecord, hosts: &'a Hosts, min_samples: u64) -> Self {
        let rtts = record.rtts.as_ref();
        let lowest = rtts.map_or(0, |rtts| rtts.min);
        let baseline = expected_rtt(&record.labels).unwrap_or(lowest);
        let measured = MeasuredGroup {
            method: record.method,
            count: record.count,
            p95: rtts.map_or(0, |rtts| rtts.p95),
            hosts,
            baseline,
            packets: record.sent_packets + record.rec_packets,
            retransmissions: record.sent_retransmissions + record.rec_retransmissions,
            bytes: record.sent_bytes + record.rec_bytes,
        };
        let figures = measured.figures(min_samples);
        let retransmissions = measured.has_packets(min_samples).then(|| {
            let [.., again, _] = figures;
            from_millionths(again)
        });
        Self { record, hosts, baseline, figures, retransmissions }
    }

    fn record(&self, rank: Rank) -> WorstGroupRecord {
        let Self { record, hosts, baseline, figures: [rtt, inflation, ..], retransmissions } = *self;
        let has_rtt = rtt > 0;
        WorstGroupRecord {
            rank,
            group: record.group.clone(),
            level: record.level.clone(),
            path: record.path.clone(),
            count: record.count,
            hosts: hosts.count(),
            p95: record.rtts.filter(|_| has_rtt).map(|rtts| rtts.p95),
            ranked_rtt: has_rtt.then_some(rtt),
            baseline: has_rtt.then_some(baseline),
            inflation: has_rtt.then_some(inflation),
            retransmission_ratio: retransmissions,
            bytes: record.sent_bytes + record.rec_bytes,
            method: record.method,
            matched: record.matched,
            side: record.side,
            interface: record.interface.clone(),
        }
    }
}

impl Ranked for RankedSeries<'_> {
    fn figures(&self) -> &[u64; Figure::COUNT] {
        &self.figures
    }

    fn is_same(&self, other: &Self) -> bool {
        self.record.name() == other.record.name()
    }
}

/// The worst of the present interval.
#[derive(Debug)]
pub(super) struct Worst {
    limit: usize,
    min_samples: u64,
    flows: Ranking<WorstFlow>,
}

impl Worst {
    /// Creates an empty ranking of up to `limit` flows and groups by each figure, for those with at least so many samples or packets.
    pub(super) fn new(limit: usize, min_samples: u64) -> Self {
        Self { limit, min_samples, flows: Ranking::new(limit) }
    }

    /// Adds the worst flows of a part of the interval.
    pub(super) fn add(&mut self, flows: &[WorstFlow]) {
        for flow in flows {
            self.flows.add(flow);
        }
    }

    /// Forgets the flows.
    pub(super) fn clear(&mut self) {
        self.flows.clear();
    }

    /// Makes the records of the worst for the interval of `window` ns that ended at `timestamp`, and forgets its flows. `aggregates`
    /// are its aggregates, with their hosts.
    pub(super) fn records<'a>(
        &mut self,
        aggregates: impl Iterator<Item = (&'a AggregateRecord, &'a Hosts)>,
        (timestamp, window): (u64, u64),
    ) -> Vec<Record> {
        // Groups come first, and then each level of the tree.
        let mut levels: IndexMap<_, Ranking<_>> = IndexMap::from([(None, Ranking::new(self.limit))]);
        for (record, hosts) in aggregates {
            let level = levels.entry(record.level.as_ref()).or_insert_with(|| Ranking::new(self.limit));
            level.add(&RankedSeries::new(record, hosts, self.min_samples));
        }
        let mut records = Vec::new();
        for by in By::ALL {
            let rank_of = |index| Rank { timestamp, window, worst: by, rank: index + 1 };
            let flows = self.flows.worst(by.figure()).iter().enumerate();
            records.extend(flows.filter_map(|(index, flow)| {
                Some(Record::WorstFlow(Box::new(WorstFlowRecord::new(flow, rank_of(index))?)))
            }));
            for level in levels.values() {
                let ranked = level.worst(by.figure()).iter().enumerate();
                records.extend(
                    ranked.map(|(index, series)| Record::WorstGroup(Box::new(series.record(rank_of(index))))),
                );
            }
        }
        self.clear();
        records
    }
}
