//! DNS queries and their responses (RFC 1035). They belong to no flow: each pending query has its own entry.
//!
//! A query that is repeated while it is pending gives no sample, because a response may answer either of the two. After
//! [`DNS_TIMEOUT_SECONDS`] a query counts as unanswered. One that is given up sooner, because a newer one takes its place in
//! a ring ([`crate::rings`]), is counted as given up.

use crate::{
    arm::Arm,
    limits::{DNS_TIMEOUT_SECONDS, SECOND},
    parse::{Address, Frame, Ipv4, Ipv6},
};

/// How long a query is pending, ns.
const TIMEOUT: u64 = DNS_TIMEOUT_SECONDS * SECOND;

/// The key of a query, and of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct QueryKey<A> {
    /// The address of the client.
    pub client: A,
    /// The address of the server.
    pub server: A,
    /// The port of the client.
    pub client_port: u16,
    /// The port of the server.
    pub server_port: u16,
    /// The ID that the client has given to the query.
    pub id: u16,
    /// The arm of the interface from which the query comes. A query from the other one is another query, and its response
    /// would come from the other side, too: one of them is forged.
    pub arm: Arm,
}

impl<A: Address> QueryKey<A> {
    /// Returns the key of a packet of [`Kind::Dns`](crate::parse::Kind::Dns) that comes from `arm`.
    #[inline(always)]
    pub fn new(arm: Arm, frame: &Frame) -> Self {
        let datagram = &frame.transport.datagram;
        let (source, destination) = (A::of(frame.source), A::of(frame.destination));
        let (client, server, client_port, server_port, arm) = if datagram.dns.is_response {
            (destination, source, datagram.destination_port, datagram.source_port, arm.opposite())
        } else {
            (source, destination, datagram.source_port, datagram.destination_port, arm)
        };
        Self { client, server, client_port, server_port, id: datagram.dns.id, arm }
    }

    /// Returns the key of the same query from the opposite arm.
    #[inline(always)]
    #[must_use]
    pub fn opposite(&self) -> Self {
        Self { arm: self.arm.opposite(), ..*self }
    }
}

/// A pending query. It is one number, so that it is read and written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Query(u64);

impl Query {
    /// Marks a query that was repeated. The other 63 bits hold 292 years of nanoseconds.
    const AMBIGUOUS: u64 = 1 << 63;

    /// Creates a query that is sent at `now`, ns.
    #[inline(always)]
    pub fn sent(now: u64) -> Self {
        Self(now & !Self::AMBIGUOUS)
    }

    /// Creates a query that is repeated at `now`, ns, while it is pending.
    #[inline(always)]
    pub fn repeated(now: u64) -> Self {
        Self(now | Self::AMBIGUOUS)
    }

    /// When it was last sent, ns.
    #[inline(always)]
    pub fn since(self) -> u64 {
        self.0 & !Self::AMBIGUOUS
    }

    /// Whether the same query at `now`, ns, is a copy of this one, as of a mirror port or a router with one arm: it passes within
    /// [`Rules::copy_within`](crate::rtt::Rules).
    #[inline(always)]
    pub fn is_copied(self, now: u64, copy_within: u64) -> bool {
        now.saturating_sub(self.since()) < copy_within
    }

    /// Returns the RTT of a response at `now`, ns. `None` if the query was repeated, or was sent after the response.
    #[inline(always)]
    pub fn rtt(self, now: u64) -> Option<u64> {
        if self.0 & Self::AMBIGUOUS != 0 { None } else { (now & !Self::AMBIGUOUS).checked_sub(self.0) }
    }
}

/// A pending query with its place among the [`crate::rings`] of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PendingQuery {
    /// The query.
    pub query: Query,
    /// Its place. A place may still have the key of a query that was answered, and that was asked again since: then the
    /// query has another place.
    pub place: u32,
    /// Fills up to a multiple of 8: the kernel refuses to store bytes that were never written.
    pub unused: u32,
}

impl PendingQuery {
    /// Creates a query that is sent at `now`, ns.
    #[inline(always)]
    pub fn sent(now: u64, place: u32) -> Self {
        Self { query: Query::sent(now), place, unused: 0 }
    }
}

/// Whether a query that was last sent at `since`, ns, counts as unanswered at `now`.
#[inline(always)]
pub fn is_unanswered(since: u64, now: u64) -> bool {
    now.saturating_sub(since) >= TIMEOUT
}

const _: () = {
    assert!(size_of::<QueryKey<Ipv4>>() == 16);
    assert!(size_of::<QueryKey<Ipv6>>() == 40);
    assert!(core::mem::offset_of!(QueryKey<Ipv4>, arm) == 14);
    assert!(core::mem::offset_of!(QueryKey<Ipv6>, arm) == 38);
    assert!(size_of::<Query>() == 8);
    assert!(size_of::<PendingQuery>() == 16);
};

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use super::*;
    use crate::{
        bytes::Captured,
        parse::{Decap, Kind, LinkType, Scope, Untracked, Vlan},
        testing::Network,
    };

    const UDP: u8 = 17;

    /// A message from the first host of `network` to the second.
    fn message(network: &Network, ports: (u16, u16), id: u16, flags: [u8; 2]) -> Result<Frame, Untracked> {
        let mut bytes: Vec<u8> = [ports.0, ports.1, 20, 0].into_iter().flat_map(u16::to_be_bytes).collect();
        bytes.extend(id.to_be_bytes());
        bytes.extend(flags);
        bytes.extend([0; 8]);
        let bytes = network.frame(UDP, &bytes);
        let mut frame = Frame::EMPTY;
        let captured = Captured { bytes: &bytes, frame_len: bytes.len() };
        frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL)?;
        assert_eq!(frame.transport.kind, Kind::Dns);
        Ok(frame)
    }

    fn answering(network: &Network) -> Network {
        let Network { source, destination, .. } = *network;
        Network { source: destination, destination: source, ..network.clone() }
    }

    fn keys_meet<A: Address + Eq + core::fmt::Debug>(network: &Network) {
        let query = message(network, (4000, 53), 7, [1, 0]).unwrap();
        let only = Arm::new(3, 0, false);
        let key = QueryKey::<A>::new(only, &query);
        assert_eq!((key.client_port, key.server_port, key.id, key.arm.interface_id()), (4000, 53, 7, 3));
        for flags in [[0x81, 0x80], [0x83, 0x80], [0x81, 0x83]] {
            let response = message(&answering(network), (53, 4000), 7, flags).unwrap();
            assert_eq!(QueryKey::<A>::new(only, &response), key);
            assert_eq!(response.transport.datagram.dns.rcode, flags[1] & 15);
        }
        for (ports, id, interface_id) in [((53, 4001), 7, 3), ((53, 4000), 8, 3), ((53, 4000), 7, 4)] {
            let arm = Arm::new(interface_id, 0, false);
            let response = message(&answering(network), ports, id, [0x80, 0]).unwrap();
            assert_ne!(QueryKey::<A>::new(arm, &response), key);
        }
        let response = message(network, (53, 4000), 7, [0x80, 0]).unwrap();
        assert_ne!(QueryKey::<A>::new(only, &response), key, "from the client itself");
    }

    #[test]
    fn a_response_has_the_key_of_its_query() {
        keys_meet::<Ipv4>(&Network::v4());
        keys_meet::<Ipv6>(&Network::v6());
    }

    #[test]
    fn between_two_arms_a_response_comes_from_the_opposite_one() {
        let query = message(&Network::v4(), (4000, 53), 7, [1, 0]).unwrap();
        let response = message(&answering(&Network::v4()), (53, 4000), 7, [0x80, 0]).unwrap();
        for direction in [0, 1] {
            let arm = Arm::new(3, direction, true);
            let key = QueryKey::<Ipv4>::new(arm, &query);
            assert_eq!(QueryKey::new(arm.opposite(), &response), key);
            assert_eq!(QueryKey::new(arm, &response), key.opposite());
            assert_ne!(key, key.opposite());
        }
    }

    #[test]
    fn between_two_ports_of_servers_the_header_says_who_asks() {
        let query = message(&Network::v4(), (53, 53), 7, [1, 0]).unwrap();
        let response = message(&answering(&Network::v4()), (53, 53), 7, [0x81, 0]).unwrap();
        assert_eq!(QueryKey::<Ipv4>::new(Arm::FIRST, &query), QueryKey::new(Arm::FIRST, &response));
        let other = message(&answering(&Network::v4()), (53, 53), 7, [1, 0]).unwrap();
        assert_ne!(QueryKey::<Ipv4>::new(Arm::FIRST, &query), QueryKey::new(Arm::FIRST, &other));
    }

    #[test]
    fn what_goes_the_wrong_way_is_no_dns() {
        let wrong = [((4000, 53), [0x80, 0]), ((53, 4000), [1, 0])];
        for (ports, flags) in wrong {
            let refused = message(&Network::v4(), ports, 7, flags);
            assert_eq!(refused.map(drop), Err(Untracked::Unsupported));
        }
    }

    #[test]
    fn a_header_that_is_not_all_there_is_malformed() {
        for (bytes, reason) in [(11, Some(Untracked::Malformed)), (12, None)] {
            let mut datagram = vec![0x0f, 0xa0, 0, 53, 0, 8 + bytes as u8, 0, 0];
            datagram.extend(vec![0; bytes]);
            let bytes = Network::v4().frame(UDP, &datagram);
            let captured = Captured { bytes: &bytes, frame_len: bytes.len() };
            let mut frame = Frame::EMPTY;
            let parsed = frame.parse(&captured, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL);
            assert_eq!(parsed.err(), reason);
        }
    }

    #[test]
    fn a_query_says_how_long_it_waits() {
        for now in [0, 1, 5 * SECOND, u64::MAX >> 1] {
            let query = Query::sent(now);
            assert_eq!((query.since(), query.rtt(now)), (now, Some(0)));
            assert_eq!(query.rtt(now + 7), if now < u64::MAX >> 1 { Some(7) } else { None });
        }
        assert_eq!(Query::sent(8).rtt(7), None, "a response before its query");
    }

    #[test]
    fn repeated_query_restarts_its_wait_without_sample() {
        let query = Query::repeated(9 * SECOND);
        assert_eq!((query.since(), query.rtt(10 * SECOND)), (9 * SECOND, None));
    }

    #[test]
    fn a_query_waits_for_less_than_its_time() {
        assert!(!is_unanswered(SECOND, SECOND + TIMEOUT - 1));
        assert!(is_unanswered(SECOND, SECOND + TIMEOUT));
        assert!(!is_unanswered(SECOND, 0), "a clock that was set back");
    }
}
