//! Links that outlive the process.

use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use aya::programs::{
    ProgramError,
    links::{FdLink, LinkError, PinnedLink},
};

use crate::kernel::{Error, bpf, error::innermost, pins};

/// The reason why a pinned link cannot be continued.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stale {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Makes a pinned link continue with another program. Returns false if there is no link, or if it is of no use, for
/// example because its interface is gone: then it is removed.
pub(super) fn adopt(path: &Path, update: impl FnOnce(FdLink) -> Result<FdLink, Stale>) -> bool {
    if !path.exists() {
        return false;
    }
    let adopted = PinnedLink::from_pin(path).map_err(Stale::from).and_then(|found| update(found.into()));
    if let Err(stale) = &adopted {
        tracing::info!("{}: removing a link that is no longer usable ({})", path.display(), innermost(stale));
        pins::remove(path).ok();
    }
    adopted.is_ok()
}

/// Detaches the program of a pinned link. The link, now useless, stays until its pin is removed.
///
/// Removing the pin would detach, too, but only some time later. Until then the same program cannot be attached there again,
/// which a renamed interface needs at once.
///
/// # Errors
/// The error of the kernel, for example if the interface is gone already.
pub(super) fn detach(pinned: &Path) -> io::Result<()> {
    let path = CString::new(pinned.as_os_str().as_bytes())?;
    bpf::detach(bpf::open(&path)?.as_fd())
}

/// Pins a link.
pub(super) fn pin_descriptor(link: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(io::Error::from)
        .and_then(|pinned| bpf::pin(link, &pinned))
        .map_err(|error| refused(path, error.to_string()))
}

fn refused(path: &Path, reason: String) -> Error {
    Error::Pin { path: path.to_owned(), reason }
}
