//! Holding back signals, which interrupt system calls: the kernel stops verifying a program halfway, and answers a
//! probe of its features with `EAGAIN`.

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::kernel::Error;

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
