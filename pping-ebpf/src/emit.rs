//! Telling the agent.

use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use pping_common::{
    abi::{
        Counters, Direction, Emit, EndEvent, Endpoints, EventKind, FlowEvent, FlowEventKind, Lost, RttEvent,
        TriggeredBy, Volume,
    },
    flow::{Address, Changes, FlowDirection, Reason},
    limits::RING_WAKE_BYTES,
    parse::{Frame, Kind, Protocol},
    rtt::Sample,
};

use crate::{config, maps::EVENTS};

/// Bytes that the largest event takes on the ring, with its header: within these the mark is passed.
const WAKE_WINDOW: u64 = 8 + size_of::<RttEvent>() as u64;

/// The packet that gives rise to an event.
pub(crate) struct Context<'a> {
    pub(crate) direction: Direction,
    pub(crate) interface_id: u16,
    pub(crate) frame: &'a Frame,
}

impl Context<'_> {
    /// The flow, the sender of the packet being the host that replied.
    #[inline(always)]
    fn endpoints<A: Address>(&self) -> Endpoints {
        let transport = &self.frame.transport;
        let (source_port, destination_port) = transport.ports();
        Endpoints {
            source: A::of(self.frame.source).to_address().to_bytes(),
            destination: A::of(self.frame.destination).to_address().to_bytes(),
            source_port,
            destination_port,
            interface: self.interface_id,
            protocol: match transport.kind {
                Kind::Tcp => Protocol::Tcp as u8,
                Kind::Echo => A::ECHO as u8,
                Kind::Dns | Kind::Quic => Protocol::Udp as u8,
            },
            reserved: 0,
        }
    }
}

/// What a sample's record tells of its flow.
pub(crate) struct State {
    pub(crate) min_rtt: u64,
    pub(crate) smoothed_rtt: u64,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) rec_packets: u64,
    pub(crate) rec_bytes: u64,
}

/// Reports a sample.
#[inline(always)]
pub(crate) fn rtt<A: Address>(
    context: &Context<'_>,
    counters: &mut Counters,
    sample: &Sample,
    state: &State,
    now: u64,
    series: u32,
) {
    if !config::emit().has(Emit::SAMPLES) {
        return;
    }
    let sent = push(|| RttEvent {
        kind: EventKind::Rtt as u8,
        method: sample.method as u8,
        direction: context.direction as u8,
        dscp: context.frame.traffic_class >> 2,
        identifier: sample.identifier,
        timestamp: now,
        endpoints: context.endpoints::<A>(),
        rtt: sample.rtt,
        min_rtt: state.min_rtt,
        smoothed_rtt: state.smoothed_rtt,
        sent_packets: state.sent_packets,
        sent_bytes: state.sent_bytes,
        rec_packets: state.rec_packets,
        rec_bytes: state.rec_bytes,
        vlan: context.frame.vlan,
        series,
        reserved: 0,
        side_rtt: sample.side_rtt,
    });
    counters.lost[Lost::Rtt as usize] += u64::from(!sent);
}

/// Reports that the direction towards the packet's sender opened.
#[inline(always)]
pub(crate) fn opening<A: Address>(context: &Context<'_>, counters: &mut Counters, changes: &Changes) {
    if !config::emit().has(Emit::FLOWS) {
        return;
    }
    let sent = flow(
        FlowEventKind::Opening,
        changes.opened_by,
        TriggeredBy::Destination,
        changes.opened_at,
        context.endpoints::<A>(),
    );
    counters.lost[Lost::Flow as usize] += u64::from(!sent);
}

/// Reports which directions the packet closed.
#[inline(always)]
pub(crate) fn closing<A: Address>(
    context: &Context<'_>,
    counters: &mut Counters,
    changes: &Changes,
    now: u64,
) {
    if !config::emit().has(Emit::FLOWS) {
        return;
    }
    if changes.closed_forward {
        let endpoints = context.endpoints::<A>().reversed();
        let sent = flow(FlowEventKind::Closing, changes.closed_by, TriggeredBy::Destination, now, endpoints);
        counters.lost[Lost::Flow as usize] += u64::from(!sent);
    }
    if changes.closed_reverse {
        let sent = flow(
            FlowEventKind::Closing,
            changes.closed_by,
            TriggeredBy::Source,
            now,
            context.endpoints::<A>(),
        );
        counters.lost[Lost::Flow as usize] += u64::from(!sent);
    }
}

/// Reports a change in the life of the direction from `endpoints.destination` to `endpoints.source`.
#[inline(always)]
pub(crate) fn flow(
    event: FlowEventKind,
    reason: Reason,
    triggered_by: TriggeredBy,
    timestamp: u64,
    endpoints: Endpoints,
) -> bool {
    push(|| FlowEvent {
        kind: EventKind::Flow as u8,
        event: event as u8,
        reason: reason as u8,
        triggered_by: triggered_by as u8,
        reserved: 0,
        timestamp,
        endpoints,
    })
}

/// Reports that a flow is over. `timed` is what `endpoints.destination` sent, `other` what it was sent.
#[inline(always)]
pub(crate) fn end(
    reason: u8,
    (began, ended): (u64, u64),
    endpoints: Endpoints,
    timed: &FlowDirection,
    other: &FlowDirection,
) -> bool {
    push(|| EndEvent {
        kind: EventKind::End as u8,
        reason,
        reserved: [0; 6],
        began,
        ended,
        endpoints,
        sent: Volume::from(timed),
        received: Volume::from(other),
    })
}

/// Puts an event on the ring; `false` when there is no room. It is made in place: the stack is small.
#[inline(always)]
fn push<T: 'static>(event: impl FnOnce() -> T) -> bool {
    let Some(mut entry) = EVENTS.reserve::<T>(0) else { return false };
    entry.write(event());
    let waiting = EVENTS.query(u64::from(BPF_RB_AVAIL_DATA));
    // Once, as the mark is passed: a wake-up costs more than twenty events. One that is missed, or does not
    // help at once, is made up for by the agent's own look at the ring.
    let wake = if (RING_WAKE_BYTES..RING_WAKE_BYTES + WAKE_WINDOW).contains(&waiting) {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    };
    entry.submit(u64::from(wake));
    true
}
