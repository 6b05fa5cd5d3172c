//! The packet that a CPU is busy with.

use aya_ebpf::{macros::map, maps::PerCpuArray};
use pping_common::{
    abi::FlowState,
    arm::Arm,
    flow::{Changes, Endpoint, FlowSnapshot, Hot, HotDirection, SpinTimes},
    parse::{Direction, Frame, Untracked},
    rtt::{MatchPlan, Measured, PossibleChange, Progress},
    table::Slot,
};

use super::{
    flows::{Occupant, RecentFlow},
    series::SeriesTarget,
};
use crate::shared::prelude::*;

#[map]
static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

/// The packet that a CPU is busy with. Each stage leaves it here for the next. It is in a map for the verifier's sake,
/// too: see [`mod@crate::barrier`].
pub(crate) struct Scratch {
    /// The packet.
    pub(crate) packet: Packet,
    /// The flow that it belongs to.
    pub(crate) flow: PacketFlow,
    /// What it does to that flow.
    pub(crate) outcome: Outcome,
    /// The flow or query that takes a place in the rings of newcomers.
    pub(crate) newcomer: Newcomer,
}

/// A packet, and the interface that it passes.
pub(crate) struct Packet {
    /// Whether it comes in or goes out.
    pub(crate) direction: Direction,
    /// The time at which it began, ns, if it is timed. See [`crate::cost`].
    pub(crate) began: u64,
    /// The id of the interface in counters.
    pub(crate) interface_id: u16,
    /// The id of the interface in flows and series.
    pub(crate) joined_id: u16,
    /// The number of its link type.
    pub(crate) link_type: u16,
    /// The number of the present sweep.
    pub(crate) sweep: u32,
    /// How many buckets each flow table has, by family.
    pub(crate) buckets: [u32; 2],
    /// [`Interface::has_two_arms`](pping_common::abi::Interface).
    pub(crate) has_two_arms: u32,
    /// The parsed packet.
    pub(crate) frame: Frame,
    /// What identifies it, at a mirror port.
    pub(crate) identity: [u64; Frame::IDENTITY_WORDS],
    /// The outcome of parsing.
    pub(crate) parsed: Result<(), Untracked>,
    /// Its time, ns, once its flow is locked.
    pub(crate) now: u64,
}

/// The flow of a packet.
pub(crate) struct PacketFlow {
    /// The endpoint that sent the packet.
    pub(crate) from: Endpoint,
    /// The slot of the flow.
    pub(crate) slot: Slot,
    /// The occupant of that slot.
    pub(crate) occupant: Occupant,
    /// What the packet found in the flow.
    pub(crate) snapshot: FlowSnapshot,
    /// Not 0 if the flow is of UDP.
    pub(crate) is_udp: u32,
    /// Where the latest segment of the other direction ended that lies outside of its window.
    pub(crate) outside_end: u32,
    /// Copies of the flow's words while it is locked.
    pub(crate) copies: Copies,
    /// The state of the flow for the event.
    pub(crate) state: FlowState,
}

/// What a packet does to its flow.
pub(crate) struct Outcome {
    /// How it advanced its direction.
    pub(crate) progress: Progress,
    /// What it may change.
    pub(crate) possible_change: PossibleChange,
    /// What it opened or closed.
    pub(crate) changes: Changes,
    /// What to match and what to record.
    pub(crate) plan: MatchPlan,
    /// What the first pass measured.
    pub(crate) measured: Measured,
    /// What the second pass, by sequence numbers, measured.
    pub(crate) measured_second: Measured,
    /// The series of the sample.
    pub(crate) target: SeriesTarget,
}

/// A place in the rings of newcomers.
pub(crate) struct Newcomer {
    /// The flow that has to leave a ring.
    pub(crate) recent: RecentFlow,
    /// The place of a DNS query.
    pub(crate) place: u32,
    /// How many places ahead in a ring the first free one is; 0 if none is near.
    pub(crate) ahead: u32,
}

impl Scratch {
    /// The arm from which the packet comes.
    #[inline(always)]
    pub(crate) fn arm(&self) -> Arm {
        Arm::new(self.packet.joined_id, self.packet.direction as u8, self.packet.has_two_arms != 0)
    }

    /// The arm from which the packet would come if the interface had not shown meanwhile how many it has.
    pub(crate) fn former_arm(&self) -> Arm {
        Arm::new(self.packet.joined_id, self.packet.direction as u8, self.packet.has_two_arms == 0)
    }
}

/// Copies of what other CPUs look at while a flow is locked, for [`pping_common::flow::LockedFlow`].
pub(crate) struct Copies {
    /// The hot part of the flow.
    pub(crate) hot: Hot,
    /// The directions in `hot` as they were copied.
    pub(crate) before: [HotDirection; 2],
    /// The times of the spin bit, of a flow of UDP.
    pub(crate) spin: [SpinTimes; 2],
}

/// When the packet began that is timed on this CPU: [`Packet::began`].
#[inline(always)]
pub(crate) fn began() -> Option<Shared<u64>> {
    Some(SCRATCH.shared(0)?.at(field!(Scratch, packet.began)))
}

/// The scratch space of this CPU. Each stage asks for it once, and passes it on.
///
/// # Safety
/// No other reference to it may be used for as long as this one.
#[inline(always)]
pub(crate) unsafe fn scratch() -> Option<&'static mut Scratch> {
    // SAFETY: this CPU's own, and softirqs are off while a packet is handled, so there is one user: the caller.
    SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}
