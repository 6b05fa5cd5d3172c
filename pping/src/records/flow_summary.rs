//! What there was of a flow, at its end.

use std::sync::Arc;

use pping_common::{
    abi::{EndEvent, Volume},
    flow::Reason,
};
use serde::Serialize;

use super::{Tuple, reason_name};
use crate::aggregate::Rtts;

/// A flow, at its end. `dest_ip` began it, as far as that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowSummaryRecord {
    /// When it ended, ns since the Unix epoch.
    pub timestamp: u64,
    /// The flow.
    #[serde(flatten)]
    pub tuple: Tuple,
    /// `summary`.
    pub flow_event: &'static str,
    /// Why it ended.
    pub reason: &'static str,
    /// When its first packet was seen, ns since the Unix epoch.
    pub start: u64,
    /// When it closed or, if it did not, when its last packet was seen.
    pub end: u64,
    /// Packets that `dest_ip` sent.
    pub sent_packets: u64,
    /// Bytes of payload that `dest_ip` sent.
    pub sent_bytes: u64,
    /// Packets that `dest_ip` received.
    pub rec_packets: u64,
    /// Bytes of payload that `dest_ip` received.
    pub rec_bytes: u64,
    /// TCP segments that `dest_ip` sent again.
    pub sent_retransmissions: u32,
    /// TCP segments that were sent to `dest_ip` again.
    pub rec_retransmissions: u32,
    /// TCP segments from `dest_ip` that others overtook on the way, as far as timestamps tell.
    pub sent_out_of_order: u32,
    /// TCP segments to `dest_ip` that others overtook.
    pub rec_out_of_order: u32,
    /// Packets from `dest_ip` that were marked for congestion on their way.
    pub sent_ce_packets: u32,
    /// Packets to `dest_ip` with the mark.
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
    /// Names what an event numbers, with its RTTs to source and destination; `None` for an event that no program of ours
    /// sends.
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
