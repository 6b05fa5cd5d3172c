//! The sweep: the kernel adds up what flows sent, deletes idle ones, and gives up on DNS queries.

mod keeper;
mod lap;
mod requests;
mod sweeper;

use pping_common::{abi::Control, limits::LEASE_SECONDS};

use self::sweeper::Scope;
pub use self::sweeper::{MAX_FOLDED, Sweeper};
use super::load::Kernel;
use crate::kernel::Error;

/// Runs the sweep program for the flows and queries that are due, many at a time or one by one. Renews the lease of programs
/// that have one.
///
/// # Errors
/// If the kernel does not run it.
pub fn sweep(kernel: &mut Kernel) -> Result<(), Error> {
    sweep_scope(kernel, Scope::Due)
}

/// Like [`sweep`], but visits all flows that sent something, because no other sweep will follow.
///
/// # Errors
/// Like [`sweep`].
pub fn sweep_all(kernel: &mut Kernel) -> Result<(), Error> {
    sweep_scope(kernel, Scope::AllDue)
}

fn sweep_scope(kernel: &mut Kernel, scope: Scope) -> Result<(), Error> {
    let Kernel { programs, sweeper, series, interface_ids, .. } = kernel;
    sweeper.sweep(programs, series, interface_ids, scope)?;
    if !series.has_lapsed() {
        return Ok(());
    }
    tracing::warn!(
        "pping got no CPU for more than {LEASE_SECONDS} s, after which its programs stop: packets that \
         passed meanwhile were not measured, and all flows start over"
    );
    start_over(kernel)
}

/// Makes programs that have a lease stop until [`start_over`].
///
/// # Errors
/// Like [`sweep`].
pub fn pause(kernel: &mut Kernel) -> Result<(), Error> {
    let Kernel { programs, sweeper, series, interface_ids, .. } = kernel;
    sweeper.end_lease(series);
    sweeper.sweep(programs, series, interface_ids, Scope::Due)
}

/// Reports and deletes all flows, whose pending timestamps may have been echoed unseen. Then the programs go on, with
/// another lease.
///
/// # Errors
/// Like [`sweep`].
pub fn start_over(kernel: &mut Kernel) -> Result<(), Error> {
    let Kernel { programs, sweeper, series, interface_ids, .. } = kernel;
    series.set_cut_off(Control::PACKETS_MISSED);
    sweeper.sweep(programs, series, interface_ids, Scope::All)?;
    series.set_cut_off(0);
    sweeper.begin_lease(series);
    sweeper.sweep(programs, series, interface_ids, Scope::Due)
}
