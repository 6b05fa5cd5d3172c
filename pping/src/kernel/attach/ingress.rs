//! Attaching at ingress, at the first attach point of several that works.

use aya::programs::xdp::XdpLink;
use pping_common::{abi::PacketProgram, parse::Direction};

use super::{
    AttachPoint,
    attachment::{AttachTarget, AttachedLink},
    pinned::adopt,
    tc::{adopt_tc, attach_tc},
    xdp::{Refused, attach_xdp, describe_occupant, describe_refusal, is_busy},
};
use crate::kernel::{Error, loaded::Kernel, object};

/// Continues with a pinned link at one of these attach points, if there is one. Other pinned links at ingress are
/// removed, because packets would be counted twice; one at egress, too, if outgoing packets do not count.
pub(super) fn adopt_ingress(
    kernel: &mut Kernel,
    target: &mut AttachTarget<'_>,
    attach_points: &[AttachPoint],
    has_egress: bool,
) -> Result<Option<(AttachPoint, AttachedLink)>, Error> {
    let AttachTarget { link, pins: Some(pins), .. } = target else { return Ok(None) };
    let path = |direction, attach_point| pins.link(link.ifindex, direction, attach_point);
    let found = attach_points.iter().copied().find(|&it| path(Direction::Ingress, it).exists());
    let mut kept = Vec::new();
    kept.extend(has_egress.then(|| path(Direction::Egress, AttachPoint::Tcx)));
    kept.extend(found.map(|attach_point| path(Direction::Ingress, attach_point)));
    pins.remove_links(link.ifindex, &kept)?;
    let Some(attach_point) = found else { return Ok(None) };
    let path = path(Direction::Ingress, attach_point);
    let is_adopted = if attach_point.is_xdp() {
        let program = object::xdp(&mut kernel.programs)?;
        adopt(&path, |found| {
            let id = program.attach_to_link(XdpLink::try_from(found)?)?;
            Ok(program.take_link(id)?.try_into()?)
        })
    } else {
        adopt_tc(object::classifier(&mut kernel.programs, PacketProgram::Ingress.name())?, &path)
    };
    Ok(is_adopted.then_some((attach_point, AttachedLink::Pinned(path))))
}

/// Attaches at the first of these attach points that the kernel accepts.
pub(super) fn attach_ingress(
    kernel: &mut Kernel,
    target: &mut AttachTarget<'_>,
    attach_points: &[AttachPoint],
) -> Result<(AttachPoint, AttachedLink), Error> {
    let (first, others) = match attach_points {
        [first, others @ ..] if first.is_xdp() => (*first, others),
        _ => return attach_tc(kernel, target, Direction::Ingress),
    };
    match (attach_xdp(kernel, target, first), others.first()) {
        (Ok(attached), _) => Ok(attached),
        // Native and generic XDP are one attach point to the kernel: a program at the one occupies the other.
        (Err(Refused::ByKernel(error)), Some(next)) if !(next.is_xdp() && is_busy(&error)) => {
            let reason = if is_busy(&error) {
                describe_occupant(target.link)
            } else {
                describe_refusal(target.link, &error)
            };
            let instead = if next.is_xdp() { "before they reach tc, by generic XDP," } else { "at tc" };
            tracing::warn!("{}: {reason}; watching packets {instead} instead", target.link.name);
            attach_ingress(kernel, target, others)
        }
        (Err(error), _) => Err(error.at(target.link)),
    }
}
