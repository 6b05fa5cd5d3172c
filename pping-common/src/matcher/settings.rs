//! What is measured, and how much is remembered.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
};

use crate::{
    hash::{SipKey, TableKeys},
    limits::{DEFAULT_MAX_FLOWS, MAX_DNS_PORTS, MAX_QUERIES, max_unproved},
    parse::{Decap, Scope},
    rtt::Rules,
};

/// What a [`Matcher`](super::Matcher) measures, and how much it remembers. Fixed when it is created.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The methods, and the limits of recording.
    pub rules: Rules,
    /// The ports of DNS servers; 0 is none.
    pub dns_ports: [u16; MAX_DNS_PORTS],
    /// The tunnels to enter.
    pub decap: Decap,
    /// Whether each host of a flow is on another side of the interface, as on a router. Then packets need a direction, and a
    /// packet that comes from the wrong side gives no sample. It cannot hold for a mirror port.
    pub has_two_arms: bool,
    /// Nanoseconds within which a packet that passes again is a copy, as a mirror of several ports shows them, and is left out;
    /// 0 leaves none out. At most a second.
    pub copies_within: u64,
    /// The highest number of flows of each address family. While there are that many, no flow begins, unless one of them has
    /// been idle too long.
    pub max_flows: u32,
    /// How many of these flows need not be proved. A TCP flow is proved once both ends have sent a segment after their SYN, any
    /// other once a packet has been answered. Beyond that number a new flow takes the place of an old one that is not proved,
    /// so a flood of first packets does not keep other flows out. A prefix (/24 of IPv4, /56 of IPv6) has one eighth of
    /// the places.
    pub max_unproved: u32,
    /// How many DNS queries of each address family may be pending. Beyond that a new query takes the place of an old one. A
    /// prefix has one eighth of the places.
    pub max_queries: u32,
    /// The keys by which sources share rings.
    #[doc(hidden)]
    pub ring_keys: TableKeys,
}

impl Settings {
    /// The default limits: 131,072 flows and 32,768 DNS queries of each address family. DNS is expected on port 53, no tunnel
    /// is entered, and the packets may come from a mirror port.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            dns_ports: Scope::ALL.dns_ports,
            decap: Decap::NONE,
            has_two_arms: false,
            copies_within: 0,
            max_flows: DEFAULT_MAX_FLOWS,
            max_unproved: max_unproved(DEFAULT_MAX_FLOWS, DEFAULT_MAX_FLOWS),
            max_queries: MAX_QUERIES,
            ring_keys: TableKeys::random(|| RandomState::new().build_hasher().finish()),
        }
    }

    /// The key by which copies are told, as secret as those of rings.
    pub(super) fn copies_key(&self) -> SipKey {
        [1, 2].map(|word| self.ring_keys.digest([word]))
    }

    /// The same with room for `max_flows` flows of each address family, of which one in eight need not be proved, and for no
    /// more DNS queries than that.
    #[must_use]
    pub fn with_max_flows(self, max_flows: u32) -> Self {
        let max_queries = MAX_QUERIES.min(max_flows);
        Self { max_flows, max_unproved: max_unproved(max_flows, max_flows), max_queries, ..self }
    }
}
