//! Detaching what is pinned, there and then.
//!
//! A link whose pin is removed detaches its program, but in the kernel's own time: until then the same program cannot be
//! attached there again, as it has to be where an interface got another name.

use std::{
    ffi::CString,
    io,
    os::{fd::AsFd as _, unix::ffi::OsStrExt as _},
    path::Path,
};

use super::bpf;

/// Detaches the program of a link that is pinned; the link, of no use any more, stays until its pin is removed.
///
/// # Errors
/// The error of the kernel, as when the interface is gone already.
pub(super) fn detach(pinned: &Path) -> io::Result<()> {
    let path = CString::new(pinned.as_os_str().as_bytes())?;
    bpf::detach(bpf::open(&path)?.as_fd())
}
