//! Detaching pinned links at once.
//!
//! When the pin of a link is removed, the kernel detaches the program only some time later. Until then the same program
//! cannot be attached there again, which a renamed interface needs at once.

use std::{
    ffi::CString,
    io,
    os::{fd::AsFd as _, unix::ffi::OsStrExt as _},
    path::Path,
};

use super::bpf;

/// Detaches the program of a pinned link. The link, now useless, stays until its pin is removed.
///
/// # Errors
/// The error of the kernel, for example if the interface is gone already.
pub(super) fn detach(pinned: &Path) -> io::Result<()> {
    let path = CString::new(pinned.as_os_str().as_bytes())?;
    bpf::detach(bpf::open(&path)?.as_fd())
}
