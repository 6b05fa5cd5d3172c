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

/// What to attach to.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The attach points for incoming packets, in order of preference. [`AttachPoint::Tcx`] stands for tc, by TCX or by clsact as the
    /// kernel has it.
    pub ingress: &'static [AttachPoint],
    /// Whether outgoing packets count.
    pub has_egress: bool,
}

impl Wanted {
    /// Attaches for both directions.
    pub const fn both(ingress: &'static [AttachPoint]) -> Self {
        Self { ingress, has_egress: true }
    }
}

/// Attaches to an interface: at ingress to the first attach point that works. Pinned links continue with the present programs,
/// without missing a packet.
///
/// # Errors
/// If no attach point can be used.
pub fn attach(
    kernel: &mut Kernel,
    link: &Link,
    Wanted { ingress, has_egress }: Wanted,
    pins: Option<&Pins>,
    owner: &mut FilterOwner,
) -> Result<Attachment, Error> {
    let target = &mut AttachTarget { link, pins, owner, has_qdisc: tidy(link) };
    // Without TCX, an ingress qdisc of others refuses the filter at egress. Then this filter comes first, since attaching and
    // detaching XDP makes some drivers reset their queues.
    let is_refusable = !kernel.features.has(Feature::Tcx);
    let early = if has_egress && is_refusable {
        Some(tc::attach_tc(kernel, target, Direction::Egress)?)
    } else {
        None
    };
    let (ingress, in_link) = match ingress::adopt_ingress(kernel, target, ingress, has_egress)? {
        Some(adopted) => adopted,
        None => ingress::attach_ingress(kernel, target, ingress)?,
    };
    let mut links = vec![in_link];
    let egress = match early {
        None if has_egress => Some(tc::attach_tc(kernel, target, Direction::Egress)?),
        attached => attached,
    };
    let egress = egress.map(|(attach_point, out_link)| {
        links.push(out_link);
        attach_point
    });
    let Link { name, ifindex, .. } = link;
    if let Some(egress) = egress {
        tracing::info!("watching {name} at {} and {} (ifindex {ifindex})", ingress.name(), egress.name());
    } else {
        tracing::info!("watching what comes in by {name} at {} (ifindex {ifindex})", ingress.name());
    }
    Ok(Attachment { attach_points: AttachPoints { ingress, egress }, links })
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
