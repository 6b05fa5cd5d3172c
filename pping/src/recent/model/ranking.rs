//! The worst groups.

use pping_common::abi::Figure;

use super::{
    super::{
        answers::GroupAnswer,
        history::History,
        worst::{WorstAnswer, WorstGroupAnswer, WorstQuery},
    },
    Group, Key, Model,
};
use crate::worst::{MeasuredGroup, Ranked, Ranking, expected_rtt, from_millionths};

/// A series of a group, as it is ranked.
#[derive(Clone)]
struct Rank<'a> {
    group: &'a Group,
    key: &'a Key,
    hosts: Option<u64>,
    baseline: u64,
    figures: [u64; Figure::COUNT],
}

impl Ranked for Rank<'_> {
    fn figures(&self) -> &[u64; Figure::COUNT] {
        &self.figures
    }

    fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.group, other.group)
    }
}

impl Model {
    pub(in crate::recent) fn worst(&self, query: &WorstQuery) -> WorstAnswer {
        let by = query.by.figure();
        let mut ranking = Ranking::new(query.limit);
        let groups: Box<dyn Iterator<Item = &Group>> = match &query.level {
            None => Box::new(self.groups.values()),
            Some(level) => Box::new(self.at_level(level)),
        };
        for group in groups {
            let expected = expected_rtt(&group.name.columns);
            for (key, history) in &group.series {
                ranking.add(&self.rank_of(group, (key, history), expected));
            }
        }
        WorstAnswer {
            sequence: self.sequence,
            time: self.time,
            by: query.by,
            min_samples: self.min_samples,
            flows: self.worst.worst(query, self.number(), &self.names_of_networks),
            groups: ranking.worst(by).iter().filter_map(|rank| self.worst_group(rank)).collect(),
        }
    }

    /// Returns a series of a group, as it is ranked.
    fn rank_of<'a>(
        &self,
        group: &'a Group,
        (key, history): (&'a Key, &History),
        expected: Option<u64>,
    ) -> Rank<'a> {
        let recent = history.recent(self.number());
        let hosts = history.hosts(self.number());
        let baseline = expected.or_else(|| history.lowest()).unwrap_or(0);
        let rtts = recent.rtts();
        let [sent, received] = recent.traffic;
        let measured = MeasuredGroup {
            method: key.method,
            count: rtts.map_or(0, |rtts| rtts.count),
            p95: rtts.map_or(0, |rtts| rtts.percentiles[2]),
            hosts: &hosts,
            baseline,
            packets: sent.packets + received.packets,
            retransmissions: sent.retransmissions + received.retransmissions,
            bytes: sent.bytes + received.bytes,
        };
        Rank { group, key, hosts: hosts.count(), baseline, figures: measured.figures(self.min_samples) }
    }

    fn worst_group(&self, rank: &Rank<'_>) -> Option<WorstGroupAnswer> {
        let Rank { group, key, hosts, baseline, figures: [rtt, inflation, retransmissions, _] } = *rank;
        let prefix = self.first_prefix(&group.name);
        let level = group.name.level.clone();
        let GroupAnswer { id, group, labels, series, .. } = self.answer(group, |other| other == key);
        let series = series.into_iter().next()?;
        let has_packets = series.sent.packets + series.received.packets >= self.min_samples.max(1);
        Some(WorstGroupAnswer {
            id,
            group,
            level,
            prefix,
            labels,
            hosts,
            ranked_rtt: (rtt > 0).then_some(rtt),
            baseline: (rtt > 0).then_some(baseline),
            inflation: (rtt > 0).then_some(inflation),
            retransmissions: has_packets.then(|| from_millionths(retransmissions)),
            series,
        })
    }
}
