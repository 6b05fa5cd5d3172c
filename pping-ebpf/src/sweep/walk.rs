//! Walks through a map in the kernel (Linux 5.13).

use core::{ffi::c_void, ptr};

use aya_ebpf::helpers::bpf_for_each_map_elem;

/// What a callback returns to go on with the next element, and to end the walk.
pub(super) const CONTINUE: i64 = 0;
pub(super) const END: i64 = 1;

/// A callback. It gets the map, a key, its value, and the context of the walk, which is null.
pub(super) type Callback<K, V> = unsafe extern "C" fn(*mut c_void, *const K, *mut V, *mut c_void) -> i64;

/// Calls `callback` for each element of a map.
///
/// Only functions that are not inlined may contain walks, and each only walks through one map: LLVM merges the tails of
/// several loops, and Linux before 6.10 rejects an iteration whose map is not known statically.
///
/// # Safety
/// `map` is a map with the keys and values of `callback`.
#[inline(always)]
pub(super) unsafe fn walk<K, V>(map: *const c_void, callback: Callback<K, V>) {
    // SAFETY: as this function requires. The verifier checks the callback against the map.
    unsafe {
        bpf_for_each_map_elem(map.cast_mut(), callback as *mut c_void, ptr::null_mut(), 0);
    }
}
