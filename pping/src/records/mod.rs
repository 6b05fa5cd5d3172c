//! What is reported, with names and addresses instead of numbers.

mod aggregate;
mod flow_summary;
pub mod format;
mod hdr_log;
mod reporter;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

pub use aggregate::AggregateRecord;
pub use flow_summary::FlowSummaryRecord;
use pping_common::{
    abi::{Direction, Endpoints, FlowEvent, FlowEventKind, RttEvent, TriggeredBy},
    flow::Reason,
    parse::{Protocol, Untracked},
    rtt::Method,
};
pub use reporter::Reporter;
use serde::Serialize;

use crate::event::Event;

/// One record of the output.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Record {
    /// A sample.
    Rtt(RttRecord),
    /// A flow direction opened or closed.
    Flow(FlowRecord),
    /// A flow is over.
    FlowSummary(Box<FlowSummaryRecord>),
    /// What a group got in an interval.
    Aggregate(Box<AggregateRecord>),
}

/// The two ends of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tuple {
    /// The host that replied.
    pub src_ip: IpAddr,
    /// Its port, or the echo identifier.
    pub src_port: u16,
    /// The host whose packets are timed.
    pub dest_ip: IpAddr,
    /// Its port, or the echo identifier.
    pub dest_port: u16,
    /// `TCP`, `UDP`, `ICMP` or `ICMPv6`.
    pub protocol: &'static str,
}

/// A sample. Fields are those of `OUTPUT`'s RTT record, in its order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RttRecord {
    /// When the echo passed, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// Round-trip time between here and `src_ip`, ns; by the spin bit of QUIC that between `dest_ip` and `src_ip`.
    pub rtt: u64,
    /// Lowest so far in this flow direction, ns.
    pub min_rtt: u64,
    /// Packets that `dest_ip` sent.
    pub sent_packets: u64,
    /// Bytes of payload that `dest_ip` sent.
    pub sent_bytes: u64,
    /// Packets that `dest_ip` received.
    pub rec_packets: u64,
    /// Bytes of payload that `dest_ip` received.
    pub rec_bytes: u64,
    /// Where the echo was seen, if that is known.
    #[serde(
        rename = "match_on_egress",
        serialize_with = "serialize_is_egress",
        skip_serializing_if = "Option::is_none"
    )]
    pub matched: Option<Direction>,
    /// How it was measured.
    #[serde(serialize_with = "serialize_method")]
    pub method: Method,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
    /// Smoothed RTT of this flow direction, ns.
    pub smoothed_rtt: u64,
    /// The ID of the query, of DNS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_id: Option<u16>,
    /// The part of `rtt` between here and `src_ip`, ns, where the method tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_rtt: Option<u64>,
    /// VLAN identifiers of the echo, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vlan: Vec<u16>,
    /// Differentiated services codepoint of the echo, where it is not the default.
    #[serde(skip_serializing_if = "is_default_dscp")]
    pub dscp: u8,
    /// The label of its group, where there are groups and the host that replied is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
}

/// A flow direction opened or closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowRecord {
    /// When, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow; the direction meant is that from `dest_ip` to `src_ip`.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// `opening` or `closing`.
    pub flow_event: &'static str,
    /// What opened or closed it.
    pub reason: &'static str,
    /// `src`, `dest` or `garbage collection`.
    pub triggered_by: &'static str,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
}

impl Record {
    /// Names what an event numbers, with `epoch` turning its time into that since 1970, and `group` the label of a
    /// sample's group if it has one; `None` for an event that no program of ours sends, and for the end of a flow, of
    /// which more is known elsewhere.
    pub fn new(
        event: &Event,
        interface: Option<Arc<str>>,
        group: Option<Arc<str>>,
        epoch: impl Fn(u64) -> u64,
    ) -> Option<Self> {
        match event {
            Event::Rtt(event) => {
                RttRecord::new(event, interface, group, epoch(event.timestamp)).map(Self::Rtt)
            }
            Event::Flow(event) => FlowRecord::new(event, interface, epoch(event.timestamp)).map(Self::Flow),
            Event::End(_) => None,
        }
    }
}

impl RttRecord {
    /// Names what an event numbers; `None` for an event that no kernel program of ours sends.
    pub fn new(
        event: &RttEvent,
        interface: Option<Arc<str>>,
        group: Option<Arc<str>>,
        timestamp: u64,
    ) -> Option<Self> {
        let method = Method::from_number(event.method)?;
        let mut tuple = Tuple::new(&event.endpoints)?;
        if method == Method::Dns {
            tuple.protocol = "DNS";
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
            method,
            interface,
            smoothed_rtt: event.smoothed_rtt,
            // The ID has 16 bits.
            dns_id: (method == Method::Dns).then_some(event.identifier as u16),
            side_rtt: (event.side_rtt != 0).then_some(event.side_rtt),
            vlan: event.vlan.identifiers().collect(),
            dscp: event.dscp,
            group,
        })
    }
}

impl FlowRecord {
    /// Names what an event numbers; `None` for an event that no kernel program of ours sends.
    pub fn new(event: &FlowEvent, interface: Option<Arc<str>>, timestamp: u64) -> Option<Self> {
        Some(Self {
            timestamp,
            tuple: Tuple::new(&event.endpoints)?,
            flow_event: match FlowEventKind::from_number(event.event)? {
                FlowEventKind::Opening => "opening",
                FlowEventKind::Closing => "closing",
            },
            reason: reason_name(Reason::from_number(event.reason)?),
            triggered_by: match TriggeredBy::from_number(event.triggered_by)? {
                TriggeredBy::Source => "src",
                TriggeredBy::Destination => "dest",
                TriggeredBy::GarbageCollection => "garbage collection",
            },
            interface,
        })
    }
}

impl Tuple {
    pub(crate) fn new(endpoints: &Endpoints) -> Option<Self> {
        let address = |bytes| Ipv6Addr::from(bytes).to_canonical();
        Some(Self {
            src_ip: address(endpoints.source),
            src_port: endpoints.source_port,
            dest_ip: address(endpoints.destination),
            dest_port: endpoints.destination_port,
            protocol: match Protocol::from_number(endpoints.protocol)? {
                Protocol::Tcp => "TCP",
                Protocol::Icmp => "ICMP",
                Protocol::Icmpv6 => "ICMPv6",
                // The only flows of UDP there are.
                Protocol::Udp => "QUIC",
                Protocol::NonIp | Protocol::Other => return None,
            },
        })
    }
}

/// The name of a reason in records.
pub(crate) fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::FirstObserved => "first observed packet",
        Reason::Syn => "SYN",
        Reason::SynAck => "SYN-ACK",
        Reason::Fin => "FIN",
        Reason::Rst => "RST",
        Reason::Timeout => "flow timeout",
    }
}

/// The name of a method in records and labels.
pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::TcpTs => "tcp-ts",
        Method::IcmpEcho => "icmp-echo",
        Method::TcpSeq => "tcp-seq",
        Method::TcpHandshake => "tcp-handshake",
        Method::Dns => "dns",
        Method::QuicSpin => "quic-spin",
        Method::QuicHandshake => "quic-handshake",
    }
}

/// The name of a direction in labels.
pub fn direction_name(direction: Direction) -> &'static str {
    direction.name()
}

/// The name of a reason why a packet's flow is not measured, in labels.
pub fn untracked_name(reason: Untracked) -> &'static str {
    match reason {
        Untracked::NonIp => "non_ip",
        Untracked::Fragment => "fragment",
        Untracked::Truncated => "truncated",
        Untracked::Malformed => "malformed",
        Untracked::Unsupported => "unsupported",
        Untracked::NoTimestamp => "no_timestamp",
        Untracked::NoFlow => "no_flow",
        Untracked::MapFull => "map_full",
        Untracked::NestedTunnel => "nested_tunnel",
        Untracked::Excluded => "excluded",
    }
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
fn serialize_is_egress<S: serde::Serializer>(
    direction: &Option<Direction>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*direction == Some(Direction::Egress))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn serialize_method<S: serde::Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method_name(*method))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_default_dscp(dscp: &u8) -> bool {
    *dscp == 0
}

#[cfg(test)]
mod tests {
    use pping_common::{abi::EventKind, parse::Vlan};

    use super::*;

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
        serde_json::to_value(RttRecord::new(&event, None, None, 5).unwrap()).unwrap()
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
