//! Memory that this process has freed.

/// Gives freed memory back to the kernel. The C library keeps it for later, also where nothing of its kind comes again: after a
/// start, and after each reading of a long file. It takes some milliseconds for each 100 MB.
pub(crate) fn give_back() {
    // SAFETY: it touches free memory only.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
