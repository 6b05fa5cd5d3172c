//! The record of a sample.

use std::sync::Arc;

use pping_common::{abi::RttEvent, group::Side, method::Method, parse::Direction};
use serde::Serialize;

#[cfg(test)]
use super::schema;
use super::tuple::Tuple;
use crate::labels::{DNS, serialize_is_egress, serialize_method, serialize_side};
use crate::membership::Membership;
#[cfg(test)]
use crate::schemas;

/// A round-trip time between the capture point and `src_ip`, the host that replied; with the method `quic-spin`, between
/// `dest_ip` and `src_ip`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE), transform = schema::by_method))]
pub struct RttRecord {
    /// When the echo passed, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// The round-trip time, ns.
    pub rtt: u64,
    /// Lowest RTT so far in this flow direction, ns.
    pub min_rtt: u64,
    /// Packets that `dest_ip` sent.
    pub sent_packets: u64,
    /// Bytes of payload that `dest_ip` sent.
    pub sent_bytes: u64,
    /// Packets that `dest_ip` received.
    pub rec_packets: u64,
    /// Bytes of payload that `dest_ip` received.
    pub rec_bytes: u64,
    /// Direction in which the echo passed the interface: true for egress. Absent if the capture has no directions.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(test, schemars(with = "Option<bool>"))]
    pub matched: Option<Direction>,
    /// Side of the network that the host that replied is on; absent without `--inside`.
    #[serde(serialize_with = "serialize_side", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub side: Option<Side>,
    /// Method that measured it (docs/methods.md).
    #[serde(serialize_with = "serialize_method")]
    #[cfg_attr(test, schemars(with = "schemas::MethodName"))]
    pub method: Method,
    /// Name of the interface; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::InterfaceName>"))]
    pub interface: Option<Arc<str>>,
    /// Smoothed RTT of this flow direction (RFC 6298), ns.
    pub smoothed_rtt: u64,
    /// ID of the DNS query (RFC 1035, section 4.1.1); only with the method `dns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_id: Option<u16>,
    /// Part of `rtt` between the capture point and `src_ip`, ns; only with the method `quic-spin`, and absent if this part was
    /// not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub side_rtt: Option<u64>,
    /// VLAN identifiers of the echo, outermost first; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(length(min = 1, max = 4), inner(range(max = 4095))))]
    pub vlan: Vec<u16>,
    /// Differentiated services codepoint of the echo; absent if it is 0, the default.
    #[serde(skip_serializing_if = "is_default_dscp")]
    #[cfg_attr(test, schemars(range(min = 1, max = 63)))]
    pub dscp: u8,
    /// Label of the group; absent without groups, or if the host is in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub group: Option<Arc<str>>,
}

impl RttRecord {
    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = "rtt";

    /// The record of an event; `None` for an event that pping's programs do not send.
    pub fn new(
        event: &RttEvent,
        interface: Option<Arc<str>>,
        of: Membership,
        timestamp: u64,
    ) -> Option<Self> {
        let method = Method::from_number(event.method)?;
        let mut tuple = Tuple::new(&event.endpoints)?;
        if method == Method::Dns {
            tuple.protocol = DNS;
        }
        Some(Self {
            timestamp,
            tuple,
            rtt: event.rtt,
            min_rtt: event.min_rtt,
            sent_packets: event.sent_packets,
            sent_bytes: event.sent_bytes,
            rec_packets: event.rec_packets,
            rec_bytes: event.rec_bytes,
            matched: Direction::from_number(event.direction),
            side: of.side,
            method,
            interface,
            smoothed_rtt: event.smoothed_rtt,
            // The ID has 16 bits.
            dns_id: (method == Method::Dns).then_some(event.identifier as u16),
            side_rtt: (event.side_rtt != 0).then_some(event.side_rtt),
            vlan: event.vlan.identifiers().collect(),
            dscp: event.dscp,
            group: of.group,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn is_default_dscp(dscp: &u8) -> bool {
    *dscp == 0
}

#[cfg(test)]
pub(super) mod tests {
    use pping_common::{
        abi::{Endpoints, EventKind},
        parse::{Protocol, Vlan},
    };

    use super::*;

    /// A sample of a TCP connection.
    pub(in crate::records) fn example() -> RttRecord {
        RttRecord {
            timestamp: 1_700_000_000_000_000_042,
            tuple: Tuple {
                src_ip: "10.11.1.1".parse().unwrap(),
                src_port: 5201,
                dest_ip: "10.11.1.2".parse().unwrap(),
                dest_port: 59528,
                protocol: "TCP",
                src_network: None,
                dest_network: None,
            },
            rtt: 5_425_440,
            min_rtt: 5_000_000,
            sent_packets: 1,
            sent_bytes: 2,
            rec_packets: 3,
            rec_bytes: 4,
            matched: Some(Direction::Ingress),
            side: None,
            method: Method::TcpTs,
            interface: Some("eth0".into()),
            smoothed_rtt: 5_200_000,
            dns_id: None,
            side_rtt: None,
            vlan: Vec::new(),
            dscp: 0,
            group: None,
        }
    }

    fn record(method: Method, identifier: u32, side_rtt: u64) -> serde_json::Value {
        let event = RttEvent {
            kind: EventKind::Rtt as u8,
            method: method as u8,
            direction: Direction::Ingress as u8,
            dscp: 0,
            identifier,
            timestamp: 5,
            endpoints: Endpoints {
                source: [1; 16],
                destination: [2; 16],
                source_port: 53,
                destination_port: 40_000,
                interface: 0,
                protocol: Protocol::Udp as u8,
                reserved: 0,
            },
            rtt: 9,
            min_rtt: 9,
            smoothed_rtt: 9,
            sent_packets: 0,
            sent_bytes: 0,
            rec_packets: 0,
            rec_bytes: 0,
            vlan: Vlan::NONE,
            series: RttEvent::NO_SERIES,
            reserved: 0,
            side_rtt,
        };
        serde_json::to_value(RttRecord::new(&event, None, Membership::default(), 5).unwrap()).unwrap()
    }

    #[test]
    fn fields_that_a_method_has_are_there_with_it_alone() {
        let dns = record(Method::Dns, 0, 0);
        assert_eq!(
            (&dns["method"], &dns["dns_id"], &dns["protocol"]),
            (&"dns".into(), &0.into(), &"DNS".into())
        );
        assert!(dns.get("side_rtt").is_none(), "{dns}");
        let spin = record(Method::QuicSpin, 7, 4);
        assert_eq!((&spin["method"], &spin["side_rtt"]), (&"quic-spin".into(), &4.into()));
        assert!(spin.get("dns_id").is_none(), "{spin}");
        assert!(record(Method::QuicSpin, 7, 0).get("side_rtt").is_none());
    }
}
