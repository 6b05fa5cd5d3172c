//! Reports the flows that a sweep removes.

use pping_common::{
    abi::{Control, Counters, Emit, EndEvent, FlowEvent, FlowReporter, Lost, Volume},
    flow::{FlowKey, Hot, Locked, Reason},
};

use crate::{
    config, emit,
    maps::{Flows, SweepRun},
    shared::prelude::*,
};

/// A flow that is removed.
pub(super) struct Ending<'a, A: Flows> {
    pub(super) key: &'a FlowKey<A>,
    /// A copy of the flow's hot part. Other CPUs may write to the flow meanwhile, but each word of a copy is one that the flow had.
    pub(super) hot: &'a Hot,
    pub(super) locked: &'a Locked,
    /// What its endpoints sent.
    pub(super) volumes: &'a [Volume; 2],
    /// When its last packet came, ns.
    pub(super) last_packet: u64,
    pub(super) run: Shared<SweepRun>,
}

impl<A: Flows> Ending<'_, A> {
    /// Reports a flow that is removed because it has been idle too long.
    #[inline(always)]
    pub(super) fn expire(&self, counters: Shared<Counters>) {
        let mut ring = Ring { lost: 0 };
        if config::emit().has(Emit::FLOWS) {
            FlowEvent::timeouts(self.key, self.hot, self.run.at(field!(SweepRun, now)).read(), &mut ring);
        }
        if config::emit().has(Emit::ENDS) {
            let is_sent = self.report(Reason::Timeout as u8);
            counters.at(field!(Counters, lost)).element(Lost::End as usize).add(u64::from(!is_sent));
        }
        counters
            .at(field!(Counters, closed))
            .element(Reason::Timeout as usize)
            .add(u64::from(self.hot.is_open()));
        counters.at(field!(Counters, lost)).element(Lost::Flow as usize).add(ring.lost);
    }

    /// Reports a flow that is removed although it may not have ended. `false` if the ring has no room and there is time
    /// to wait: then the flow stays.
    #[inline(always)]
    pub(super) fn cut_off(&self, counters: Shared<Counters>) -> bool {
        if config::emit().has(Emit::ENDS) && !self.report(EndEvent::STILL_OPEN) {
            if self.run.at(field!(SweepRun, cut_off)).read() == Control::NO_MORE_PACKETS {
                return false;
            }
            counters.at(field!(Counters, lost)).element(Lost::End as usize).add(1);
        }
        true
    }

    #[inline(always)]
    fn report(&self, reason: u8) -> bool {
        emit::push(|| EndEvent::new(self.key, self.locked, self.volumes, self.last_packet, reason))
    }
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
