//! The programs attached to an interface.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use aya::programs::xdp::XdpLink;

use super::{AttachPoints, clsact};
use crate::kernel::{Error, detach, pins};

/// The attached programs of an interface. Dropping it detaches them, except pinned ones.
pub struct Attachment {
    /// Its attach points, at ingress and at egress.
    pub attach_points: AttachPoints,
    pub(super) links: [AttachedLink; 2],
}

/// The link of one program.
pub(super) enum AttachedLink {
    Tcx(#[expect(dead_code, reason = "detaches when dropped")] OwnedFd),
    Xdp(#[expect(dead_code, reason = "detaches when dropped")] XdpLink),
    Clsact(#[expect(dead_code, reason = "is removed when dropped")] clsact::Filter),
    Pinned(PathBuf),
}

impl Attachment {
    /// Detaches, pinned or not.
    ///
    /// # Errors
    /// If a pin cannot be removed.
    pub fn detach(self) -> Result<(), Error> {
        self.pinned().try_for_each(|path| {
            // If the interface is gone, nothing is attached. Removing the pin detaches too, only later.
            if let Err(error) = detach::detach(path) {
                tracing::debug!("{}: {error}", path.display());
            }
            pins::remove(path)
        })
    }

    /// The paths of its pins.
    pub fn pinned(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().filter_map(|link| match link {
            AttachedLink::Pinned(path) => Some(path.as_path()),
            AttachedLink::Tcx(_) | AttachedLink::Xdp(_) | AttachedLink::Clsact(_) => None,
        })
    }
}
