//! Measures what pping itself takes: times one packet in [`TIMED_EVERY`](pping_common::limits::TIMED_EVERY), from the
//! start of the attached program to the end of the stage that ends the packet.
//!
//! A packet that brings its counter to a multiple of that number schedules the next two packets on its CPU
//! ([`schedule_next`]). Counts choose them and not the clock, which would choose the first packet after a pause too
//! often. The first of the two warms the caches: it runs all of the timing code, but is not counted. Without it, the
//! timed packet would have to fetch code and data that run once in 65,536 packets, which takes longer than most packets
//! do. All other packets read one word when they begin and again when they end. The word hardly ever changes, so it
//! stays in the cache of every CPU. See docs/lab/performance.md, how programs time themselves.

use core::cell::UnsafeCell;

use aya_ebpf::helpers::{bpf_get_smp_processor_id, bpf_ktime_get_ns};
use pping_common::abi::{Counters, PacketProgram};

use crate::{maps, shared::prelude::*};

/// The CPU whose next packet is timed, by [`PacketProgram`]: [`NONE`], or [`scheduled_on_this_cpu`] with the [`STATE`].
/// On its own cache line. If two CPUs schedule packets at the same time, one of them loses its own.
#[repr(C, align(64))]
struct Schedule(UnsafeCell<[u32; PacketProgram::COUNT]>);

// SAFETY: all access is by way of `Shared`, word by word.
unsafe impl Sync for Schedule {}

#[unsafe(no_mangle)]
static SCHEDULE: Schedule = Schedule(UnsafeCell::new([NONE; PacketProgram::COUNT]));

const NONE: u32 = 0;

/// The state, in the low bits: whether the second packet is scheduled, and whether the scheduled packet has begun.
const STATE: u32 = 0b11;
const SECOND: u32 = 0b10;
const BEGUN: u32 = 0b01;

#[inline(always)]
fn schedule(program: PacketProgram) -> Shared<u32> {
    // SAFETY: a map value: the loader makes a map of all statics.
    unsafe { Shared::new(SCHEDULE.0.get()) }.element(program as usize)
}

/// The schedule with this CPU, in its first state.
#[inline(always)]
fn scheduled_on_this_cpu() -> u32 {
    // SAFETY: this helper only reads a number.
    (unsafe { bpf_get_smp_processor_id() } + 1) * (STATE + 1)
}

#[inline(always)]
fn now() -> u64 {
    // SAFETY: this helper only reads a clock.
    unsafe { bpf_ktime_get_ns() }
}

/// Schedules the next two packets of this program on this CPU.
#[inline(always)]
pub(crate) fn schedule_next(program: PacketProgram) {
    schedule(program).write(scheduled_on_this_cpu());
}

/// Begins to time this packet, if it is scheduled.
#[inline(always)]
pub(crate) fn begin(program: PacketProgram) {
    let schedule = schedule(program);
    if schedule.read() == NONE {
        return;
    }
    let scheduled = schedule.read();
    if scheduled & !STATE != scheduled_on_this_cpu() {
        return;
    }
    if scheduled & BEGUN != 0 {
        // An earlier packet started timing, but returned by a path that does not stop it.
        schedule.write(NONE);
        return;
    }
    let Some(began) = maps::began() else { return };
    schedule.write(scheduled | BEGUN);
    // An atomic instruction waits for all writes before it. Without this one, the packet's own first atomic instruction
    // would wait for these writes, whose cache lines other CPUs may have.
    began.add(1);
    began.write(now());
}

/// Ends a packet, and its timing if it is scheduled. Calls `interface_id` only then.
#[inline(always)]
pub(crate) fn end(program: PacketProgram, interface_id: impl FnOnce() -> u16) {
    let schedule = schedule(program);
    if schedule.read() == NONE {
        return;
    }
    let end = now();
    let scheduled = schedule.read();
    if scheduled & !STATE != scheduled_on_this_cpu() || scheduled & BEGUN == 0 {
        return;
    }
    // The difference of the two readings is the cost of one. A mispredicted branch comes before each of them.
    let second_reading = now();
    if scheduled & SECOND == 0 {
        schedule.write(scheduled_on_this_cpu() | SECOND);
        return;
    }
    schedule.write(NONE);
    let (Some(began), Some(counters)) = (maps::began(), maps::counters(interface_id())) else { return };
    let (time, reading) = (end.wrapping_sub(began.read()), second_reading.wrapping_sub(end));
    // If not, an interrupt came between the two readings.
    if reading < time {
        counters.at(field!(Counters, timed_packets)).element(program as usize).count(1);
        counters.at(field!(Counters, timed_ns)).element(program as usize).count(time - reading);
    }
}
