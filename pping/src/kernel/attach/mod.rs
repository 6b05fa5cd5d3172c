//! Attaching the programs to interfaces. Unless pinned, all of it detaches when the process ends, whichever way, but for
//! clsact filters on kernels without TCX: those of a run that was killed are removed by the next one.

mod attach_point;
mod clsact;
mod ingress;
mod pinned;
mod rtnetlink;
mod tc;
mod xdp;

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use aya::programs::xdp::XdpLink;
use pping_common::abi::Direction;

pub use self::{
    attach_point::{AttachPoint, AttachPoints},
    clsact::{
        leftovers::{self, Removed},
        run::Owner,
    },
};
use super::{
    detach,
    interfaces::Link,
    load::Kernel,
    pins::{self, Pins},
};
use crate::kernel::Error;

/// What keeps the programs attached to an interface. Dropping it detaches them, but for pinned ones.
pub struct Attachment {
    /// Where.
    pub attach_points: AttachPoints,
    links: [Held; 2],
}

enum Held {
    Tcx(#[expect(dead_code, reason = "detaches when dropped")] OwnedFd),
    Xdp(#[expect(dead_code, reason = "detaches when dropped")] XdpLink),
    Clsact(#[expect(dead_code, reason = "is removed when dropped")] clsact::Filter),
    Pinned(PathBuf),
}

/// Where to attach, and for whom.
struct Target<'a> {
    link: &'a Link,
    /// Where links are pinned, if they are.
    pins: Option<&'a Pins>,
    owner: &'a mut Owner,
    /// Whether there is a clsact discipline that a run before this one made and nobody else knows to remove.
    has_discipline: bool,
}

impl Attachment {
    /// Detaches, pinned or not.
    ///
    /// # Errors
    /// When a pin cannot be removed.
    pub fn detach(self) -> Result<(), Error> {
        self.pinned().try_for_each(|path| {
            // There is none to detach where the interface is gone; and the pin's removal detaches as well, if later.
            if let Err(error) = detach::detach(path) {
                tracing::debug!("{}: {error}", path.display());
            }
            pins::remove(path)
        })
    }

    /// Where it is pinned.
    pub fn pinned(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().filter_map(|link| match link {
            Held::Pinned(path) => Some(path.as_path()),
            Held::Tcx(_) | Held::Xdp(_) | Held::Clsact(_) => None,
        })
    }
}

/// Attaches to an interface: at ingress to the first of the attach points in `ingress` that works, of which
/// [`AttachPoint::Tcx`] stands for tc, by whatever this kernel has. Pinned links continue with the present programs, without
/// missing a packet.
///
/// # Errors
/// When no attach point can be used.
pub fn attach(
    kernel: &mut Kernel,
    link: &Link,
    ingress: &[AttachPoint],
    pins: Option<&Pins>,
    owner: &mut Owner,
) -> Result<Attachment, Error> {
    let target = &mut Target { link, pins, owner, has_discipline: tidy(link) };
    let (ingress, in_link) = match ingress::adopt_ingress(kernel, target, ingress)? {
        Some(adopted) => adopted,
        None => ingress::attach_ingress(kernel, target, ingress)?,
    };
    let (egress, out_link) = tc::attach_tc(kernel, target, Direction::Egress)?;
    let Link { name, ifindex, .. } = link;
    tracing::info!("watching {name} at {} and {} (ifindex {ifindex})", ingress.name(), egress.name());
    Ok(Attachment { attach_points: AttachPoints { ingress, egress }, links: [in_link, out_link] })
}

/// Removes what runs that were killed left on an interface. Returns whether a discipline that one of them made is left.
fn tidy(link: &Link) -> bool {
    match leftovers::remove(link.ifindex) {
        Ok(removed) if removed.is_empty() => false,
        Ok(removed) => {
            tracing::info!("removed what a pping that was killed left on {}: {removed}", link.name);
            removed.leaves_discipline()
        }
        // A kernel without filters has no leftovers either.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => false,
        Err(error) => {
            tracing::warn!("{}: looking for what a pping that was killed left there: {error}", link.name);
            false
        }
    }
}

/// The last word of a chain of errors, which is the kernel's.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
