//! The names of protocols, events and reasons in records and labels of metrics, and how methods and directions are written.

use pping_common::{
    abi::{FlowEventKind, TriggeredBy},
    flow::Reason,
    group::Side,
    method::Method,
    parse::{Direction, Protocol, Untracked},
};
use serde::{Serialize as _, Serializer};

/// The protocol of samples of DNS in records. They have no flow.
pub(crate) const DNS: &str = "DNS";

/// The reason in the summary of a flow that has not ended.
pub(crate) const END_OF_OBSERVATION: &str = "end of observation";

/// The name of a protocol in records; `None` if it has no flows.
pub(crate) fn protocol_name(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Tcp => Some("TCP"),
        Protocol::Icmp => Some("ICMP"),
        Protocol::Icmpv6 => Some("ICMPv6"),
        // QUIC flows are the only ones over UDP.
        Protocol::Udp => Some("QUIC"),
        Protocol::NonIp | Protocol::Other => None,
    }
}

/// The name of a change in the life of a flow direction, in records.
pub(crate) fn flow_event_name(event: FlowEventKind) -> &'static str {
    match event {
        FlowEventKind::Opening => "opening",
        FlowEventKind::Closing => "closing",
    }
}

/// The name of who caused such a change, in records.
pub(crate) fn triggered_by_name(cause: TriggeredBy) -> &'static str {
    match cause {
        TriggeredBy::Source => "src",
        TriggeredBy::Destination => "dest",
        TriggeredBy::GarbageCollection => "garbage collection",
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

/// The name of the reason why a packet is not measured, in labels.
pub(crate) fn untracked_name(reason: Untracked) -> &'static str {
    match reason {
        Untracked::NonIp => "non_ip",
        Untracked::Fragment => "fragment",
        Untracked::Truncated => "truncated",
        Untracked::Malformed => "malformed",
        Untracked::Unsupported => "unsupported",
        Untracked::NoTimestamp => "no_timestamp",
        Untracked::UnusableTimestamp => "unusable_timestamp",
        Untracked::NoFlow => "no_flow",
        Untracked::MapFull => "map_full",
        Untracked::NestedTunnel => "nested_tunnel",
        Untracked::Excluded => "excluded",
        Untracked::NotLoaded => "not_loaded",
        Untracked::OtherHook => "other_hook",
        Untracked::OutOfWindow => "out_of_window",
        Untracked::SameHook => "same_hook",
        Untracked::Duplicate => "duplicate",
    }
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
pub(crate) fn serialize_is_egress<S: Serializer>(
    direction: &Option<Direction>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(*direction == Some(Direction::Egress))
}

#[expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
pub(crate) fn serialize_side<S: Serializer>(side: &Option<Side>, serializer: S) -> Result<S::Ok, S::Error> {
    side.map(Side::name).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
pub(crate) fn serialize_method<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.name())
}
