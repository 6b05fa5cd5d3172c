//! Whether the agent is ready to measure.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether programs are attached and the ring is being drained.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Marks the agent as ready.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
