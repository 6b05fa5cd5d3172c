//! Measures what pping itself takes: times one packet in [`TIMED_EVERY`](pping_common::limits::TIMED_EVERY), from the
//! start of the attached program to the end of the stage that ends the packet.
//!
//! A packet that brings its counter to a multiple of that number gives the next two packets on its CPU a turn
//! ([`time_next`]). Turns follow from counts and not from the clock, which would choose the first packet after a pause
//! too often. The first of the two is a rehearsal: it runs all of the timing code, but is not counted. Without it, the
//! timed packet would have to fetch code and data that run once in 65,536 packets, which takes longer than most packets
//! do. All other packets read one word when they begin and again when they end. The word hardly ever changes, so it
//! stays in the cache of every CPU. See docs/architecture.md, what a packet takes.

use core::cell::UnsafeCell;

use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use pping_common::abi::{Counters, PacketProgram};

use crate::{
    maps,
    shared::{Shared, field},
    sync::add,
};

/// The CPU that has the turn, by [`PacketProgram`]: [`NONE`], or [`of_this_cpu`] with the state of the turn. On a cache
/// line of its own. If two CPUs get a turn at the same time, one of them loses it.
#[repr(C, align(64))]
struct Turns(UnsafeCell<[u32; PacketProgram::COUNT]>);

// SAFETY: all access is by way of `Shared`, word by word.
unsafe impl Sync for Turns {}

#[unsafe(no_mangle)]
static TURNS: Turns = Turns(UnsafeCell::new([NONE; PacketProgram::COUNT]));

const NONE: u32 = 0;

/// The state of a turn, in the low bits: whether it is the second packet's turn, and whether the packet has begun.
const STATE: u32 = 0b11;
const SECOND: u32 = 0b10;
const BEGUN: u32 = 0b01;

#[inline(always)]
fn turn(program: PacketProgram) -> Shared<u32> {
    // SAFETY: a map value: the loader makes a map of all statics.
    unsafe { Shared::new(TURNS.0.get()) }.element(program as usize)
}

/// The turn of this CPU, in its first state.
#[inline(always)]
fn of_this_cpu() -> u32 {
    // SAFETY: this helper only reads a number.
    (unsafe { bpf_get_smp_processor_id() } + 1) * (STATE + 1)
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: this helper only reads a clock.
    unsafe { bpf_ktime_get_ns() }
}

/// Gives the next two packets of this program on this CPU a turn.
#[inline(always)]
pub(crate) fn time_next(program: PacketProgram) {
    turn(program).write(of_this_cpu());
}

/// Begins to time this packet, if it has a turn.
#[inline(always)]
pub(crate) fn begin(program: PacketProgram) {
    let turn = turn(program);
    if turn.read() == NONE {
        return;
    }
    let found = turn.read();
    if found & !STATE != of_this_cpu() {
        return;
    }
    if found & BEGUN != 0 {
        // An earlier packet began its turn, but left where timing does not end.
        turn.write(NONE);
        return;
    }
    let Some(scratch) = maps::scratch() else { return };
    turn.write(found | BEGUN);
    // An atomic instruction waits for all writes before it. Without this one, the packet's own first atomic instruction
    // would wait for these writes, whose cache lines other CPUs may have.
    add(&raw mut scratch.began, 1);
    scratch.began = now();
}

/// Ends a packet, and its timing if it has a turn. Calls `interface_id` only then.
#[inline(always)]
pub(crate) fn end(program: PacketProgram, interface_id: impl FnOnce() -> u16) {
    let turn = turn(program);
    if turn.read() == NONE {
        return;
    }
    let end = now();
    let found = turn.read();
    if found & !STATE != of_this_cpu() || found & BEGUN == 0 {
        return;
    }
    // The difference of the two readings is the cost of one. A mispredicted branch comes before each of them.
    let again = now();
    if found & SECOND == 0 {
        turn.write(of_this_cpu() | SECOND);
        return;
    }
    turn.write(NONE);
    let (Some(scratch), Some(counters)) = (maps::scratch(), maps::counters(interface_id())) else { return };
    let (time, reading) = (end.wrapping_sub(scratch.began), again.wrapping_sub(end));
    // If not, an interrupt came between the two readings.
    if reading < time {
        counters.at(field!(Counters, timed_packets)).element(program as usize).count(1);
        counters.at(field!(Counters, timed_ns)).element(program as usize).count(time - reading);
    }
}
