//! Attaching at tc: by a link if the kernel has TCX (Linux 6.6), else by a filter.

use std::{
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use aya::programs::{SchedClassifier, tc::SchedClassifierLink};

use pping_common::{abi::PacketProgram, parse::Direction};

use super::{
    AttachPoint,
    attachment::{AttachTarget, AttachedLink, refused_at_tc},
    clsact,
    pinned::{adopt, pin_descriptor},
};
use crate::kernel::{Error, bpf, features::Feature, loaded::Kernel, object};

pub(super) fn attach_tc(
    kernel: &mut Kernel,
    target: &mut AttachTarget<'_>,
    direction: Direction,
) -> Result<(AttachPoint, AttachedLink), Error> {
    let has_tcx = kernel.features.has(Feature::Tcx);
    let program = object::classifier(&mut kernel.programs, PacketProgram::at_tc(direction).name())?;
    if has_tcx {
        attach_tcx(program, target, direction).map(|held| (AttachPoint::Tcx, held))
    } else {
        let AttachTarget { link, owner, has_qdisc, .. } = target;
        clsact::Filter::attach(program, link, direction, owner, *has_qdisc)
            .map(|filter| (AttachPoint::Clsact, AttachedLink::Clsact(filter)))
            .map_err(|error| refused_at_tc(link, &error))
    }
}

fn attach_tcx(
    program: &mut SchedClassifier,
    target: &AttachTarget<'_>,
    direction: Direction,
) -> Result<AttachedLink, Error> {
    let AttachTarget { link, pins, .. } = target;
    let path = pins.map(|pins| pins.link(link.ifindex, direction, AttachPoint::Tcx));
    if let Some(path) = &path
        && adopt_tc(program, path)
    {
        return Ok(AttachedLink::Pinned(path.clone()));
    }
    // The first program sees all packets, and pping lets them go on. Others may not: `TC_ACT_OK` ends the chain.
    let attach = || -> Result<OwnedFd, Box<dyn std::error::Error>> {
        Ok(bpf::attach_tcx(program.fd()?.as_fd(), link.ifindex, direction)?)
    };
    let attached = attach().map_err(|error| refused_at_tc(link, &*error))?;
    match path {
        None => Ok(AttachedLink::Tcx(attached)),
        Some(path) => {
            pin_descriptor(attached.as_fd(), &path)?;
            Ok(AttachedLink::Pinned(path))
        }
    }
}

pub(super) fn adopt_tc(program: &mut SchedClassifier, path: &Path) -> bool {
    adopt(path, |found| {
        let id = program.attach_to_link(SchedClassifierLink::try_from(found)?)?;
        Ok(program.take_link(id)?.try_into()?)
    })
}
