//! The metrics of groups, those of the nodes of the tree of groups, and those of the networks at the other end.
//!
//! Nodes and networks have their own metrics, because a sample of a group counts again at each level, and for its network: a sum
//! over the series of one metric would have it several times.

use pping_common::series::Traffic;

use super::metric::{Kind, Metric};

/// How a count is read from traffic.
pub(super) type ReadTraffic = fn(&Traffic) -> u64;

/// The metrics of the series of groups, of nodes, or of networks.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) rtt: Metric,
    pub(super) min_rtt: Metric,
    pub(super) baseline: Metric,
    pub(super) inflation: Metric,
    pub(super) quality: Metric,
    /// The columns of the file.
    pub(super) columns: Metric,
    /// The traffic of the hosts whose packets are timed and of those that reply, and how it is read.
    pub(super) traffic: [(Metric, ReadTraffic); 3],
}

impl Families {
    /// All of them.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &Metric> {
        let Self { rtt, min_rtt, baseline, inflation, quality, columns, traffic } = self;
        traffic.iter().map(|(metric, _)| metric).chain([rtt, min_rtt, baseline, inflation, quality, columns])
    }
}

/// The label `sender` of [`Families::traffic`].
pub(super) const SENDERS: [&str; 2] = ["timed", "replying"];

pub(super) static OF_GROUPS: Families = Families {
    rtt: Metric::new(
        Kind::Histogram,
        "pping_rtt",
        "s",
        "Round-trip times between this host and the host that replied",
    ),
    min_rtt: Metric::gauge("pping_min_rtt", "s", "Lowest round-trip time of the last minute"),
    baseline: Metric::gauge(
        "pping_rtt_baseline",
        "s",
        "Lowest round-trip time of the window that --baseline sets",
    ),
    inflation: Metric::gauge(
        "pping_rtt_inflation",
        "s",
        "Excess of a percentile of the last minute's round-trip times over the baseline",
    ),
    quality: Metric::gauge(
        "pping_quality",
        "1",
        "Score of the last minute by the requirements of a profile: 1 is optimal, 0 is unacceptable",
    ),
    columns: Metric::new(Kind::Info, "pping_group", "", "Columns of the groups file, by group"),
    traffic: [
        (
            Metric::counter(
                "pping_group_packets",
                "{packet}",
                "Packets of a group's flows, by the role of their sender: timed or replying",
            ),
            |traffic| traffic.packets,
        ),
        (
            Metric::counter(
                "pping_group_bytes",
                "By",
                "Bytes of payload above the transport header in a group's flows",
            ),
            |traffic| traffic.bytes,
        ),
        (
            Metric::counter(
                "pping_group_tcp_retransmissions",
                "{segment}",
                "TCP segments retransmitted in a group's flows",
            ),
            |traffic| traffic.retransmissions,
        ),
    ],
};

pub(super) static OF_NODES: Families = Families {
    rtt: Metric::new(
        Kind::Histogram,
        "pping_level_rtt",
        "s",
        "Round-trip times of all groups of a node, which count once at each level of the tree",
    ),
    min_rtt: Metric::gauge(
        "pping_level_min_rtt",
        "s",
        "Lowest round-trip time of the last minute, of all groups of a node",
    ),
    baseline: Metric::gauge(
        "pping_level_rtt_baseline",
        "s",
        "Lowest round-trip time of the window that --baseline sets, of all groups of a node",
    ),
    inflation: Metric::gauge(
        "pping_level_rtt_inflation",
        "s",
        "Excess of a percentile of the last minute's round-trip times over the baseline, of all groups of a node",
    ),
    quality: Metric::gauge(
        "pping_level_quality",
        "1",
        "Score of the last minute by the requirements of a profile, of all groups of a node together",
    ),
    columns: Metric::new(Kind::Info, "pping_level", "", "Columns of the groups file, by node of the tree"),
    traffic: [
        (
            Metric::counter(
                "pping_level_packets",
                "{packet}",
                "Packets of all groups of a node, by the role of their sender: timed or replying",
            ),
            |traffic| traffic.packets,
        ),
        (
            Metric::counter(
                "pping_level_bytes",
                "By",
                "Bytes of payload above the transport header, of all groups of a node",
            ),
            |traffic| traffic.bytes,
        ),
        (
            Metric::counter(
                "pping_level_tcp_retransmissions",
                "{segment}",
                "TCP segments retransmitted in flows of all groups of a node",
            ),
            |traffic| traffic.retransmissions,
        ),
    ],
};

pub(super) static OF_NETWORKS: Families = Families {
    rtt: Metric::new(
        Kind::Histogram,
        "pping_network_rtt",
        "s",
        "Round-trip times of all flows with a network at their other end",
    ),
    min_rtt: Metric::gauge(
        "pping_network_min_rtt",
        "s",
        "Lowest round-trip time of the last minute, of all flows with a network",
    ),
    baseline: Metric::gauge(
        "pping_network_rtt_baseline",
        "s",
        "Lowest round-trip time of the window that --baseline sets, of all flows with a network",
    ),
    inflation: Metric::gauge(
        "pping_network_rtt_inflation",
        "s",
        "Excess of a percentile of the last minute's round-trip times over the baseline, of all flows with a network",
    ),
    quality: Metric::gauge(
        "pping_network_quality",
        "1",
        "Score of the last minute by the requirements of a profile, of all flows with a network",
    ),
    columns: Metric::new(Kind::Info, "pping_network", "", "What the file of networks says of each"),
    traffic: [
        (
            Metric::counter(
                "pping_network_packets",
                "{packet}",
                "Packets of all flows with a network, by the role of their sender: timed or replying",
            ),
            |traffic| traffic.packets,
        ),
        (
            Metric::counter(
                "pping_network_bytes",
                "By",
                "Bytes of payload above the transport header, of all flows with a network",
            ),
            |traffic| traffic.bytes,
        ),
        (
            Metric::counter(
                "pping_network_tcp_retransmissions",
                "{segment}",
                "TCP segments retransmitted in flows with a network",
            ),
            |traffic| traffic.retransmissions,
        ),
    ],
};
