//! Attaching at XDP.

use std::{io, os::fd::AsFd as _};

use pping_common::parse::Direction;

use super::{
    AttachPoint,
    attachment::{AttachTarget, AttachedLink},
    pinned::pin_descriptor,
};
use crate::kernel::{
    Error, bpf,
    inspect::{links, programs, xdp::Drivers},
    interfaces::Link,
    loaded::Kernel,
    object,
};

/// The MTU up to which drivers run XDP: a page, less the room that they keep before and after a packet.
const LONGEST_IN_A_PAGE: u32 = 3_400;

/// The reason why a program is not attached.
pub(super) enum Refused {
    ByKernel(io::Error),
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

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
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
    target: &AttachTarget<'_>,
    attach_point: AttachPoint,
) -> Result<(AttachPoint, AttachedLink), Refused> {
    let program = object::xdp(&mut kernel.programs)?;
    let AttachTarget { link, pins, .. } = target;
    let program = program.fd().map_err(io::Error::other)?;
    let attached = bpf::attach_xdp(program.as_fd(), link.ifindex, attach_point == AttachPoint::XdpNative)?;
    let Some(pins) = pins else { return Ok((attach_point, AttachedLink::Xdp(attached))) };
    let path = pins.link(link.ifindex, Direction::Ingress, attach_point);
    pin_descriptor(attached.as_fd(), &path)?;
    Ok((attach_point, AttachedLink::Pinned(path)))
}

/// Whether another program occupies the attach point.
pub(super) fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// Says why a driver refuses XDP. The kernel gives a number only.
pub(super) fn describe_refusal(link: &Link, error: &io::Error) -> String {
    // A driver that supports XDP refuses it where packets may be longer than a page.
    let is_long = |errno| match errno {
        // Of `veth_xdp_set`; the MTU is that of the other end.
        libc::ERANGE => true,
        libc::EINVAL | libc::EOPNOTSUPP => {
            link.mtu > LONGEST_IN_A_PAGE
                && Drivers::ask().ok().flatten().is_some_and(|drivers| drivers.has_native(link.ifindex))
        }
        _ => false,
    };
    if error.raw_os_error().is_some_and(is_long) {
        let Link { name, mtu, .. } = link;
        return format!(
            "its MTU ({mtu}), or that of the other end of a veth, is too large for XDP in its driver ({error}); \
             lower it if you want XDP: ip link set dev {name} mtu {LONGEST_IN_A_PAGE}"
        );
    }
    format!("its driver does not support XDP ({error})")
}

/// Names the program that occupies the attach point, as far as the kernel reports it: a name takes `CAP_SYS_ADMIN`.
pub(super) fn describe_occupant(link: &Link) -> String {
    let program = links::xdp_program(link.ifindex).map(|id| {
        let name = programs::name(id).map(|name| format!("{name}, ")).unwrap_or_default();
        format!(" ({name}id {id})")
    });
    format!("another XDP program is attached there{}", program.unwrap_or_default())
}

fn xdp_error(link: &Link, error: &io::Error) -> Error {
    let reason = if is_busy(error) {
        format!(
            "{}, and pping does not replace it; use --ingress tc or --ingress auto (to identify the \
             program: ip link show, bpftool net)",
            describe_occupant(link)
        )
    } else {
        error.to_string()
    };
    Error::Attach { interface: link.name.clone(), attach_point: "XDP", reason }
}
