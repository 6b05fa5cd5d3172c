//! The records of flows: their beginning and end, and a summary at the end.

use std::sync::Arc;

use pping_common::{
    abi::{EndEvent, FlowEvent, FlowEventKind, TriggeredBy, Volume},
    flow::Reason,
    group::Side,
};
use serde::Serialize;

#[cfg(test)]
use super::schema;
use super::tuple::Tuple;
#[cfg(test)]
use crate::schemas;
use crate::{
    aggregate::{HostRtts, Rtts},
    labels::{END_OF_OBSERVATION, flow_event_name, reason_name, serialize_side, triggered_by_name},
};

/// The value of `flow_event` in a summary.
const SUMMARY: &str = "summary";

/// The flow direction from `dest_ip` to `src_ip` opened or closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE), transform = schema::by_reason))]
pub struct FlowRecord {
    /// When it opened or closed, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow direction.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// Whether it opened or closed.
    #[cfg_attr(test, schemars(with = "schemas::FlowEventName"))]
    pub flow_event: &'static str,
    /// What opened or closed it.
    #[cfg_attr(test, schemars(with = "schemas::ReasonName"))]
    pub reason: &'static str,
    /// Who opened or closed it.
    #[cfg_attr(test, schemars(with = "schemas::TriggeredByName"))]
    pub triggered_by: &'static str,
    /// Name of the interface; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::InterfaceName>"))]
    pub interface: Option<Arc<str>>,
}

impl FlowRecord {
    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = "flow";

    /// The record of an event; `None` for an event that pping's programs do not send.
    pub fn new(event: &FlowEvent, interface: Option<Arc<str>>, timestamp: u64) -> Option<Self> {
        Some(Self {
            timestamp,
            tuple: Tuple::new(&event.endpoints)?,
            flow_event: flow_event_name(FlowEventKind::from_number(event.event)?),
            reason: reason_name(Reason::from_number(event.reason)?),
            triggered_by: triggered_by_name(TriggeredBy::from_number(event.triggered_by)?),
            interface,
        })
    }
}

/// A flow that has ended (`--flow-summary`). `dest_ip` opened it, if pping saw it open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE)))]
pub struct FlowSummaryRecord {
    /// The same as `end`.
    pub timestamp: u64,
    /// The flow.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// Always `summary`.
    #[cfg_attr(test, schemars(extend("const" = SUMMARY)))]
    pub flow_event: &'static str,
    /// Why it ended; `end of observation` if the capture or pping ended before the flow.
    #[cfg_attr(test, schemars(with = "schemas::EndReason"))]
    pub reason: &'static str,
    /// When its first packet was seen, ns since the Unix epoch.
    pub start: u64,
    /// When it closed or, if it did not, when its last packet was seen, ns since the Unix epoch.
    pub end: u64,
    /// Packets that `dest_ip` sent.
    pub sent_packets: u64,
    /// Bytes of payload that `dest_ip` sent.
    pub sent_bytes: u64,
    /// Packets that `dest_ip` received.
    pub rec_packets: u64,
    /// Bytes of payload that `dest_ip` received.
    pub rec_bytes: u64,
    /// TCP segments that `dest_ip` retransmitted.
    pub sent_retransmissions: u32,
    /// TCP segments that were retransmitted to `dest_ip`.
    pub rec_retransmissions: u32,
    /// TCP segments from `dest_ip` that were reordered in the network. Only TCP timestamps can tell them from retransmissions.
    pub sent_out_of_order: u32,
    /// TCP segments to `dest_ip` that were reordered in the network.
    pub rec_out_of_order: u32,
    /// Packets from `dest_ip` with the ECN mark CE, congestion experienced (RFC 3168).
    pub sent_ce_packets: u32,
    /// Packets to `dest_ip` with the ECN mark CE.
    pub rec_ce_packets: u32,
    /// RTTs between the capture point and `src_ip`; absent without samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_rtt: Option<Rtts>,
    /// RTTs between the capture point and `dest_ip`; absent without samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_rtt: Option<Rtts>,
    /// Side of the network that `src_ip` is on; absent without `--inside`, and without samples of it.
    #[serde(serialize_with = "serialize_side", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub src_side: Option<Side>,
    /// Side of the network that `dest_ip` is on; absent without `--inside`, and without samples of it.
    #[serde(serialize_with = "serialize_side", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::SideName>"))]
    pub dest_side: Option<Side>,
    /// Name of the interface; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<schemas::InterfaceName>"))]
    pub interface: Option<Arc<str>>,
}

impl FlowSummaryRecord {
    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = FlowRecord::TYPE;

    /// The record of an event, with the RTTs to source and destination; `None` for an event that pping's programs do not send.
    /// `epoch` converts a time of the event to ns since the Unix epoch.
    pub fn new(
        event: &EndEvent,
        interface: Option<Arc<str>>,
        [src, dest]: [Option<HostRtts>; 2],
        epoch: impl Fn(u64) -> u64,
    ) -> Option<Self> {
        let Volume { packets, bytes, retransmissions, ce_packets, reordered, .. } = event.sent;
        let end = epoch(event.ended);
        Some(Self {
            timestamp: end,
            tuple: Tuple::new(&event.endpoints)?,
            flow_event: SUMMARY,
            reason: match event.reason {
                EndEvent::STILL_OPEN => END_OF_OBSERVATION,
                reason => reason_name(Reason::from_number(reason)?),
            },
            start: epoch(event.began),
            end,
            sent_packets: packets,
            sent_bytes: bytes,
            rec_packets: event.received.packets,
            rec_bytes: event.received.bytes,
            sent_retransmissions: retransmissions,
            rec_retransmissions: event.received.retransmissions,
            sent_out_of_order: reordered,
            rec_out_of_order: event.received.reordered,
            sent_ce_packets: ce_packets,
            rec_ce_packets: event.received.ce_packets,
            src_rtt: src.map(|it| it.rtts),
            dest_rtt: dest.map(|it| it.rtts),
            src_side: src.and_then(|it| it.side),
            dest_side: dest.and_then(|it| it.side),
            interface,
        })
    }
}
