//! Attaching the programs to interfaces. Unless pinned, all of it detaches when the process ends, whichever way, but for
//! clsact filters on kernels without TCX, which need an orderly end.

mod hook;
mod ingress;
mod pinned;
mod side;
mod tc;
mod xdp;

use std::path::{Path, PathBuf};

use aya::programs::{tc::SchedClassifierLink, xdp::XdpLink};

pub use self::hook::{Hook, Hooks};
use self::side::Side;
use super::{
    detach,
    interfaces::Link,
    load::Kernel,
    pins::{self, Pins},
};
use crate::{Error, cli::Ingress};

/// What keeps the programs attached to an interface. Dropping it detaches them, but for pinned ones.
pub struct Attachment {
    /// Where.
    pub hooks: Hooks,
    links: [Held; 2],
}

enum Held {
    Tc(#[expect(dead_code, reason = "detaches when dropped")] SchedClassifierLink),
    Xdp(#[expect(dead_code, reason = "detaches when dropped")] XdpLink),
    Pinned(PathBuf),
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
            Held::Tc(_) | Held::Xdp(_) => None,
        })
    }
}

/// Attaches to an interface. What is pinned already goes on with the present programs from one packet to the next.
///
/// # Errors
/// When a hook is not to be had, and `ingress` allows no other.
pub fn attach(
    kernel: &mut Kernel,
    link: &Link,
    ingress: Ingress,
    pins: Option<&Pins>,
) -> Result<Attachment, Error> {
    let (ingress, in_link) = match ingress::adopt_ingress(kernel, link, ingress, pins)? {
        Some(adopted) => adopted,
        None => ingress::attach_ingress(kernel, link, ingress, pins)?,
    };
    let (egress, out_link) = tc::attach_tc(kernel, link, Side::Egress, pins)?;
    tracing::info!("watching {} at {} and {}", link.name, ingress.name(), egress.name());
    Ok(Attachment { hooks: Hooks { ingress, egress }, links: [in_link, out_link] })
}

/// The last word of a chain of errors, which is the kernel's.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
