//! Signals, which interrupt system calls: the kernel gives up on a program half verified, and answers a question about itself with
//! `EAGAIN`.

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::kernel::Error;

/// Signals wait as long as this lives.
#[must_use]
pub(super) struct Held {
    before: SigSet,
}

/// Holds all signals to this thread and to threads that it starts. Those to the process that come meanwhile are delivered
/// afterwards.
///
/// # Errors
/// The error of the system call, if there are no signal masks.
pub(super) fn hold() -> Result<Held, Error> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(std::io::Error::from)?;
    Ok(Held { before })
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = self.before.thread_set_mask() {
            tracing::warn!("signals are still held: {error}");
        }
    }
}
