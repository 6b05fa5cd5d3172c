//! What kernel programs and replay report: of a packet, and of a flow that ends.

use super::{EndEvent, Endpoints, EventKind, FlowEvent, FlowEventKind, RttEvent, TriggeredBy, Volume};
use crate::{
    flow::{Changes, Endpoint, Events, FlowKey, Hot, Lifecycle, Locked, Reason, Sent},
    parse::{Address, Datagram, Frame, Kind, Protocol, Segment},
    rtt::Sample,
};

impl Endpoints {
    /// Returns the endpoints of a packet: its sender is the host that replies.
    #[inline(always)]
    pub fn of_packet<A: Address>(interface_id: u16, frame: &Frame) -> Self {
        let (source_port, destination_port) = frame.transport.ports();
        Self {
            source: A::of(frame.source).to_address().to_bytes(),
            destination: A::of(frame.destination).to_address().to_bytes(),
            source_port,
            destination_port,
            interface: interface_id,
            protocol: match frame.transport.kind {
                Kind::Tcp => Protocol::Tcp as u8,
                Kind::Echo => A::ECHO as u8,
                Kind::Dns | Kind::Quic => Protocol::Udp as u8,
            },
            reserved: 0,
        }
    }

    /// Returns the endpoints of a flow for a record of what `timed` sends: the other end is the host that replies.
    #[inline(always)]
    pub fn of_flow<A: Address>(key: &FlowKey<A>, timed: Endpoint) -> Self {
        let low = Self {
            source: key.high.to_address().to_bytes(),
            destination: key.low.to_address().to_bytes(),
            source_port: key.high_port,
            destination_port: key.low_port,
            interface: key.interface,
            protocol: match key.protocol {
                Segment::NUMBER => Protocol::Tcp as u8,
                Datagram::NUMBER => Protocol::Udp as u8,
                _ => A::ECHO as u8,
            },
            reserved: 0,
        };
        match timed {
            Endpoint::Low => low,
            Endpoint::High => low.reversed(),
        }
    }
}

/// The state of a flow at the time of a sample, for the sample's record.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    min_rtt: u64,
    smoothed_rtt: u64,
    sent_packets: u64,
    sent_bytes: u64,
    rec_packets: u64,
    rec_bytes: u64,
}

impl FlowState {
    /// Creates the state from the lowest and the smoothed RTT, ns, of what the timed endpoint sends, and from what each
    /// end sent.
    #[inline(always)]
    pub fn of((min_rtt, smoothed_rtt): (u64, u64), sent: Sent, received: Sent) -> Self {
        Self {
            min_rtt,
            smoothed_rtt,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            rec_packets: received.packets,
            rec_bytes: received.bytes,
        }
    }

    /// Creates the state for a sample that belongs to no flow.
    #[inline(always)]
    pub fn without_flow(rtt: u64) -> Self {
        Self { min_rtt: rtt, smoothed_rtt: rtt, sent_packets: 0, sent_bytes: 0, rec_packets: 0, rec_bytes: 0 }
    }
}

impl RttEvent {
    /// Creates the event of a sample by the packet in `frame`, which passed in `direction` (as a number) at `timestamp`.
    /// `series` is the index of its series.
    #[inline(always)]
    pub fn new<A: Address>(
        (interface_id, direction, frame): (u16, u8, &Frame),
        timestamp: u64,
        sample: &Sample,
        state: &FlowState,
        series: u32,
    ) -> Self {
        Self {
            kind: EventKind::Rtt as u8,
            method: sample.method as u8,
            direction,
            dscp: frame.traffic_class >> 2,
            identifier: sample.identifier,
            timestamp,
            endpoints: Endpoints::of_packet::<A>(interface_id, frame),
            rtt: sample.rtt,
            min_rtt: state.min_rtt,
            smoothed_rtt: state.smoothed_rtt,
            sent_packets: state.sent_packets,
            sent_bytes: state.sent_bytes,
            rec_packets: state.rec_packets,
            rec_bytes: state.rec_bytes,
            vlan: frame.vlan,
            series,
            reserved: 0,
            side_rtt: sample.side_rtt,
        }
    }
}

/// Receives the events of flows.
pub trait FlowReporter {
    /// Creates an event and reports it. `event` is a function because the kernel programs create events in place, on the
    /// ring.
    fn report(&mut self, event: impl FnOnce() -> FlowEvent);
}

impl FlowEvent {
    /// Creates the event of an opening: a packet answered the direction towards its sender. `endpoints` are those of the
    /// packet.
    #[inline(always)]
    pub fn opening(changes: &Changes, endpoints: Endpoints) -> Self {
        let by = TriggeredBy::Destination;
        Self::new(FlowEventKind::Opening, changes.opened_by, by, changes.opened_at, endpoints)
    }

    /// Reports each direction that a packet closed at `now`. `endpoints` returns those of the packet.
    #[inline(always)]
    pub fn closings(
        changes: &Changes,
        endpoints: impl Fn() -> Endpoints,
        now: u64,
        reporter: &mut impl FlowReporter,
    ) {
        let event = |by, endpoints| Self::new(FlowEventKind::Closing, changes.closed_by, by, now, endpoints);
        if changes.closed_forward {
            reporter.report(|| event(TriggeredBy::Destination, endpoints().reversed()));
        }
        if changes.closed_reverse {
            reporter.report(|| event(TriggeredBy::Source, endpoints()));
        }
    }

    /// Reports each direction of an expired flow that is still open.
    #[inline(always)]
    pub fn timeouts<A: Address>(key: &FlowKey<A>, hot: &Hot, now: u64, reporter: &mut impl FlowReporter) {
        let (kind, by) = (FlowEventKind::Closing, TriggeredBy::GarbageCollection);
        Endpoint::each(|timed| {
            if hot.state(timed).lifecycle() == Lifecycle::OPEN {
                reporter.report(|| Self::new(kind, Reason::Timeout, by, now, Endpoints::of_flow(key, timed)));
            }
        });
    }

    #[inline(always)]
    fn new(
        event: FlowEventKind,
        reason: Reason,
        triggered_by: TriggeredBy,
        timestamp: u64,
        endpoints: Endpoints,
    ) -> Self {
        Self {
            kind: EventKind::Flow as u8,
            event: event as u8,
            reason: reason as u8,
            triggered_by: triggered_by as u8,
            reserved: 0,
            timestamp,
            endpoints,
        }
    }
}

impl EndEvent {
    /// Creates the event at the end of a flow, whose last packet came at `last_packet`. If it did not close, it ends by
    /// `reason`. `volumes` are those of the low and the high endpoint.
    #[inline(always)]
    pub fn new<A: Address>(
        key: &FlowKey<A>,
        locked: &Locked,
        [low, high]: &[Volume; 2],
        last_packet: u64,
        reason: u8,
    ) -> Self {
        let (reason, ended) = match locked.closed_at() {
            None => (reason, last_packet),
            Some(closed_at) => (locked.closed_by as u8, closed_at),
        };
        let (first, began) = locked.beginning();
        Self {
            kind: EventKind::End as u8,
            reason,
            reserved: [0; 6],
            began,
            ended,
            endpoints: Endpoints::of_flow(key, first),
            sent: *first.pick(low, high),
            received: *first.pick(high, low),
        }
    }
}

impl Volume {
    /// Creates the volume of an endpoint from what it sent, and from its events. `has_segments` says whether it sent TCP
    /// segments.
    #[inline(always)]
    pub fn new(sent: Sent, events: &Events, has_segments: bool) -> Self {
        let (retransmissions, reordered) =
            if has_segments { (events.retransmissions, events.reordered) } else { (0, 0) };
        Self {
            packets: sent.packets,
            bytes: sent.bytes,
            retransmissions,
            ce_packets: events.ce_packets,
            reordered,
            reserved: 0,
        }
    }
}
