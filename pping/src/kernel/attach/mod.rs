//! Attaching the programs to interfaces. Unless pinned, they detach however the process ends. Clsact filters, on
//! kernels without TCX, may stay: the next run removes those of a killed one.

mod attachment;
mod clsact;
mod ingress;
mod pinned;
mod tc;
mod xdp;

use pping_common::parse::Direction;

use self::attachment::AttachTarget;
pub use self::{
    attachment::Attachment,
    clsact::{
        FilterPlace,
        leftovers::{self, Removed},
        lost,
        run::FilterOwner,
    },
};
use super::{
    attach_point::{AttachPoint, AttachPoints},
    features::Feature,
    interfaces::Link,
    loaded::Kernel,
    pins::Pins,
};
use crate::kernel::Error;

/// Attaches to an interface: at ingress to the first attach point in `ingress` that works. [`AttachPoint::Tcx`] there
/// stands for tc, by TCX or by clsact as the kernel has it. Pinned links continue with the present programs, without
/// missing a packet.
///
/// # Errors
/// If no attach point can be used.
pub fn attach(
    kernel: &mut Kernel,
    link: &Link,
    ingress: &[AttachPoint],
    pins: Option<&Pins>,
    owner: &mut FilterOwner,
) -> Result<Attachment, Error> {
    let target = &mut AttachTarget { link, pins, owner, has_qdisc: tidy(link) };
    // Without TCX, an ingress qdisc of others refuses the filter at egress. Then this filter comes first, since attaching and
    // detaching XDP makes some drivers reset their queues.
    let is_refusable = !kernel.features.has(Feature::Tcx);
    let early = if is_refusable { Some(tc::attach_tc(kernel, target, Direction::Egress)?) } else { None };
    let (ingress, in_link) = match ingress::adopt_ingress(kernel, target, ingress)? {
        Some(adopted) => adopted,
        None => ingress::attach_ingress(kernel, target, ingress)?,
    };
    let (egress, out_link) = match early {
        Some(attached) => attached,
        None => tc::attach_tc(kernel, target, Direction::Egress)?,
    };
    let Link { name, ifindex, .. } = link;
    tracing::info!("watching {name} at {} and {} (ifindex {ifindex})", ingress.name(), egress.name());
    Ok(Attachment { attach_points: AttachPoints { ingress, egress }, links: [in_link, out_link] })
}

/// Removes the leftovers of killed runs from an interface. Returns whether a qdisc that one of them made is left.
fn tidy(link: &Link) -> bool {
    match leftovers::remove(link.ifindex) {
        Ok(removed) if removed.is_empty() => false,
        Ok(removed) => {
            tracing::info!("removed leftovers of a killed pping on {}: {removed}", link.name);
            removed.leaves_qdisc()
        }
        // A kernel without filters has no leftovers either.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => false,
        Err(error) => {
            tracing::warn!("{}: cannot look for leftovers of a killed pping: {error}", link.name);
            false
        }
    }
}
