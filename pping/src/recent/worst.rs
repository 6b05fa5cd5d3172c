//! The worst flows and groups of the recent past.

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, sync::Arc};

use pping_common::{abi::Figure, method::Method, parse::Direction};
use serde::{Deserialize, Serialize};

use super::answers::SeriesAnswer;
use crate::{
    records::Tuple,
    worst::{By, MAX_SHOWN, Ranking, WorstFlow},
};

/// How the worst are ranked, and how many are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorstQuery {
    /// The figure that ranks.
    pub by: By,
    /// The highest number of flows, and of groups; no more than a hundred.
    pub limit: usize,
}

impl Default for WorstQuery {
    fn default() -> Self {
        Self { by: By::default(), limit: 20 }
    }
}

/// The worst flows and groups, the worst first.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WorstAnswer {
    /// As in [`Summary`](super::Summary).
    pub sequence: u64,
    /// The time of the latest change.
    pub time: u64,
    /// The figure that ranks them.
    pub by: By,
    /// The packets that both ends of a flow must have sent, or the samples or packets that a group must have.
    pub min_samples: u64,
    /// Flow directions of the last 10 to 20 seconds.
    pub flows: Vec<WorstFlowAnswer>,
    /// Groups in the last minute, each with its worst series.
    pub groups: Vec<WorstGroupAnswer>,
}

/// A flow direction among the worst, as it was when it was the worst.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WorstFlowAnswer {
    /// The host that replies.
    pub src_ip: IpAddr,
    /// Its port, or the ICMP echo identifier.
    pub src_port: u16,
    /// The host whose packets are timed.
    pub dest_ip: IpAddr,
    /// Its port, or the ICMP echo identifier.
    pub dest_port: u16,
    /// `TCP`, `QUIC`, `ICMP` or `ICMPv6`.
    pub protocol: Cow<'static, str>,
    /// The interface, if it has a name.
    pub interface: Option<Arc<str>>,
    /// The label of the group, if it is in one.
    pub group: Option<Arc<str>>,
    /// The method.
    pub method: Cow<'static, str>,
    /// The direction in which echoes pass.
    pub matched: Option<Cow<'static, str>>,
    /// The smoothed RTT, ns; null without one.
    pub smoothed_rtt: Option<u64>,
    /// The lowest RTT, ns.
    pub min_rtt: Option<u64>,
    /// The difference of the two, ns.
    pub inflation: Option<u64>,
    /// The share of packets that `dest` retransmitted.
    pub retransmissions: f64,
    /// Packets that `dest` sent since the flow began.
    pub packets: u64,
    /// Bytes that `dest` sent in the second in which the figure that ranks the flow was highest.
    pub bytes: u64,
}

/// A group among the worst.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WorstGroupAnswer {
    /// As in [`GroupAnswer`](super::GroupAnswer).
    pub id: String,
    /// The label.
    pub group: Arc<str>,
    /// As in [`GroupAnswer`](super::GroupAnswer).
    pub prefix: Option<Arc<str>>,
    /// The other columns of the groups file.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The number of hosts that replied in the last minute or two, about; null without samples, or without groups.
    pub hosts: Option<u64>,
    /// The RTT that ranks the group, ns: as much of the 95th percentile as enough hosts support.
    pub ranked_rtt: Option<u64>,
    /// The RTT to compare with, ns: the expected RTT of the group, or the lowest of the last 15 minutes.
    pub baseline: Option<u64>,
    /// The difference of the two, ns.
    pub inflation: Option<u64>,
    /// The share of packets that were retransmitted; null with too few packets.
    pub retransmissions: Option<f64>,
    /// The series that ranks the group.
    pub series: SeriesAnswer,
}

impl WorstFlowAnswer {
    /// Converts a flow; `None` if it has values that no kernel program reports.
    fn new(flow: &WorstFlow) -> Option<Self> {
        let candidate = &flow.candidate;
        let Tuple { src_ip, src_port, dest_ip, dest_port, protocol } = Tuple::new(&candidate.endpoints)?;
        let rtts = flow.rtts();
        Some(Self {
            src_ip,
            src_port,
            dest_ip,
            dest_port,
            protocol: protocol.into(),
            interface: flow.interface.clone(),
            group: flow.group.clone(),
            method: Method::from_number(candidate.method)?.name().into(),
            matched: Direction::from_number(candidate.direction).map(|it| it.name().into()),
            smoothed_rtt: rtts.map(|rtts| rtts.smoothed),
            min_rtt: rtts.map(|rtts| rtts.min),
            inflation: rtts.map(|rtts| rtts.inflation),
            retransmissions: flow.retransmissions(),
            packets: candidate.packets,
            bytes: candidate.figures[Figure::Bytes as usize],
        })
    }
}

/// The worst flows of this cell and of the one before.
#[derive(Debug)]
pub(super) struct WorstFlows {
    number: u64,
    present: Ranking<WorstFlow>,
    before: Ranking<WorstFlow>,
}

impl Default for WorstFlows {
    fn default() -> Self {
        Self { number: 0, present: Ranking::new(MAX_SHOWN), before: Ranking::new(MAX_SHOWN) }
    }
}

impl WorstFlows {
    /// Adds the worst flows of a second in the cell with this number.
    pub(super) fn add(&mut self, number: u64, flows: &[WorstFlow]) {
        self.advance(number);
        for flow in flows {
            self.present.add(flow);
        }
    }

    fn advance(&mut self, number: u64) {
        if number == self.number {
            return;
        }
        std::mem::swap(&mut self.present, &mut self.before);
        self.present.clear();
        if number != self.number + 1 {
            self.before.clear();
        }
        self.number = number;
    }

    /// Returns the worst by a figure, when the present cell has this number.
    pub(super) fn worst(&self, WorstQuery { by, limit }: WorstQuery, number: u64) -> Vec<WorstFlowAnswer> {
        let mut both = Ranking::new(MAX_SHOWN);
        for (age, ranking) in [&self.present, &self.before].into_iter().enumerate() {
            if self.number + 1 >= number + age as u64 {
                for flow in ranking.worst(by.figure()) {
                    both.add(flow);
                }
            }
        }
        both.worst(by.figure()).iter().take(limit).filter_map(WorstFlowAnswer::new).collect()
    }
}
