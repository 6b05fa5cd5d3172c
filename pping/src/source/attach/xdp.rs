//! XDP.

use aya::{
    programs::{ProgramError, XdpMode},
    sys::SyscallError,
};

use super::{Held, Hook, Side, Target, innermost, pinned::pin};
use crate::{
    Error,
    source::{
        interfaces::Link,
        load::{self, Kernel},
    },
};

/// Why a program is not attached.
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
) -> Result<(Hook, Held), Refused> {
    let hook = if mode == XdpMode::Driver { Hook::XdpNative } else { Hook::XdpGeneric };
    let program = load::xdp(&mut kernel.programs)?;
    let Target { link, pins, .. } = target;
    let Some(pins) = pins else {
        let id = program.attach_to_if_index(link.ifindex, mode)?;
        return Ok((hook, Held::Xdp(program.take_link(id)?)));
    };
    let path = pins.link(link.ifindex, Side::Ingress.name(), hook.name());
    let id = program.attach_to_if_index(link.ifindex, mode)?;
    pin(program.take_link(id)?.try_into(), &path)?;
    Ok((hook, Held::Pinned(path)))
}

/// Whether somebody else has the hook.
pub(super) fn is_busy(error: &ProgramError) -> bool {
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
