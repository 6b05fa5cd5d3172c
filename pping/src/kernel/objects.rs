//! The compiled kernel programs, one set for each kind of kernel, and the memory that loading them takes.

use super::features::{Feature, Features};

static NEWEST: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs"));

/// For kernels that lack [`Feature::Fetch`].
static ADD_ONLY: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs-add-only"));

/// Returns the programs that a kernel with these features accepts.
pub(super) fn for_features(features: Features) -> &'static [u8] {
    if features.has(Feature::Fetch) { NEWEST } else { ADD_ONLY }
}

/// Gives back the memory that loading took, and which would double the agent's: aya reads all types of the kernel, and
/// the C library keeps freed memory for later. Also gives back the pages of the object, which is not read any more.
pub(super) fn release_memory(object: &'static [u8]) {
    // SAFETY: it takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let whole_pages = object.as_ptr() as usize..object.as_ptr() as usize + object.len();
    let (start, end) = (whole_pages.start.next_multiple_of(page), whole_pages.end / page * page);
    if start < end {
        // SAFETY: read-only pages of the program file, which the kernel reads again on the next access.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
    // SAFETY: it touches free memory only.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
