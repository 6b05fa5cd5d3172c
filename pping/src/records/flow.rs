//! The records of flows: their beginning and end, and a summary at the end.

use std::sync::Arc;

use pping_common::{
    abi::{EndEvent, FlowEvent, FlowEventKind, TriggeredBy, Volume},
    flow::Reason,
};
use serde::Serialize;

use super::tuple::Tuple;
use crate::aggregate::Rtts;
use crate::labels::reason_name;

/// A flow direction opened or closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowRecord {
    /// When, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow direction: from `dest_ip` to `src_ip`.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// `opening` or `closing`.
    pub flow_event: &'static str,
    /// The reason why it opened or closed.
    pub reason: &'static str,
    /// `src`, `dest` or `garbage collection`.
    pub triggered_by: &'static str,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
}

impl FlowRecord {
    /// The record of an event; `None` for an event that pping's programs do not send.
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

/// A flow at its end. `dest_ip` began it, if its beginning was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowSummaryRecord {
    /// When it ended, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// `summary`.
    pub flow_event: &'static str,
    /// The reason why it ended.
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
    /// TCP segments retransmitted to `dest_ip`.
    pub rec_retransmissions: u32,
    /// TCP segments from `dest_ip` that were reordered, as far as timestamps show.
    pub sent_out_of_order: u32,
    /// TCP segments to `dest_ip` that were reordered.
    pub rec_out_of_order: u32,
    /// Packets from `dest_ip` with the ECN mark CE.
    pub sent_ce_packets: u32,
    /// Packets to `dest_ip` with the ECN mark CE.
    pub rec_ce_packets: u32,
    /// RTTs between here and `src_ip`, if there was a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src_rtt: Option<Rtts>,
    /// RTTs between here and `dest_ip`, if there was a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_rtt: Option<Rtts>,
    /// The interface, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<Arc<str>>,
}

impl FlowSummaryRecord {
    /// The record of an event, with the RTTs to source and destination; `None` for an event that pping's programs do not send.
    /// `epoch` converts a time of the event to ns since the Unix epoch.
    pub fn new(
        event: &EndEvent,
        interface: Option<Arc<str>>,
        [src_rtt, dest_rtt]: [Option<Rtts>; 2],
        epoch: impl Fn(u64) -> u64,
    ) -> Option<Self> {
        let Volume { packets, bytes, retransmissions, ce_packets, reordered, .. } = event.sent;
        let end = epoch(event.ended);
        Some(Self {
            timestamp: end,
            tuple: Tuple::new(&event.endpoints)?,
            flow_event: "summary",
            reason: match event.reason {
                EndEvent::STILL_OPEN => "end of observation",
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
            src_rtt,
            dest_rtt,
            interface,
        })
    }
}
