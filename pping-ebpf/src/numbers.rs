//! Hands out the numbers of entries: those of flows, and those of the pool of pending entries.

use aya_ebpf::maps::Stack;
use pping_common::table::Numbers;

use crate::{shared::prelude::*, sync};

/// Takes a free number: the last one given back, or else one that was never used. `None` if all are taken, or if other
/// CPUs hold the locks.
#[inline(always)]
pub(crate) fn take(free: &Stack<u32>, numbers: Shared<Numbers>) -> Option<u32> {
    if let Ok(Some(number)) = free.pop() {
        return Some(number);
    }
    let (busy, used) = (numbers.at(field!(Numbers, busy)), numbers.at(field!(Numbers, used)));
    let max = numbers.at(field!(Numbers, max)).read();
    if used.read() >= max || !sync::lock_briefly(busy) {
        return None;
    }
    let number = used.read();
    let is_there = number < max;
    used.write(number + u32::from(is_there));
    sync::unlock(busy);
    is_there.then_some(number)
}

/// Gives a number back.
#[inline(always)]
pub(crate) fn give(free: &Stack<u32>, number: u32) {
    // The stack has room for all, so this fails only if other CPUs hold it too long. Then the number is lost.
    let _ = free.push(&number, 0);
}
