//! Emits events to the agent.

use aya_ebpf::bindings::{BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP};
use pping_common::{
    abi::{Counters, Emit, Endpoints, FlowEvent, FlowReporter, FlowState, Lost, RttEvent},
    flow::Changes,
    limits::RING_WAKE_BYTES,
    parse::{Address, Direction, Frame},
    rtt::Sample,
};

use crate::{config, maps::EVENTS, shared::prelude::*};

/// The bytes that the largest event takes on the ring, header included. An event that passes [`RING_WAKE_BYTES`] ends
/// less than this beyond it.
const WAKE_WINDOW: u64 = 8 + size_of::<RttEvent>() as u64;

/// The packet that causes an event.
pub(crate) struct Context<'a> {
    pub(crate) direction: Direction,
    pub(crate) interface_id: u16,
    pub(crate) frame: &'a Frame,
}

impl Context<'_> {
    #[inline(always)]
    fn endpoints<A: Address>(&self) -> Endpoints {
        Endpoints::of_packet::<A>(self.interface_id, self.frame)
    }
}

/// Emits a sample.
#[inline(always)]
pub(crate) fn rtt<A: Address>(
    context: &Context<'_>,
    counters: Shared<Counters>,
    sample: &Sample,
    state: &FlowState,
    now: u64,
    series: u32,
) {
    if !config::emit().has(Emit::SAMPLES) {
        return;
    }
    let packet = (context.interface_id, context.direction as u8, context.frame);
    let is_sent = push(|| RttEvent::new::<A>(packet, now, sample, state, series));
    count_lost(counters, Lost::Rtt, is_sent);
}

/// Emits an event: the direction towards the packet's sender opened.
#[inline(always)]
pub(crate) fn opening<A: Address>(context: &Context<'_>, counters: Shared<Counters>, changes: &Changes) {
    if !config::emit().has(Emit::FLOWS) {
        return;
    }
    let is_sent = push(|| FlowEvent::opening(changes, context.endpoints::<A>()));
    count_lost(counters, Lost::Flow, is_sent);
}

/// Emits an event for each direction that the packet closed.
#[inline(always)]
pub(crate) fn closing<A: Address>(
    context: &Context<'_>,
    counters: Shared<Counters>,
    changes: &Changes,
    now: u64,
) {
    if !config::emit().has(Emit::FLOWS) {
        return;
    }
    FlowEvent::closings(changes, || context.endpoints::<A>(), now, &mut Ring(counters));
}

/// The ring, and the counters of events lost.
struct Ring(Shared<Counters>);

impl FlowReporter for Ring {
    #[inline(always)]
    fn report(&mut self, event: impl FnOnce() -> FlowEvent) {
        count_lost(self.0, Lost::Flow, push(event));
    }
}

#[inline(always)]
fn count_lost(counters: Shared<Counters>, kind: Lost, is_sent: bool) {
    counters.at(field!(Counters, lost)).element(kind as usize).count(u64::from(!is_sent));
}

/// Puts an event on the ring; `false` if there is no room. The event is made in place, because the stack is small.
#[inline(always)]
pub(crate) fn push<T: 'static>(event: impl FnOnce() -> T) -> bool {
    let Some(mut entry) = EVENTS.reserve::<T>(0) else { return false };
    entry.write(event());
    let waiting = EVENTS.query(u64::from(BPF_RB_AVAIL_DATA));
    // Wakes the agent once, when the ring passes the mark: a wake-up costs more than twenty events. If it is missed,
    // the agent finds the events when it next drains the ring.
    let wake = if (RING_WAKE_BYTES..RING_WAKE_BYTES + WAKE_WINDOW).contains(&waiting) {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    };
    entry.submit(u64::from(wake));
    true
}
