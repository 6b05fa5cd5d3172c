//! Who else is attached to an interface, and what pping would get there.

use std::{fmt, io};

use caps::Capability;
use pping_common::abi::Direction;
use rtnetlink::Handle;

use super::{privileges, report::Check};
use crate::{
    config::Ingress,
    kernel::{
        attach::AttachPoint,
        features::{Feature, Features},
        inspect::{
            links::Interface,
            programs::Names,
            tc::{self, Filter},
            xdp::Drivers,
        },
    },
};

/// How the names of pping's own programs and filters begin.
const OWN: &str = "pping_";

/// The kernel gives filters that have no priority one from here on, each before the last (`tcf_chain_tp_insert_unique` and
/// `tcf_auto_prio` in `net/sched/cls_api.c`).
const FIRST_OF_KERNEL: u16 = 0x8000;

/// What is asked once for all interfaces.
pub(super) struct Neighbours {
    kernel: Handle,
    names: Names,
    drivers: io::Result<Option<Drivers>>,
    /// Whether the kernel has TCX, if that is known.
    has_tcx: Option<bool>,
}

/// Whether a driver runs XDP itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Native {
    Yes,
    No,
    Untold,
}

impl Neighbours {
    pub(super) fn new(kernel: Handle, features: Option<Features>) -> Self {
        // Asked without the capability, the kernel would say no a thousand times.
        let names =
            if privileges::has(Capability::CAP_SYS_ADMIN) { Names::of_all() } else { Names::default() };
        let has_tcx = features.map(|features| features.has(Feature::Tcx));
        Self { kernel, names, drivers: Drivers::ask(), has_tcx }
    }

    /// XDP on an interface.
    pub(super) fn xdp(&self, interface: &Interface, ingress: Ingress) -> Check {
        let native = self.native(interface);
        let kind = match native {
            Native::Yes => "native, says its driver",
            Native::No => "generic only, since its driver has none",
            Native::Untold => {
                "native or generic, which shows when it is tried (the kernel tells since Linux 6.3)"
            }
        };
        let (own, others): (Vec<_>, Vec<_>) = interface.xdp.iter().partition(|(_, id)| self.is_own(*id));
        let list = |programs: &[&(AttachPoint, u32)]| {
            let programs = programs
                .iter()
                .map(|(attach_point, id)| format!("{} ({})", self.program(*id), attach_point.name()));
            programs.collect::<Vec<_>>().join(", ")
        };
        if !others.is_empty() {
            let found = format!("{kind}; attached: {}", list(&others));
            return occupied(&found, ingress);
        }
        if !own.is_empty() {
            return Check::ok("xdp", format!("{kind}; a pping measures there: {}", list(&own)));
        }
        match (native, ingress) {
            (Native::No, Ingress::Xdp) => {
                Check::degraded("xdp", kind, "--ingress tc sees the same packets and costs less")
            }
            _ => Check::ok("xdp", format!("{kind}; nobody else is attached")),
        }
    }

    fn native(&self, interface: &Interface) -> Native {
        match &self.drivers {
            Ok(Some(drivers)) if drivers.has_native(interface.link.ifindex) => Native::Yes,
            Ok(Some(_)) => Native::No,
            Ok(None) | Err(_) => Native::Untold,
        }
    }

    /// tc on an interface.
    pub(super) async fn tc(&self, interface: &Interface) -> Check {
        match self.at_tc(interface).await {
            Ok(at) => self.judge(&at),
            Err(error) => Check::unknown("tc", error.to_string()),
        }
    }

    async fn at_tc(&self, interface: &Interface) -> Result<AtTc, crate::kernel::Error> {
        let ifindex = interface.link.ifindex;
        let mut at = AtTc {
            // A kernel without TCX would put it in the way of the other.
            ingress_only: tc::has_ingress_only(&self.kernel, ifindex).await?,
            ..AtTc::default()
        };
        for direction in Direction::ALL {
            match tc::tcx(ifindex, direction) {
                Ok(ids) => at.tcx.push((direction, ids)),
                Err(error) => at.unseen = Some(error),
            }
            at.filters.push((direction, tc::filters(&self.kernel, ifindex, direction).await?));
        }
        Ok(at)
    }

    fn judge(&self, at: &AtTc) -> Check {
        if let (Some(false), true) = (self.has_tcx, at.ingress_only) {
            let found = "a queueing discipline of kind ingress is in the place of clsact";
            let remedy =
                "put clsact in its place, which has ingress as well: what goes out cannot be seen otherwise";
            return Check::missing("tc", found, remedy);
        }
        let attach_point = match self.has_tcx {
            Some(true) => "TCX",
            Some(false) => "clsact",
            None => "TCX or clsact",
        };
        let order = self.order(at);
        let found = format!("{attach_point}{order}");
        if !order.before.is_empty() {
            let remedy = if !privileges::has(Capability::CAP_SYS_ADMIN) {
                "unless they are pping's own: root is told their names"
            } else if self.has_tcx == Some(false) {
                "a pref of 32768 or more would put a filter after pping; --ingress xdp comes before all"
            } else {
                "restart pping, which takes the first place, or take --ingress xdp for what comes in"
            };
            let remedy = format!("what these drop, redirect or accept themselves goes unseen; {remedy}");
            return Check::degraded("tc", found, remedy);
        }
        match &at.unseen {
            Some(error) => Check::unknown("tc", format!("{found}; who is attached by TCX: {error}")),
            None => Check::ok("tc", found),
        }
    }

    /// Who is asked before pping, and who after.
    fn order(&self, at: &AtTc) -> Order {
        let mut order = Order { is_whole: at.unseen.is_none(), ..Order::default() };
        for (direction, ids) in &at.tcx {
            let first_own = ids.iter().position(|id| self.is_own(*id));
            for (place, id) in ids.iter().enumerate() {
                // pping takes the first place, but others may have come in front of it since; and they are in front of any
                // filter.
                let list = match (first_own, self.has_tcx) {
                    _ if self.is_own(*id) => &mut order.own,
                    (Some(first), _) if place < first => &mut order.before,
                    (None, Some(false)) => &mut order.before,
                    _ => &mut order.after,
                };
                list.push(format!("{} (TCX, {})", self.program(*id), direction.name()));
            }
        }
        for (direction, filters) in &at.filters {
            for filter in filters {
                let is_own = filter.name.as_deref().is_some_and(|name| name.starts_with(OWN));
                // TCX comes before any filter, and pping's own before those that nobody gave a priority either.
                let list = match self.has_tcx {
                    _ if is_own => &mut order.own,
                    Some(false) if filter.priority < FIRST_OF_KERNEL => &mut order.before,
                    _ => &mut order.after,
                };
                list.push(format!("{} (filter, {})", self.filter(filter), direction.name()));
            }
        }
        order
    }

    fn is_own(&self, id: u32) -> bool {
        self.names.get(id).is_some_and(|name| name.starts_with(OWN))
    }

    /// A program by its name and id.
    fn program(&self, id: u32) -> String {
        self.names.get(id).map_or_else(|| format!("program {id}"), |name| format!("{name} id {id}"))
    }

    fn filter(&self, filter: &Filter) -> String {
        match (&filter.name, filter.id) {
            (Some(name), Some(id)) => format!("{name} id {id} pref {}", filter.priority),
            (None, Some(id)) => format!("{} pref {}", self.program(id), filter.priority),
            (_, None) => format!("{} pref {}", filter.kind, filter.priority),
        }
    }
}

/// What there is at tc.
#[derive(Default)]
struct AtTc {
    tcx: Vec<(Direction, Vec<u32>)>,
    /// Why it is not known who is attached by TCX.
    unseen: Option<io::Error>,
    filters: Vec<(Direction, Vec<Filter>)>,
    ingress_only: bool,
}

/// Who is asked at tc, and when.
#[derive(Default)]
struct Order {
    own: Vec<String>,
    before: Vec<String>,
    after: Vec<String>,
    /// Whether all of them were seen.
    is_whole: bool,
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { own, before, after, is_whole } = self;
        for (programs, what) in
            [(own, "a pping measures there"), (before, "before pping"), (after, "after pping")]
        {
            if !programs.is_empty() {
                write!(formatter, "; {what}: {}", programs.join(", "))?;
            }
        }
        let is_alone = own.is_empty() && before.is_empty() && after.is_empty();
        if is_alone && *is_whole { formatter.write_str("; nobody else is attached") } else { Ok(()) }
    }
}

/// XDP that somebody else has.
fn occupied(found: &str, ingress: Ingress) -> Check {
    match ingress {
        Ingress::Xdp => Check::missing("xdp", found, "take --ingress tc: pping replaces nobody"),
        Ingress::Auto => Check::degraded(
            "xdp",
            found,
            "pping takes tc; what that program drops or redirects goes unseen (bpftool prog shows more of it)",
        ),
        Ingress::Tc => Check::degraded(
            "xdp",
            found,
            "what that program drops or redirects goes unseen (bpftool prog shows more of it)",
        ),
    }
}
