//! Attaching the programs to interfaces. Unless pinned, all of it detaches when the process ends, whichever way, but for
//! clsact filters on kernels without TCX, which need an orderly end.

use std::path::{Path, PathBuf};

use aya::{
    programs::{
        LinkOrder, ProgramError, SchedClassifier, TcAttachType, XdpMode,
        links::{FdLink, LinkError, PinnedLink},
        tc::{self, NlOptions, SchedClassifierLink, TcAttachOptions, TcError},
        xdp::XdpLink,
    },
    sys::SyscallError,
};

use super::{
    detach,
    interfaces::Link,
    load::{self, Kernel},
    pins::{self, Pins},
};
use crate::{Error, cli::Ingress};

/// How a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP in the driver.
    XdpNative,
    /// XDP in the network stack, for drivers that have none.
    XdpGeneric,
    /// tc by a link (Linux 6.6).
    Tcx,
    /// tc by a filter on a clsact queueing discipline.
    Clsact,
}

impl Hook {
    /// The name in logs and labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::XdpNative => "xdp-native",
            Self::XdpGeneric => "xdp-generic",
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        }
    }
}

/// The hooks of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Where packets coming in are seen.
    pub ingress: Hook,
    /// Where packets going out are seen.
    pub egress: Hook,
}

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
    let (ingress, in_link) = match adopt_ingress(kernel, link, ingress, pins)? {
        Some(adopted) => adopted,
        None => attach_ingress(kernel, link, ingress, pins)?,
    };
    let (egress, out_link) = attach_tc(kernel, link, Side::Egress, pins)?;
    tracing::info!("watching {} at {} and {}", link.name, ingress.name(), egress.name());
    Ok(Attachment { hooks: Hooks { ingress, egress }, links: [in_link, out_link] })
}

/// Has a link that is pinned go on at ingress, if there is one of a hook that will do. Others of ours there are removed:
/// packets would be counted twice.
fn adopt_ingress(
    kernel: &mut Kernel,
    link: &Link,
    ingress: Ingress,
    pins: Option<&Pins>,
) -> Result<Option<(Hook, Held)>, Error> {
    let Some(pins) = pins else { return Ok(None) };
    let hooks = match ingress {
        Ingress::Tc => &[Hook::Tcx][..],
        Ingress::Xdp => &[Hook::XdpNative, Hook::XdpGeneric],
        Ingress::Auto => &[Hook::XdpNative, Hook::Tcx],
    };
    let path = |side: Side, hook: Hook| pins.link(link.ifindex, side.name(), hook.name());
    let found = hooks.iter().copied().find(|&hook| path(Side::Ingress, hook).exists());
    let kept = [found.map(|hook| path(Side::Ingress, hook)), Some(path(Side::Egress, Hook::Tcx))];
    pins.remove_links(link.ifindex, &kept.into_iter().flatten().collect::<Vec<_>>())?;
    let Some(hook) = found else { return Ok(None) };
    let path = path(Side::Ingress, hook);
    let is_adopted = match hook {
        Hook::Tcx | Hook::Clsact => {
            adopt_tc(load::classifier(&mut kernel.programs, Side::Ingress.program())?, &path)
        }
        Hook::XdpNative | Hook::XdpGeneric => {
            let program = load::xdp(&mut kernel.programs)?;
            adopt(&path, |found| {
                let id = program.attach_to_link(XdpLink::try_from(found)?)?;
                Ok(program.take_link(id)?.try_into()?)
            })
        }
    };
    Ok(is_adopted.then_some((hook, Held::Pinned(path))))
}

fn attach_ingress(
    kernel: &mut Kernel,
    link: &Link,
    ingress: Ingress,
    pins: Option<&Pins>,
) -> Result<(Hook, Held), Error> {
    if ingress == Ingress::Tc {
        return attach_tc(kernel, link, Side::Ingress, pins);
    }
    match (attach_xdp(kernel, link, XdpMode::Driver, pins), ingress) {
        (Ok(attached), _) => Ok(attached),
        (Err(Refused::ByKernel(error)), Ingress::Auto) => {
            let reason = if is_busy(&error) {
                "another XDP program is attached there".to_owned()
            } else {
                format!("its driver runs no XDP ({})", innermost(&error))
            };
            tracing::warn!("{}: {reason}; watching packets at tc instead", link.name);
            attach_tc(kernel, link, Side::Ingress, pins)
        }
        (Err(Refused::ByKernel(error)), _) if !is_busy(&error) => {
            attach_xdp(kernel, link, XdpMode::Skb, pins).map_err(|error| error.at(link))
        }
        (Err(error), _) => Err(error.at(link)),
    }
}

#[derive(Clone, Copy)]
enum Side {
    Ingress,
    Egress,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Ingress => "pping_ingress",
            Self::Egress => "pping_egress",
        }
    }

    fn attach_type(self) -> TcAttachType {
        match self {
            Self::Ingress => TcAttachType::Ingress,
            Self::Egress => TcAttachType::Egress,
        }
    }
}

/// Why a program is not attached.
enum Refused {
    ByKernel(ProgramError),
    Otherwise(Error),
}

impl Refused {
    fn at(self, link: &Link) -> Error {
        match self {
            Self::ByKernel(error) => xdp_error(link, &error),
            Self::Otherwise(error) => error,
        }
    }
}

impl From<ProgramError> for Refused {
    fn from(error: ProgramError) -> Self {
        Self::ByKernel(error)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Otherwise(error)
    }
}

fn attach_xdp(
    kernel: &mut Kernel,
    link: &Link,
    mode: XdpMode,
    pins: Option<&Pins>,
) -> Result<(Hook, Held), Refused> {
    let hook = if mode == XdpMode::Driver { Hook::XdpNative } else { Hook::XdpGeneric };
    let program = load::xdp(&mut kernel.programs)?;
    let Some(pins) = pins else {
        let id = program.attach_to_if_index(link.ifindex, mode)?;
        return Ok((hook, Held::Xdp(program.take_link(id)?)));
    };
    let path = pins.link(link.ifindex, Side::Ingress.name(), hook.name());
    let id = program.attach_to_if_index(link.ifindex, mode)?;
    pin(program.take_link(id)?.try_into(), &path)?;
    Ok((hook, Held::Pinned(path)))
}

fn attach_tc(
    kernel: &mut Kernel,
    link: &Link,
    side: Side,
    pins: Option<&Pins>,
) -> Result<(Hook, Held), Error> {
    let program = load::classifier(&mut kernel.programs, side.program())?;
    let refused = |error: &ProgramError| Error::Attach {
        interface: link.name.clone(),
        hook: "tc",
        reason: innermost(error),
    };
    let path = pins.map(|pins| pins.link(link.ifindex, side.name(), Hook::Tcx.name()));
    if let Some(path) = &path
        && adopt_tc(program, path)
    {
        return Ok((Hook::Tcx, Held::Pinned(path.clone())));
    }
    let tcx = TcAttachOptions::TcxOrder(LinkOrder::default());
    let no_tcx = match program.attach_with_options(&link.name, side.attach_type(), tcx) {
        Ok(id) => {
            let attached = program.take_link(id).map_err(|error| refused(&error))?;
            return Ok((
                Hook::Tcx,
                match path {
                    None => Held::Tc(attached),
                    Some(path) => {
                        pin(attached.try_into(), &path)?;
                        Held::Pinned(path)
                    }
                },
            ));
        }
        Err(error) => error,
    };
    if let Some(path) = path {
        let reason = format!(
            "attaching {} at tc by a link failed ({}); only links can be pinned, which at tc takes Linux 6.6 or newer",
            link.name,
            innermost(&no_tcx)
        );
        return Err(Error::Pin { path, reason });
    }
    tracing::info!("{}: no TCX ({}), using clsact", link.name, innermost(&no_tcx));
    attach_clsact(program, link, side.attach_type())
        .map(|attached| (Hook::Clsact, Held::Tc(attached)))
        .map_err(|error| refused(&error))
}

fn adopt_tc(program: &mut SchedClassifier, path: &Path) -> bool {
    adopt(path, |found| {
        let id = program.attach_to_link(SchedClassifierLink::try_from(found)?)?;
        Ok(program.take_link(id)?.try_into()?)
    })
}

fn attach_clsact(
    program: &mut SchedClassifier,
    link: &Link,
    direction: TcAttachType,
) -> Result<SchedClassifierLink, ProgramError> {
    match tc::qdisc_add_clsact(&link.name) {
        Ok(()) | Err(TcError::AlreadyAttached) => {}
        Err(error) => return Err(error.into()),
    }
    let id =
        program.attach_with_options(&link.name, direction, TcAttachOptions::Netlink(NlOptions::default()))?;
    program.take_link(id)
}

/// Why a link that is pinned cannot be gone on with.
#[derive(Debug, thiserror::Error)]
enum Stale {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Has a pinned link go on with another program, if it is there and its interface still is; else it is removed.
fn adopt(path: &Path, update: impl FnOnce(FdLink) -> Result<FdLink, Stale>) -> bool {
    if !path.exists() {
        return false;
    }
    let adopted = PinnedLink::from_pin(path).map_err(Stale::from).and_then(|found| update(found.into()));
    if let Err(stale) = &adopted {
        tracing::info!("{}: of no use any more ({})", path.display(), innermost(stale));
        pins::remove(path).ok();
    }
    adopted.is_ok()
}

fn pin(link: Result<FdLink, LinkError>, path: &Path) -> Result<(), Error> {
    let refused = |reason: String| Error::Pin { path: path.to_owned(), reason };
    let link = link.map_err(|error| refused(error.to_string()))?;
    link.pin(path).map(drop).map_err(|error| refused(innermost(&error)))
}

/// Whether somebody else has the hook.
fn is_busy(error: &ProgramError) -> bool {
    matches!(
        error,
        ProgramError::SyscallError(SyscallError { io_error, .. })
            if matches!(io_error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
    )
}

fn xdp_error(link: &Link, error: &ProgramError) -> Error {
    let reason = if is_busy(error) {
        "another XDP program is attached there, and pping replaces nobody; use --ingress tc, or --ingress \
         auto to have it chosen (who it is: ip link show, bpftool net)"
            .to_owned()
    } else {
        innermost(error)
    };
    Error::Attach { interface: link.name.clone(), hook: "XDP", reason }
}

/// The last word of a chain of errors, which is the kernel's.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
