//! What is reported of flows that a sweep removes.

use pping_common::{
    abi::{Control, Counters, Emit, EndEvent, FlowEvent, FlowReporter, Lost},
    flow::{Flow, FlowKey, Reason},
    limits::{SECOND, SWEEP_INTERVAL_SECONDS},
};

use crate::{
    config, emit,
    maps::{Flows, Sweep},
    shared::{Shared, field},
    sync,
};

/// Reports a flow that has been idle too long, and is removed.
#[inline(always)]
pub(super) fn expire<A: Flows>(key: &FlowKey<A>, flow: &Flow, sweep: &Sweep, counters: Shared<Counters>) {
    let mut ring = Ring { lost: 0 };
    if config::emit().has(Emit::FLOWS) {
        FlowEvent::timeouts(key, flow, sweep.now, &mut ring);
    }
    if config::emit().has(Emit::ENDS) {
        let is_sent = end(key, flow, sweep, Reason::Timeout as u8);
        add_lost(counters, Lost::End, u64::from(!is_sent));
    }
    let closed = counters.at(field!(Counters, closed)).element(Reason::Timeout as usize);
    sync::add(closed.as_ptr(), u64::from(flow.is_open()));
    add_lost(counters, Lost::Flow, ring.lost);
}

#[inline(always)]
fn add_lost(counters: Shared<Counters>, kind: Lost, events: u64) {
    sync::add(counters.at(field!(Counters, lost)).element(kind as usize).as_ptr(), events);
}

/// The ring, and how many events it had no room for.
struct Ring {
    lost: u64,
}

impl FlowReporter for Ring {
    #[inline(always)]
    fn report(&mut self, event: impl FnOnce() -> FlowEvent) {
        self.lost += u64::from(!emit::push(event));
    }
}

/// Reports a flow that is removed though it may not have ended. `false` if there is no room to report it, but time to wait for
/// some: the flow stays.
#[inline(always)]
pub(super) fn cut_off<A: Flows>(
    key: &FlowKey<A>,
    flow: &Flow,
    sweep: &Sweep,
    counters: Shared<Counters>,
) -> bool {
    if config::emit().has(Emit::ENDS) && !end(key, flow, sweep, EndEvent::STILL_OPEN) {
        if sweep.cut_off == Control::OVER {
            return false;
        }
        add_lost(counters, Lost::End, 1);
    }
    true
}

#[inline(always)]
fn end<A: Flows>(key: &FlowKey<A>, flow: &Flow, sweep: &Sweep, reason: u8) -> bool {
    let idle = u64::from(sweep.number.wrapping_sub(flow.last_seen) * SWEEP_INTERVAL_SECONDS) * SECOND;
    let last_packet = sweep.now.saturating_sub(idle).max(flow.last_known());
    emit::push(|| EndEvent::new(key, flow, last_packet, reason))
}
