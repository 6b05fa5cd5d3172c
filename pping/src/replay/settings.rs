//! The settings of a replay, fixed before the first packet.

use std::sync::Arc;

use ipnet::IpNet;
use pping_common::{
    abi::Emit,
    group::Grouping,
    limits::{DEFAULT_MAX_GROUPS, MAX_DNS_PORTS, UNANSWERED_SHARE},
    parse::{Decap, Scope},
    rtt::Rules,
};

use crate::groups::Lookup;

/// The settings, fixed before the first packet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The methods, and the limits of recording.
    pub rules: Rules,
    /// Ports that DNS servers listen at; 0 is none.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// Flows per address family.
    pub max_flows: u32,
    /// Of those, how many may be unanswered.
    pub max_unanswered: u32,
    /// The tunnels of which the inside is measured.
    pub decap: Decap,
    /// The grouping of flow directions.
    pub grouping: Grouping,
    /// Labels by prefix, where groups are made of those.
    pub labels: Arc<Lookup>,
    /// Groups, beside that of all others.
    pub max_groups: u32,
    /// Networks whose flows are not measured.
    pub exclude: Vec<IpNet>,
    /// Which events to report.
    pub emit: Emit,
    /// How many of the worst flow directions to find at the end of each interval, and the packets that both ends need.
    pub worst: Option<(usize, u64)>,
}

impl Settings {
    /// One group, nothing excluded; samples, openings and closings are reported.
    pub fn new(rules: Rules, max_flows: u32, decap: Decap) -> Self {
        Self {
            rules,
            dns_ports: Scope::ALL.dns_ports,
            max_flows,
            max_unanswered: max_flows / UNANSWERED_SHARE,
            decap,
            grouping: Grouping::NONE,
            labels: Arc::default(),
            max_groups: DEFAULT_MAX_GROUPS,
            exclude: Vec::new(),
            emit: Emit::SAMPLES.and(Emit::FLOWS),
            worst: None,
        }
    }
}
