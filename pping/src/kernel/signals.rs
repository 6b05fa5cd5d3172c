//! Signals interrupt system calls: the kernel stops verifying a program halfway, and answers a probe of its features with
//! `EAGAIN`. So they are held back, and what is interrupted all the same is tried again.

use std::io::ErrorKind;

use aya::programs::ProgramError;
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::kernel::Error;

/// Attempts to load a program that is interrupted, as many as libbpf makes.
const LOAD_ATTEMPTS: u32 = 5;

/// Holds signals back until it is dropped.
#[must_use]
pub(super) struct Held {
    before: SigSet,
}

/// Holds back all signals to this thread and to threads that it starts. Signals to the process that come meanwhile are
/// delivered afterwards.
///
/// # Errors
/// If the system call fails.
pub(super) fn hold() -> Result<Held, Error> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(std::io::Error::from)?;
    Ok(Held { before })
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = self.before.thread_set_mask() {
            tracing::warn!("cannot unblock signals: {error}");
        }
    }
}

/// Loads again while loading is interrupted. Signals are held back, but a process that is stopped, frozen or traced is
/// interrupted all the same. The verifier then gives up with `EAGAIN`, which says nothing about the program.
pub(super) fn retry_interrupted(
    mut load: impl FnMut() -> Result<(), ProgramError>,
) -> Result<(), ProgramError> {
    for _ in 1..LOAD_ATTEMPTS {
        match load() {
            Err(ProgramError::LoadError { io_error, .. }) if io_error.kind() == ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
    load()
}
