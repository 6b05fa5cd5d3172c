//! Attaching at XDP.

use aya::{
    programs::{ProgramError, XdpMode},
    sys::SyscallError,
};

use pping_common::abi::Direction;

use super::{AttachPoint, attachment::AttachedLink, pinned::pin, target::Target};
use crate::kernel::{
    Error,
    error::innermost,
    inspect::{links, programs},
    interfaces::Link,
    load::Kernel,
    lookup,
};

/// The reason why a program is not attached.
pub(super) enum Refused {
    ByKernel(ProgramError),
    Otherwise(Error),
}

impl Refused {
    pub(super) fn at(self, link: &Link) -> Error {
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

pub(super) fn attach_xdp(
    kernel: &mut Kernel,
    target: &Target<'_>,
    mode: XdpMode,
) -> Result<(AttachPoint, AttachedLink), Refused> {
    let attach_point = if mode == XdpMode::Driver { AttachPoint::XdpNative } else { AttachPoint::XdpGeneric };
    let program = lookup::xdp(&mut kernel.programs)?;
    let Target { link, pins, .. } = target;
    let Some(pins) = pins else {
        let id = program.attach_to_if_index(link.ifindex, mode)?;
        return Ok((attach_point, AttachedLink::Xdp(program.take_link(id)?)));
    };
    let path = pins.link(link.ifindex, Direction::Ingress, attach_point);
    let id = program.attach_to_if_index(link.ifindex, mode)?;
    pin(program.take_link(id)?.try_into(), &path)?;
    Ok((attach_point, AttachedLink::Pinned(path)))
}

/// Whether another program occupies the attach point.
pub(super) fn is_busy(error: &ProgramError) -> bool {
    matches!(
        error,
        ProgramError::SyscallError(SyscallError { io_error, .. })
            if matches!(io_error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
    )
}

/// Names the program that occupies the attach point, as far as the kernel reports it: a name takes `CAP_SYS_ADMIN`.
pub(super) fn describe_occupant(link: &Link) -> String {
    let program = links::xdp_program(link.ifindex).map(|id| {
        let name = programs::name(id).map(|name| format!("{name}, ")).unwrap_or_default();
        format!(" ({name}id {id})")
    });
    format!("another XDP program is attached there{}", program.unwrap_or_default())
}

fn xdp_error(link: &Link, error: &ProgramError) -> Error {
    let reason = if is_busy(error) {
        format!(
            "{}, and pping does not replace it; use --ingress tc or --ingress auto (to identify the \
             program: ip link show, bpftool net)",
            describe_occupant(link)
        )
    } else {
        innermost(error)
    };
    Error::Attach { interface: link.name.clone(), attach_point: "XDP", reason }
}
