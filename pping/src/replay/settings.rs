//! The settings of a replay, fixed before the first packet.

use std::sync::Arc;

use ipnet::IpNet;
use pping_common::{
    abi::Emit,
    group::Grouping,
    hash::{TableKeys, siphash},
    limits::{DEFAULT_MAX_GROUPS, DEFAULT_MAX_NETWORKS, MAX_DNS_PORTS, MAX_QUERIES, max_unproved},
    matcher,
    parse::{Decap, Scope},
    rtt::Rules,
};

use crate::groups::{Lookup, Networks};

/// The settings, fixed before the first packet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The methods, and the limits of recording.
    pub rules: Rules,
    /// Whether each host of a flow is on another side of its interface.
    pub has_two_arms: bool,
    /// Nanoseconds within which a packet that passes again is a copy, which is left out; 0 leaves none out.
    pub copies_within: u64,
    /// The ports of DNS servers; unused entries are 0.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// The highest number of flows of each address family.
    pub max_flows: u32,
    /// How many of these flows need not be proved.
    pub max_unproved: u32,
    /// How many DNS queries of each address family may be pending.
    pub max_queries: u32,
    /// The keys by which sources share rings.
    pub ring_keys: TableKeys,
    /// The tunnels to decapsulate.
    pub decap: Decap,
    /// The grouping of flow directions.
    pub grouping: Grouping,
    /// Labels by prefix, if groups have labels.
    pub labels: Arc<Lookup>,
    /// The highest number of groups, without the group `other`.
    pub max_groups: u32,
    /// The networks at the other end, if they are told apart.
    pub networks: Networks,
    /// The highest number of these, without the remaining ones.
    pub max_networks: u32,
    /// Networks whose flows are not measured.
    pub exclude: Vec<IpNet>,
    /// Networks whose hosts are inside.
    pub inside: Vec<IpNet>,
    /// Which events to report.
    pub emit: Emit,
    /// How many of the worst flow directions to find in each interval, and how many packets each end must have sent to be ranked.
    pub worst: Option<(usize, u64)>,
}

impl Settings {
    /// Creates settings with one group and nothing excluded, which report samples, openings and closings.
    pub fn new(rules: Rules, max_flows: u32, decap: Decap) -> Self {
        Self {
            rules,
            has_two_arms: false,
            copies_within: 0,
            dns_ports: Scope::ALL.dns_ports,
            max_flows,
            max_unproved: max_unproved(max_flows, max_flows),
            max_queries: MAX_QUERIES,
            ring_keys: ring_keys(),
            decap,
            grouping: Grouping::NONE,
            labels: Arc::default(),
            max_groups: DEFAULT_MAX_GROUPS,
            networks: Networks::default(),
            max_networks: DEFAULT_MAX_NETWORKS,
            exclude: Vec::new(),
            inside: Vec::new(),
            emit: Emit::SAMPLES.with(Emit::FLOWS),
            worst: None,
        }
    }

    /// The part for the matcher.
    pub(super) fn into_matcher(self) -> matcher::Settings {
        let Self {
            rules,
            has_two_arms,
            copies_within,
            dns_ports,
            max_flows,
            max_unproved,
            max_queries,
            ring_keys,
            decap,
            ..
        } = self;
        matcher::Settings {
            rules,
            dns_ports,
            decap,
            has_two_arms,
            copies_within,
            max_flows,
            max_unproved,
            max_queries,
            ring_keys,
        }
    }
}

/// Keys that are no secret, so that the same file has the same result each time.
fn ring_keys() -> TableKeys {
    let mut number = 0;
    TableKeys::random(|| {
        number += 1;
        siphash([1, 0], [number])
    })
}
