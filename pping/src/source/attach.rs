//! Attaching the programs to interfaces. All of it detaches when the process ends, whichever way, but for
//! clsact filters on kernels without TCX, which need an orderly end.

use aya::{
    programs::{
        LinkOrder, ProgramError, SchedClassifier, TcAttachType, XdpMode,
        tc::{self, NlOptions, TcAttachOptions, TcError},
        xdp::XdpLinkId,
    },
    sys::SyscallError,
};

use super::{
    interfaces::Link,
    load::{self, Kernel},
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
pub struct Attached {
    /// Where packets coming in are seen.
    pub ingress: Hook,
    /// Where packets going out are seen.
    pub egress: Hook,
}

/// Attaches to an interface.
///
/// # Errors
/// When a hook is not to be had, and `ingress` allows no other.
pub fn attach(kernel: &mut Kernel, link: &Link, ingress: Ingress) -> Result<Attached, Error> {
    let ingress = match ingress {
        Ingress::Tc => attach_tc(kernel, link, "pping_ingress", TcAttachType::Ingress)?,
        Ingress::Xdp => attach_xdp(kernel, link, XdpMode::Driver)
            .or_else(
                |error| if is_busy(&error) { Err(error) } else { attach_xdp(kernel, link, XdpMode::Skb) },
            )
            .map_err(|error| xdp_error(link, &error))?,
        Ingress::Auto => match attach_xdp(kernel, link, XdpMode::Driver) {
            Ok(hook) => hook,
            Err(error) => {
                let reason = if is_busy(&error) {
                    "another XDP program is attached there".to_owned()
                } else {
                    format!("its driver runs no XDP ({})", innermost(&error))
                };
                tracing::warn!("{}: {reason}; watching packets at tc instead", link.name);
                attach_tc(kernel, link, "pping_ingress", TcAttachType::Ingress)?
            }
        },
    };
    let egress = attach_tc(kernel, link, "pping_egress", TcAttachType::Egress)?;
    tracing::info!("watching {} at {} and {}", link.name, ingress.name(), egress.name());
    Ok(Attached { ingress, egress })
}

fn attach_xdp(kernel: &mut Kernel, link: &Link, mode: XdpMode) -> Result<Hook, ProgramError> {
    let program = load::xdp(&mut kernel.programs)
        .map_err(|_| ProgramError::InvalidName { name: "pping_xdp".to_owned() })?;
    let _: XdpLinkId = program.attach_to_if_index(link.ifindex, mode)?;
    Ok(if mode == XdpMode::Driver { Hook::XdpNative } else { Hook::XdpGeneric })
}

fn attach_tc(
    kernel: &mut Kernel,
    link: &Link,
    name: &'static str,
    direction: TcAttachType,
) -> Result<Hook, Error> {
    let program = load::classifier(&mut kernel.programs, name)?;
    let tcx = TcAttachOptions::TcxOrder(LinkOrder::default());
    let Err(no_tcx) = program.attach_with_options(&link.name, direction, tcx) else {
        return Ok(Hook::Tcx);
    };
    tracing::info!("{}: no TCX ({}), using clsact", link.name, innermost(&no_tcx));
    attach_clsact(program, link, direction).map_err(|error| Error::Attach {
        interface: link.name.clone(),
        hook: "tc",
        reason: innermost(&error),
    })?;
    Ok(Hook::Clsact)
}

fn attach_clsact(
    program: &mut SchedClassifier,
    link: &Link,
    direction: TcAttachType,
) -> Result<(), ProgramError> {
    match tc::qdisc_add_clsact(&link.name) {
        Ok(()) | Err(TcError::AlreadyAttached) => {}
        Err(error) => return Err(error.into()),
    }
    program
        .attach_with_options(&link.name, direction, TcAttachOptions::Netlink(NlOptions::default()))
        .map(|_| ())
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
