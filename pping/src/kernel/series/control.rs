//! The control of running kernel programs, and their answers.

use std::{
    io,
    sync::atomic::{AtomicU32, Ordering},
};

use pping_common::{abi::Control, field, hash::SipKey, shared::Field};

use super::{
    SeriesTable,
    access::wait_for_programs,
    generations::{self, Generations},
};
use crate::kernel::{Error, memory::atomic, random::random};

impl SeriesTable {
    /// The number of epochs that have ended.
    pub fn rotations(&self) -> u32 {
        self.number(field!(Control, rotations)).load(Ordering::Relaxed)
    }

    /// The number of committed epochs: all, or all but the last.
    pub fn committed(&self) -> u32 {
        self.number(field!(Control, committed)).load(Ordering::Relaxed)
    }

    /// Makes each flow look up its series again, for example because there may be room now.
    pub fn resolve_again(&self) {
        generations::resolve_again(&self.control);
    }

    /// Makes sweeps report and delete all flows, as [`Control::NO_MORE_PACKETS`] or [`Control::PACKETS_MISSED`] says;
    /// 0 ends this.
    pub fn set_cut_off(&self, how: u32) {
        self.number(field!(Control, cut_off)).store(how, Ordering::SeqCst);
    }

    /// Whether sweeps report and delete all flows.
    pub(in super::super) fn is_cutting_off(&self) -> bool {
        self.number(field!(Control, cut_off)).load(Ordering::SeqCst) != 0
    }

    /// Whether a renewal found that the lease of the programs had run out.
    pub(in super::super) fn has_lapsed(&self) -> bool {
        self.number(field!(Control, lapsed)).load(Ordering::SeqCst) != 0
    }

    /// The number of the present sweep.
    pub(in super::super) fn sweep(&self) -> u32 {
        self.number(field!(Control, sweep)).load(Ordering::SeqCst)
    }

    /// Ends the lease of the programs, if they have one. The next renewal makes them stop. No other thread may make a
    /// request meanwhile.
    pub(in super::super) fn end_lease(&self) {
        self.control.first().at(field!(Control, lease_end)).write(Control::LAPSED);
        self.number(field!(Control, lapsed)).store(1, Ordering::SeqCst);
    }

    /// Makes the next renewal begin the lease of the programs, if they have one. No other thread may make a request
    /// meanwhile.
    pub(in super::super) fn begin_lease(&self) {
        self.control.first().at(field!(Control, lease_end)).write(0);
        self.number(field!(Control, lapsed)).store(0, Ordering::SeqCst);
    }

    /// Returns the secret of [`pping_common::series::SeriesKey::hash`], which is chosen once.
    pub(super) fn secret(&self) -> SipKey {
        // The programs only read it, and are attached only after the first call.
        let secret = self.control.first().at(field!(Control, secret));
        if secret.load() == [0; 2] {
            secret.store(&[random(), random().max(1)]);
        }
        secret.load()
    }

    /// The current generation of prefixes.
    pub fn generation(&self) -> u32 {
        generations::current(&self.control)
    }

    /// A handle that another thread may have.
    ///
    /// # Errors
    /// If the control cannot be mapped once more.
    pub fn generations(&self) -> Result<Generations, Error> {
        let again = self.control.again()?;
        again.map(Generations::new).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).into())
    }

    /// Makes a set of prefixes the current one, from one packet to the next. When it returns, no program uses the previous set
    /// any more.
    pub fn set_generation(&self, generation: u32) {
        generations::set(&self.control, generation);
        wait_for_programs();
    }

    /// A number of [`Control`].
    pub(super) fn number(&self, field: Field<Control, u32>) -> &AtomicU32 {
        atomic(self.control.first().at(field))
    }
}
