//! The control of running kernel programs, and their answers.

use std::{
    mem::offset_of,
    sync::atomic::{AtomicU32, Ordering},
};

use pping_common::{abi::Control, hash::SipKey};

use super::{SeriesTable, shared::wait_for_programs};
use crate::kernel::random::random;

impl SeriesTable {
    /// The number of epochs that have ended.
    pub fn rotations(&self) -> u32 {
        self.number(offset_of!(Control, phase)).load(Ordering::Relaxed)
    }

    /// The number of committed epochs: all, or all but the last.
    pub fn committed(&self) -> u32 {
        self.number(offset_of!(Control, committed)).load(Ordering::Relaxed)
    }

    /// Makes each flow look up its series again, for example because there may be room now.
    pub fn resolve_again(&self) {
        self.number(offset_of!(Control, epoch)).fetch_add(1, Ordering::SeqCst);
    }

    /// Makes sweeps report and delete all flows, as [`Control::NO_MORE_PACKETS`] or [`Control::PACKETS_MISSED`] says;
    /// 0 ends this.
    pub fn set_cut_off(&self, how: u32) {
        self.number(offset_of!(Control, cut_off)).store(how, Ordering::SeqCst);
    }

    /// Whether sweeps report and delete all flows.
    pub(in super::super) fn is_cutting_off(&self) -> bool {
        self.number(offset_of!(Control, cut_off)).load(Ordering::SeqCst) != 0
    }

    /// Whether a renewal found that the lease of the programs had run out.
    pub(in super::super) fn has_lapsed(&self) -> bool {
        self.number(offset_of!(Control, lapsed)).load(Ordering::SeqCst) != 0
    }

    /// The number of the present sweep.
    pub(in super::super) fn sweep(&self) -> u32 {
        self.number(offset_of!(Control, sweep)).load(Ordering::SeqCst)
    }

    /// Ends the lease of the programs, if they have one. The next renewal makes them stop. No other thread may make a
    /// request meanwhile.
    pub(in super::super) fn end_lease(&self) {
        // SAFETY: inside the mapping of one `Control`. The programs write to it in a sweep only, and none is run now.
        unsafe { (&raw mut (*self.control.first()).lease_end).write_volatile(Control::LAPSED) };
        self.number(offset_of!(Control, lapsed)).store(1, Ordering::SeqCst);
    }

    /// Makes the next renewal begin the lease of the programs, if they have one. No other thread may make a request
    /// meanwhile.
    pub(in super::super) fn begin_lease(&self) {
        // SAFETY: inside the mapping of one `Control`. The programs write to it in a sweep only, and none is run now.
        unsafe { (&raw mut (*self.control.first()).lease_end).write_volatile(0) };
        self.number(offset_of!(Control, lapsed)).store(0, Ordering::SeqCst);
    }

    /// Returns the secret of [`pping_common::abi::SeriesKey::hash`], which is chosen once.
    pub(super) fn secret(&self) -> SipKey {
        // SAFETY: inside the mapping of one `Control`. The programs only read it, and are attached only after the first
        // call.
        let secret = unsafe { &raw mut (*self.control.first()).secret };
        // SAFETY: as above.
        unsafe {
            if secret.read() == [0; 2] {
                secret.write([random(), random().max(1)]);
            }
            secret.read()
        }
    }

    /// The generation of the prefixes in force.
    pub fn generation(&self) -> u32 {
        self.number(offset_of!(Control, generation)).load(Ordering::Relaxed)
    }

    /// Puts a set of prefixes in force, from one packet to the next. When it returns, no program uses the previous set
    /// any more.
    pub fn set_generation(&self, generation: u32) {
        self.number(offset_of!(Control, generation)).store(generation, Ordering::SeqCst);
        self.resolve_again();
        wait_for_programs();
    }

    /// The number at an offset of [`Control`].
    pub(super) fn number(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping of one `Control`, which lives as long as `self`; all its fields are aligned numbers
        // of this size, and only accessed as atomics.
        unsafe { AtomicU32::from_ptr(self.control.first().byte_add(offset).cast()) }
    }
}
