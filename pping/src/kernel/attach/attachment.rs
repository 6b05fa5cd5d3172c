//! What programs are attached to, and what is attached to an interface.

use std::{
    ffi::CString,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use pping_common::{abi::PacketProgram, parse::Direction};

use super::{
    AttachPoints,
    clsact::{self, FilterPlace, run::FilterOwner},
    pinned,
};
use crate::kernel::{
    Error, bpf,
    error::innermost,
    interfaces::Link,
    loaded::Kernel,
    object,
    pins::{self, Pins},
};

/// The target of attaching.
pub(super) struct AttachTarget<'a> {
    pub(super) link: &'a Link,
    /// The directory for pinned links, if they are pinned.
    pub(super) pins: Option<&'a Pins>,
    pub(super) owner: &'a mut FilterOwner,
    /// Whether an earlier run left a clsact qdisc, which this run must remove at its end.
    pub(super) has_qdisc: bool,
}

/// The error of a target that refuses a program at tc.
pub(super) fn refused_at_tc(link: &Link, error: &dyn std::error::Error) -> Error {
    Error::Attach { interface: link.name.clone(), attach_point: "tc", reason: innermost(error) }
}

/// The attached programs of an interface. Dropping it detaches them, except pinned ones.
pub struct Attachment {
    /// Its attach points, at ingress and at egress.
    pub attach_points: AttachPoints,
    /// Their programs, in the order of [`Direction::ALL`].
    pub(super) links: Vec<AttachedLink>,
}

/// The link of one program.
pub(super) enum AttachedLink {
    /// Detaches when dropped.
    Tcx(OwnedFd),
    /// Detaches when dropped.
    Xdp(OwnedFd),
    Clsact(clsact::Filter),
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
            if let Err(error) = pinned::detach(path) {
                tracing::debug!("{}: {error}", path.display());
            }
            pins::remove(path)
        })
    }

    /// Whether a program is attached no longer: its interface is gone, even if another one has its name and number, or it
    /// was detached. Filters are looked for otherwise.
    pub fn is_gone(&self) -> bool {
        let interface = |link: &AttachedLink| match link {
            AttachedLink::Tcx(link) | AttachedLink::Xdp(link) => bpf::interface_of(link.as_fd()),
            AttachedLink::Pinned(path) => CString::new(path.as_os_str().as_bytes())
                .map_err(Into::into)
                .and_then(|path| bpf::open(&path))
                .and_then(|link| bpf::interface_of(link.as_fd())),
            AttachedLink::Clsact(_) => Ok(Some(0)),
        };
        self.links.iter().any(|link| matches!(interface(link), Ok(None)))
    }

    /// Its filters. Other programs may remove them, but not links.
    pub fn filters(&self) -> impl Iterator<Item = FilterPlace> {
        self.links.iter().filter_map(|link| match link {
            AttachedLink::Clsact(filter) => Some(filter.place.clone()),
            AttachedLink::Tcx(_) | AttachedLink::Xdp(_) | AttachedLink::Pinned(_) => None,
        })
    }

    /// Puts the filters back that other programs removed.
    ///
    /// # Errors
    /// If the kernel refuses a filter.
    pub fn put_filters_back(&mut self, kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
        for (direction, attached) in Direction::ALL.into_iter().zip(&mut self.links) {
            let AttachedLink::Clsact(filter) = attached else { continue };
            let program = object::classifier(&mut kernel.programs, PacketProgram::at_tc(direction).name())?;
            filter.put_back(program, link).map_err(|error| refused_at_tc(link, &error))?;
        }
        Ok(())
    }

    /// The paths of its pins.
    pub fn pinned(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().filter_map(|link| match link {
            AttachedLink::Pinned(path) => Some(path.as_path()),
            AttachedLink::Tcx(_) | AttachedLink::Xdp(_) | AttachedLink::Clsact(_) => None,
        })
    }
}
