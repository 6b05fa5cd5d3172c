//! The groups, as several threads use them: that of the socket, a task that reads a file, and the agent's.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::state::State;
use crate::groups::PrefixRule;

/// The shortest time between two times that flows look up their groups again, however many changes come. (The number of such times
/// comes back to the same value after half a million, which has to take longer than a flow is remembered.)
const RESOLVE_INTERVAL: Duration = Duration::from_millis(1);

/// The groups, and what is known of them without a lock.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Whether another file took effect, and the agent does not know yet.
    has_switched: AtomicBool,
    /// Whether a client is replacing all that came from a source.
    is_replacing: AtomicBool,
    /// Whether a groups file has to have prefixes.
    prefixes: PrefixRule,
}

impl Shared {
    pub(super) fn new(state: State, prefixes: PrefixRule) -> Self {
        Self {
            state: Mutex::new(state),
            has_switched: AtomicBool::new(false),
            is_replacing: AtomicBool::new(false),
            prefixes,
        }
    }

    /// Whether a groups file has to have prefixes.
    pub(super) fn prefixes(&self) -> PrefixRule {
        self.prefixes
    }

    /// Locks the groups. Nobody may hold them for longer than some milliseconds.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Makes packets count by the changes so far: when it returns, flows look up their groups again.
    pub(super) async fn resolve(&self) {
        while !self.lock().resolve_at_most_each(RESOLVE_INTERVAL) {
            tokio::time::sleep(RESOLVE_INTERVAL).await;
        }
    }

    /// Notes that another file took effect.
    pub(super) fn note_switch(&self) {
        self.has_switched.store(true, Ordering::Release);
    }

    pub(super) fn take_switched(&self) -> bool {
        self.has_switched.swap(false, Ordering::Acquire)
    }

    /// Begins to replace all that came from a source. Returns false if somebody else does.
    pub(super) fn begin_replacing(&self) -> bool {
        !self.is_replacing.swap(true, Ordering::Acquire)
    }

    /// Ends that.
    pub(super) fn end_replacing(&self) {
        self.is_replacing.store(false, Ordering::Release);
    }
}
