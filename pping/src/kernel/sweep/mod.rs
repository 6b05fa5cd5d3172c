//! The sweep: the kernel adds up what flows sent, deletes idle ones, and gives up on DNS queries.

mod lap;
mod sweeper;

use pping_common::{abi::Control, limits::LEASE_SECONDS};

use self::sweeper::Of;
pub use self::sweeper::{SHARE, Sweeper};
use super::load::Kernel;
use crate::kernel::Error;

/// Runs the sweep program for the flows and queries that are due, many at a time or one by one. Renews the lease of programs
/// that have one.
///
/// # Errors
/// If the kernel does not run it.
pub fn sweep(kernel: &mut Kernel) -> Result<(), Error> {
    sweep_of(kernel, Of::Due)
}

/// Like [`sweep`], but visits all flows that sent something, because no other sweep will follow.
///
/// # Errors
/// Like [`sweep`].
pub fn sweep_all(kernel: &mut Kernel) -> Result<(), Error> {
    sweep_of(kernel, Of::AllDue)
}

fn sweep_of(kernel: &mut Kernel, of: Of) -> Result<(), Error> {
    let Kernel { programs, sweeper, series, interface_ids, .. } = kernel;
    sweeper.sweep(programs, series, interface_ids, of)?;
    if !series.has_lapsed() {
        return Ok(());
    }
    tracing::warn!(
        "this process got no CPU for longer than the {LEASE_SECONDS} s after which its programs take it for dead: what \
         passed meanwhile was not measured, and all flows start over"
    );
    // Pending timestamps may have been echoed unseen.
    series.cut_off(Control::RESTART);
    sweeper.sweep(programs, series, interface_ids, of)?;
    series.cut_off(0);
    series.begin_lease();
    sweeper.sweep(programs, series, interface_ids, of)
}
