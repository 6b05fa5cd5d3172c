//! Which attach point sees the packets that come in.

use aya::programs::{XdpMode, xdp::XdpLink};

use super::{
    AttachPoint, Held, Side, Target, innermost,
    pinned::adopt,
    tc::{adopt_tc, attach_tc},
    xdp::{Refused, attach_xdp, is_busy, who_is_there},
};
use crate::{
    Error,
    cli::Ingress,
    kernel::load::{self, Kernel},
};

/// Has a link that is pinned go on at ingress, if there is one of an attach point that will do. Others of ours there are removed:
/// packets would be counted twice.
pub(super) fn adopt_ingress(
    kernel: &mut Kernel,
    target: &mut Target<'_>,
    ingress: Ingress,
) -> Result<Option<(AttachPoint, Held)>, Error> {
    let Target { link, pins: Some(pins), .. } = target else { return Ok(None) };
    let attach_points = match ingress {
        Ingress::Tc => &[AttachPoint::Tcx][..],
        Ingress::Xdp => &[AttachPoint::XdpNative, AttachPoint::XdpGeneric],
        Ingress::Auto => &[AttachPoint::XdpNative, AttachPoint::Tcx],
    };
    let path =
        |side: Side, attach_point: AttachPoint| pins.link(link.ifindex, side.name(), attach_point.name());
    let found =
        attach_points.iter().copied().find(|&attach_point| path(Side::Ingress, attach_point).exists());
    let kept = [
        found.map(|attach_point| path(Side::Ingress, attach_point)),
        Some(path(Side::Egress, AttachPoint::Tcx)),
    ];
    pins.remove_links(link.ifindex, &kept.into_iter().flatten().collect::<Vec<_>>())?;
    let Some(attach_point) = found else { return Ok(None) };
    let path = path(Side::Ingress, attach_point);
    let is_adopted = match attach_point {
        AttachPoint::Tcx | AttachPoint::Clsact => {
            adopt_tc(load::classifier(&mut kernel.programs, Side::Ingress.program())?, &path)
        }
        AttachPoint::XdpNative | AttachPoint::XdpGeneric => {
            let program = load::xdp(&mut kernel.programs)?;
            adopt(&path, |found| {
                let id = program.attach_to_link(XdpLink::try_from(found)?)?;
                Ok(program.take_link(id)?.try_into()?)
            })
        }
    };
    Ok(is_adopted.then_some((attach_point, Held::Pinned(path))))
}

pub(super) fn attach_ingress(
    kernel: &mut Kernel,
    target: &mut Target<'_>,
    ingress: Ingress,
) -> Result<(AttachPoint, Held), Error> {
    if ingress == Ingress::Tc {
        return attach_tc(kernel, target, Side::Ingress);
    }
    match (attach_xdp(kernel, target, XdpMode::Driver), ingress) {
        (Ok(attached), _) => Ok(attached),
        (Err(Refused::ByKernel(error)), Ingress::Auto) => {
            let reason = if is_busy(&error) {
                who_is_there(target.link)
            } else {
                format!("its driver runs no XDP ({})", innermost(&error))
            };
            tracing::warn!("{}: {reason}; watching packets at tc instead", target.link.name);
            attach_tc(kernel, target, Side::Ingress)
        }
        (Err(Refused::ByKernel(error)), _) if !is_busy(&error) => {
            attach_xdp(kernel, target, XdpMode::Skb).map_err(|error| error.at(target.link))
        }
        (Err(error), _) => Err(error.at(target.link)),
    }
}
