//! Secrets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Returns a random number that nobody can guess: the standard library's hash of nothing, with keys from the kernel.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
