//! Events on the ring buffer. Each begins with its kind.

use crate::{
    layout::{layout, numbered},
    parse::Vlan,
};

numbered! {
    /// The kind of an event.
    pub enum EventKind {
        /// An [`RttEvent`].
        Rtt = 1,
        /// A [`FlowEvent`].
        Flow = 2,
        /// An [`EndEvent`].
        End = 3,
    }
}

/// Which events are wanted. Fixed when the programs are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Emit(pub u32);

impl Emit {
    /// No events: only series are wanted.
    pub const NOTHING: Self = Self(0);
    /// [`RttEvent`]s.
    pub const SAMPLES: Self = Self(1);
    /// [`FlowEvent`]s.
    pub const FLOWS: Self = Self(2);
    /// [`EndEvent`]s.
    pub const ENDS: Self = Self(4);

    /// Adds the events of `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are wanted.
    #[inline(always)]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

numbered! {
    /// A change in the life of a flow direction.
    pub enum FlowEventKind {
        /// It opened.
        Opening,
        /// It closed.
        Closing,
    }
}

numbered! {
    /// What caused the change, in terms of the record's source and destination.
    pub enum TriggeredBy {
        /// The host in `source`.
        Source,
        /// The host in `destination`.
        Destination,
        /// The sweep.
        GarbageCollection,
    }
}

/// The two ends of a flow. `source` is the host that replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Endpoints {
    /// Address of the host that replies; IPv4 mapped into IPv6.
    pub source: [u8; 16],
    /// Address of the other host.
    pub destination: [u8; 16],
    /// Port of the host that replies, or the echo identifier.
    pub source_port: u16,
    /// Port of the other host, or the echo identifier.
    pub destination_port: u16,
    /// The interface id.
    pub interface: u16,
    /// `Protocol` as a number.
    pub protocol: u8,
    /// Fills up to a multiple of 8.
    pub reserved: u8,
}

layout!(Endpoints { source, destination, source_port, destination_port, interface, protocol, reserved });

impl Endpoints {
    /// Returns the same flow with the two ends exchanged.
    #[inline(always)]
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            ..self
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RttEvent {
    /// [`EventKind::Rtt`].
    pub kind: u8,
    /// `Method` as a number.
    pub method: u8,
    /// `Direction` that matched, as a number.
    pub direction: u8,
    /// Differentiated services codepoint (RFC 2474) of the matching packet.
    pub dscp: u8,
    /// The identifier that was echoed: a `TSval`, a sequence number, the ID of a query, or that of another method.
    pub identifier: u32,
    /// When it matched, ns of `CLOCK_MONOTONIC`.
    pub timestamp: u64,
    /// The flow.
    pub endpoints: Endpoints,
    /// Round-trip time, ns.
    pub rtt: u64,
    /// Lowest RTT of this flow direction so far, ns.
    pub min_rtt: u64,
    /// Smoothed RTT of this flow direction, ns.
    pub smoothed_rtt: u64,
    /// Packets that `destination`, whose packets are timed, has sent.
    pub sent_packets: u64,
    /// Bytes of payload that `destination` has sent.
    pub sent_bytes: u64,
    /// Packets that `destination` has received from `source`.
    pub rec_packets: u64,
    /// Bytes of payload that `destination` has received from `source`.
    pub rec_bytes: u64,
    /// VLAN tags of the matching packet.
    pub vlan: Vlan,
    /// The index of the sample's series, or [`RttEvent::NO_SERIES`].
    pub series: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// The part of the RTT beyond `source`, ns; 0 if the method does not measure it.
    pub side_rtt: u64,
}

layout!(RttEvent {
    kind,
    method,
    direction,
    dscp,
    identifier,
    timestamp,
    endpoints,
    rtt,
    min_rtt,
    smoothed_rtt,
    sent_packets,
    sent_bytes,
    rec_packets,
    rec_bytes,
    vlan,
    series,
    reserved,
    side_rtt
});

impl RttEvent {
    /// In place of an index: the sample belongs to no series.
    pub const NO_SERIES: u32 = u32::MAX;
}

/// A flow direction opened or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FlowEvent {
    /// [`EventKind::Flow`].
    pub kind: u8,
    /// [`FlowEventKind`] as a number.
    pub event: u8,
    /// `Reason` as a number.
    pub reason: u8,
    /// [`TriggeredBy`] as a number.
    pub triggered_by: u8,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// When it happened, ns of `CLOCK_MONOTONIC`.
    pub timestamp: u64,
    /// The flow. The event is about the direction from `destination` to `source`.
    pub endpoints: Endpoints,
}

layout!(FlowEvent { kind, event, reason, triggered_by, reserved, timestamp, endpoints });

/// The traffic and RTTs of one endpoint of a flow, from beginning to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes above the transport header.
    pub bytes: u64,
    /// TCP segments retransmitted.
    pub retransmissions: u32,
    /// Packets marked for congestion.
    pub ce_packets: u32,
    /// TCP segments that arrived reordered.
    pub reordered: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
}

layout!(Volume { packets, bytes, retransmissions, ce_packets, reordered, reserved });

/// The end of a flow, which has been removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct EndEvent {
    /// [`EventKind::End`].
    pub kind: u8,
    /// `Reason` as a number.
    pub reason: u8,
    /// Fills up to a multiple of 8.
    pub reserved: [u8; 6],
    /// When its first packet was seen, ns of `CLOCK_MONOTONIC`.
    pub began: u64,
    /// When it closed or, if it expired, when its last packet was seen, to the second; ns of `CLOCK_MONOTONIC`.
    pub ended: u64,
    /// The flow; `destination` is the endpoint that began it.
    pub endpoints: Endpoints,
    /// Sent by `destination`.
    pub sent: Volume,
    /// Sent by `source`.
    pub received: Volume,
}

layout!(EndEvent { kind, reason, reserved, began, ended, endpoints, sent, received });

impl EndEvent {
    /// In place of a [`Reason`]: the flow was open when pping stopped.
    pub const STILL_OPEN: u8 = u8::MAX;
}

const _: () = {
    assert!(size_of::<Endpoints>() == 40);
    assert!(size_of::<RttEvent>() == 136);
    assert!(core::mem::offset_of!(RttEvent, endpoints) == 16);
    assert!(core::mem::offset_of!(RttEvent, rtt) == 56);
    assert!(core::mem::offset_of!(RttEvent, vlan) == 112);
    assert!(core::mem::offset_of!(RttEvent, series) == 120);
    assert!(size_of::<EndEvent>() == 128);
    assert!(core::mem::offset_of!(EndEvent, endpoints) == 24);
    assert!(core::mem::offset_of!(EndEvent, sent) == 64);
    assert!(size_of::<FlowEvent>() == 56);
    assert!(core::mem::offset_of!(FlowEvent, endpoints) == 16);
};
