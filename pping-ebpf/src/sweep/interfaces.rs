//! Updates the entries of watched interfaces: the number of the present sweep, and the end of the lease.
//!
//! A packet reads both from its interface's entry. The run that begins a sweep writes them before it visits any flow.
//! So no flow looks older than it is, and the next renewal judges the lease that packets had.

use core::ffi::c_void;

use pping_common::{
    abi::{Control, Interface, InterfaceRoom},
    limits::{DEFAULT_MAX_INTERFACES, MAX_DUE},
};

use super::walk::{CONTINUE, END, walk};
use crate::{
    maps::{self, DUE, SweepRun},
    shared::prelude::*,
};

/// Updates the entries of all watched interfaces.
#[inline(never)]
pub(super) fn walk_through() {
    // SAFETY: the callback is for the keys and values of this map.
    unsafe { walk((&raw const DUE).cast(), update_next) };
}

/// Updates the entry of one interface. [`DUE`] lists the entries of all watched interfaces.
///
/// # Safety
/// The kernel calls it with an element of the map.
unsafe extern "C" fn update_next(_: *mut c_void, index: *const u32, entry: *mut u64, _: *mut c_void) -> i64 {
    // SAFETY: an element of the map.
    let (index, entry) = unsafe { (*index, *entry) };
    if index >= watched() {
        return END;
    }
    update(entry as u32);
    CONTINUE
}

/// Updates the entries of all watched interfaces, on kernels that cannot walk through a map. There are no more of them than by
/// default: the verifier would follow each of thousands.
#[inline(always)]
pub(super) fn update_all() {
    let watched = watched();
    for index in 0..MAX_DUE {
        if index >= watched {
            return;
        }
        let Some(&entry) = DUE.get(index) else { return };
        update(entry as u32);
    }
}

/// The number of entries that [`DUE`] lists.
#[inline(always)]
fn watched() -> u32 {
    maps::sweep_run().map_or(0, |run| run.at(field!(SweepRun, due)).read())
}

#[inline(always)]
fn update(entry: u32) {
    let (Some(control), Some(interface)) = (maps::control(), maps::interface_at(entry)) else { return };
    let (sweep, lease_end) = (field!(Control, sweep), field!(Control, lease_end));
    interface.at(field!(Interface, sweep)).write(control.at(sweep).read());
    interface.at(field!(Interface, lease_end)).write(control.at(lease_end).read());
}

const _: () = assert!(InterfaceRoom::of(DEFAULT_MAX_INTERFACES).watched() <= MAX_DUE);
