//! Updating the entries of watched interfaces: which sweep has begun, and until when the lease is good.
//!
//! A packet reads both from its interface's entry. They are written in the run that begins a sweep, before it visits any flow: so no
//! flow looks older than it is, and all packets have the same lease as the next renewal looks at.

use core::ffi::c_void;

use pping_common::{
    abi::{Control, Interface},
    limits::{MAX_DUE, MAX_INTERFACES},
};

use super::walk::{END, GO_ON};
use crate::{
    maps::{self, DUE},
    shared::field,
};

/// Updates the entry of one interface; [`DUE`] has the entries of all that are watched.
pub(super) extern "C" fn update_next(
    _: *mut c_void,
    index: *const u32,
    entry: *mut u64,
    _: *mut c_void,
) -> i64 {
    // SAFETY: an element of the map.
    let (index, entry) = unsafe { (*index, *entry) };
    if index >= watched() {
        return END;
    }
    update(entry as u32);
    GO_ON
}

/// Updates all of them, where the kernel does not walk through a map.
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

/// How many are watched.
#[inline(always)]
fn watched() -> u32 {
    // SAFETY: a map value, valid for the program's run, and the sweep has been written.
    maps::sweep().map_or(0, |sweep| unsafe { (&raw const (*sweep).due).read_volatile() })
}

#[inline(always)]
fn update(entry: u32) {
    let (Some(control), Some(interface)) = (maps::control(), maps::interface_at(entry)) else { return };
    let (sweep, lease_end) = (field!(Control, sweep), field!(Control, lease_end));
    interface.at(field!(Interface, sweep)).write(control.at(sweep).read());
    interface.at(field!(Interface, lease_end)).write(control.at(lease_end).read());
}

// An interface that was made again may still have its old entry, too.
const _: () = assert!(2 * MAX_INTERFACES <= MAX_DUE);
