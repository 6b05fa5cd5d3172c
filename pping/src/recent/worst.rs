//! The worst flows and groups of the recent past.

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, sync::Arc};

use pping_common::{abi::Figure, method::Method, parse::Direction};
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{answers::SeriesAnswer, order::check_level};
#[cfg(test)]
use crate::schemas;
use crate::{
    groups::{Levels, Networks},
    records::Tuple,
    worst::{By, MAX_SHOWN, Ranking, WorstFlow},
};

/// How the worst are ranked, and how many are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorstQuery {
    /// Figure that ranks them.
    pub by: By,
    /// Highest number of flows, and of groups, in the response.
    #[serde(deserialize_with = "limit")]
    #[cfg_attr(test, schemars(range(max = MAX_SHOWN)))]
    pub limit: usize,
    /// Level of the tree of groups (`--roll-up`), or `network` (`--remote-groups`): its nodes are ranked instead of groups.
    pub level: Option<String>,
}

impl Default for WorstQuery {
    fn default() -> Self {
        Self { by: By::default(), limit: 20, level: None }
    }
}

impl WorstQuery {
    /// Checks that the level is there.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, levels: &Levels, has_networks: bool) -> Result<(), String> {
        self.level.as_ref().map_or(Ok(()), |level| check_level("level", level, levels, has_networks))
    }
}

/// Reads the highest number of flows and groups.
fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let limit = usize::deserialize(deserializer)?;
    if limit > MAX_SHOWN {
        return Err(D::Error::custom(format_args!("at most {MAX_SHOWN} are ranked")));
    }
    Ok(limit)
}

/// The worst flows and groups, the worst first.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Worst"))]
pub struct WorstAnswer {
    /// Goes up with each change. A client that finds the same number again has missed nothing.
    pub sequence: u64,
    /// Time of the latest change, ns since the Unix epoch.
    pub time: u64,
    /// Figure that ranks them.
    pub by: By,
    /// Packets that each end of a flow must have sent to be ranked, or samples or packets that a group must have
    /// (--worst-min-samples).
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub min_samples: u64,
    /// Flow directions of the last 10 to 20 seconds; empty for a capture.
    pub flows: Vec<WorstFlowAnswer>,
    /// Groups, or nodes of a level, or networks, in the last minute, each with its worst series.
    pub groups: Vec<WorstGroupAnswer>,
}

/// One of the worst flow directions. Its figures are those of the second in which the figure that ranks it (`by`) was highest.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "WorstFlow"))]
pub struct WorstFlowAnswer {
    /// The host that replies.
    #[cfg_attr(test, schemars(with = "schemas::Address"))]
    pub src_ip: IpAddr,
    /// Its port, or the identifier of an ICMP echo.
    pub src_port: u16,
    /// The host whose packets are timed.
    #[cfg_attr(test, schemars(with = "schemas::Address"))]
    pub dest_ip: IpAddr,
    /// Its port, or the identifier of an ICMP echo.
    pub dest_port: u16,
    /// Protocol of the flow.
    #[cfg_attr(test, schemars(with = "schemas::FlowProtocol"))]
    pub protocol: Cow<'static, str>,
    /// Network of `src_ip`, by `--remote-groups`; absent without it, and if the address is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src_network: Option<Arc<str>>,
    /// Network of `dest_ip`, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest_network: Option<Arc<str>>,
    /// Name of the interface; null if it has none.
    pub interface: Option<Arc<str>>,
    /// Label of the group; null if the flow is in none.
    pub group: Option<Arc<str>>,
    /// Method that measured the RTTs.
    #[cfg_attr(test, schemars(with = "schemas::MethodName"))]
    pub method: Cow<'static, str>,
    /// Direction in which echoes pass the interface; null if the capture has no directions.
    #[cfg_attr(test, schemars(with = "Option<schemas::DirectionName>"))]
    pub matched: Option<Cow<'static, str>>,
    /// Side of the network that the host that replies is on; absent without `--inside`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<Cow<'static, str>>,
    /// Smoothed RTT (RFC 6298), ns; null without samples, and with the method `quic-spin`.
    pub smoothed_rtt: Option<u64>,
    /// Lowest RTT so far, ns; null if `smoothed_rtt` is null.
    pub min_rtt: Option<u64>,
    /// `smoothed_rtt` minus `min_rtt`, ns; null if `smoothed_rtt` is null.
    pub inflation: Option<u64>,
    /// Share of the packets from `dest_ip` that were retransmissions, since the flow began.
    pub retransmissions: f64,
    /// Packets that `dest_ip` sent since the flow began.
    pub packets: u64,
    /// Bytes of payload that `dest_ip` sent in the second in which the figure that ranks the flow was highest. Only in the
    /// ranking by `bytes` is this its busiest second.
    pub bytes: u64,
}

/// One of the worst groups, with the series that ranks it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "WorstGroup"))]
pub struct WorstGroupAnswer {
    /// Identifier of the group, the same in every run.
    #[cfg_attr(test, schemars(pattern("^[0-9a-f]{32}$")))]
    pub id: String,
    /// Label of the group, or path of the node.
    pub group: Arc<str>,
    /// Level of a node; absent for a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Arc<str>>,
    /// First of the group's prefixes, in the order of addresses; null if it has none. If both ends of a flow make the group, the
    /// first of each, joined by `+`: that of the host that replied comes first.
    pub prefix: Option<Arc<str>>,
    /// Values of the other columns of the groups file, by column.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Estimated number of hosts that replied in the last minute or two, at most 266. Null without samples, and without groups.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub hosts: Option<u64>,
    /// RTT that ranks the group, ns: the 95th percentile, limited to an RTT that enough hosts had. Enough is one host in twenty,
    /// and at least two if the group has two or more. The limit is the end of the highest octave in or above which that many
    /// hosts had samples. Null with fewer samples than `min_samples`, and with the method `quic-spin`.
    pub ranked_rtt: Option<u64>,
    /// RTT that `ranked_rtt` is compared with, ns: the `expected_rtt` of the group in the groups file, or else its lowest RTT of
    /// the last 15 minutes. Null if `ranked_rtt` is null.
    pub baseline: Option<u64>,
    /// Excess of `ranked_rtt` over `baseline`, ns; 0 if it is lower. Null if `ranked_rtt` is null.
    pub inflation: Option<u64>,
    /// Share of the packets in both flow directions that were retransmissions; null with fewer packets than `min_samples`.
    pub retransmissions: Option<f64>,
    /// The series that ranks the group.
    pub series: SeriesAnswer,
}

impl WorstFlowAnswer {
    /// Converts a flow; `None` if it has values that no kernel program reports.
    fn new(flow: &WorstFlow, networks: &Networks) -> Option<Self> {
        let candidate = &flow.candidate;
        let Tuple { src_ip, src_port, dest_ip, dest_port, protocol, .. } = Tuple::new(&candidate.endpoints)?;
        let rtts = flow.rtts();
        Some(Self {
            src_ip,
            src_port,
            dest_ip,
            dest_port,
            protocol: protocol.into(),
            src_network: networks.label(src_ip),
            dest_network: networks.label(dest_ip),
            interface: flow.interface.clone(),
            group: flow.of.group.clone(),
            method: Method::from_number(candidate.method)?.name().into(),
            matched: Direction::from_number(candidate.direction).map(|it| it.name().into()),
            side: flow.of.side.map(|side| side.name().into()),
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
    pub(super) fn worst(&self, query: &WorstQuery, number: u64, networks: &Networks) -> Vec<WorstFlowAnswer> {
        let WorstQuery { by, limit, level: _ } = *query;
        let mut both = Ranking::new(MAX_SHOWN);
        for (age, ranking) in [&self.present, &self.before].into_iter().enumerate() {
            if self.number + 1 >= number + age as u64 {
                for flow in ranking.worst(by.figure()) {
                    both.add(flow);
                }
            }
        }
        both.worst(by.figure())
            .iter()
            .take(limit)
            .filter_map(|flow| WorstFlowAnswer::new(flow, networks))
            .collect()
    }
}
