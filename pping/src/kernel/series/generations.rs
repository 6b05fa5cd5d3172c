//! Which set of prefixes is current, and when flows look up their series again.

use std::sync::atomic::Ordering;

use pping_common::{abi::Control, field};

use super::access::wait_for_programs;
use crate::kernel::memory::{Elements, atomic};

/// Says which set of prefixes is current, from any thread.
pub struct Generations(Elements<Control>);

impl Generations {
    pub(super) fn new(control: Elements<Control>) -> Self {
        Self(control)
    }

    /// The current generation of prefixes.
    pub fn current(&self) -> u32 {
        current(&self.0)
    }

    /// As [`super::SeriesTable::set_generation`], but programs that run now may use the previous set until [`Generations::wait`] returns.
    pub fn set(&self, generation: u32) {
        set(&self.0, generation);
    }

    /// Waits until no program uses a previous set any more.
    pub fn wait() {
        wait_for_programs();
    }

    /// As [`super::SeriesTable::resolve_again`].
    pub fn resolve_again(&self) {
        resolve_again(&self.0);
    }
}

pub(super) fn current(control: &Elements<Control>) -> u32 {
    atomic(control.first().at(field!(Control, generation))).load(Ordering::Relaxed)
}

pub(super) fn set(control: &Elements<Control>, generation: u32) {
    atomic(control.first().at(field!(Control, generation))).store(generation, Ordering::SeqCst);
    resolve_again(control);
}

pub(super) fn resolve_again(control: &Elements<Control>) {
    atomic(control.first().at(field!(Control, epoch))).fetch_add(1, Ordering::SeqCst);
}
