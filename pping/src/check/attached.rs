//! Checks the programs that are attached to an interface: some keep packets from pping.

use std::{fmt, io};

use caps::Capability;
use pping_common::parse::Direction;

use super::{name::Name, privileges, report::Check};
use crate::{
    config::Ingress,
    kernel::{
        attach_point::AttachPoint,
        bpf,
        features::{Feature, Features},
        inspect::{links::Interface, programs::Names, xdp::Drivers},
        traffic_control::{FIRST_OF_KERNEL, Filter, TrafficControl},
    },
};

/// The prefix of the names of pping's programs and filters.
const OWN: &str = "pping_";

/// Facts that are looked up once for all interfaces.
pub(super) struct Attached {
    names: Names,
    drivers: io::Result<Option<Drivers>>,
    /// Whether the kernel has TCX, if that is known.
    has_tcx: Option<bool>,
}

/// Whether a driver runs XDP natively.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Native {
    Yes,
    No,
    Unknown,
}

impl Attached {
    pub(super) fn new(features: Option<Features>) -> Self {
        // Without the capability, the kernel would refuse the query for each program.
        let names =
            if privileges::has(Capability::CAP_SYS_ADMIN) { Names::of_all() } else { Names::default() };
        let has_tcx = features.map(|features| features.has(Feature::Tcx));
        Self { names, drivers: Drivers::ask(), has_tcx }
    }

    /// Checks XDP on an interface.
    pub(super) fn xdp(&self, interface: &Interface, ingress: Ingress) -> Check {
        let native = self.native(interface);
        let kind = match native {
            Native::Yes => "native, by its driver",
            Native::No => "generic only: its driver has none",
            Native::Unknown => {
                "native or generic: unknown until attached (kernels report it since Linux 6.3)"
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
            return Check::ok(Name::Xdp, format!("{kind}; a pping measures there: {}", list(&own)));
        }
        match (native, ingress) {
            (Native::No, Ingress::Xdp) => {
                Check::degraded(Name::Xdp, kind, "--ingress tc sees the same packets and costs less")
            }
            _ => Check::ok(Name::Xdp, format!("{kind}; no other program is attached")),
        }
    }

    fn native(&self, interface: &Interface) -> Native {
        match &self.drivers {
            Ok(Some(drivers)) if drivers.has_native(interface.link.ifindex) => Native::Yes,
            Ok(Some(_)) => Native::No,
            Ok(None) | Err(_) => Native::Unknown,
        }
    }

    /// Checks tc on an interface.
    pub(super) fn tc(&self, interface: &Interface) -> Check {
        match at_tc(interface.link.ifindex) {
            Ok(at) => self.check(&at),
            Err(error) => Check::unknown(Name::Tc, error.to_string()),
        }
    }

    fn check(&self, at: &AtTc) -> Check {
        if let (Some(false), true) = (self.has_tcx, at.ingress_only) {
            let found = "an ingress qdisc is there instead of clsact";
            let remedy =
                "replace it with clsact, which also has ingress: otherwise pping cannot see outgoing packets";
            return Check::missing(Name::Tc, found, remedy);
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
                "they may be pping's own: run as root to see their names"
            } else if self.has_tcx == Some(false) {
                "give a filter a pref of 32768 or more to run it after pping, or use --ingress xdp, which \
                 runs before all of them"
            } else {
                "restart pping, which attaches in front of the others, or use --ingress xdp for incoming packets"
            };
            let remedy = format!("pping does not see packets that these drop, redirect or accept; {remedy}");
            return Check::degraded(Name::Tc, found, remedy);
        }
        match &at.tcx_error {
            Some(error) => {
                Check::unknown(Name::Tc, format!("{found}; the programs at TCX are not known: {error}"))
            }
            None => Check::ok(Name::Tc, found),
        }
    }

    /// Sorts the programs into those of pping, those that run before it, and those that run after it.
    fn order(&self, at: &AtTc) -> Order {
        let mut order = Order { is_complete: at.tcx_error.is_none(), ..Order::default() };
        for (direction, ids) in &at.tcx {
            let first_own = ids.iter().position(|id| self.is_own(*id));
            for (position, id) in ids.iter().enumerate() {
                // pping attaches in front, but others may have done so since. TCX runs before any filter.
                let list = match (first_own, self.has_tcx) {
                    _ if self.is_own(*id) => &mut order.own,
                    (Some(first), _) if position < first => &mut order.before,
                    (None, Some(false)) => &mut order.before,
                    _ => &mut order.after,
                };
                list.push(format!("{} (TCX, {})", self.program(*id), direction.name()));
            }
        }
        for (direction, filters) in &at.filters {
            for filter in filters {
                let is_own = filter.name.starts_with(OWN);
                // TCX runs before any filter, and pping's own filters before others without a priority.
                let list = match self.has_tcx {
                    _ if is_own => &mut order.own,
                    Some(false) if filter.priority() < FIRST_OF_KERNEL => &mut order.before,
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

    /// Names a program, with its id.
    fn program(&self, id: u32) -> String {
        self.names.get(id).map_or_else(|| format!("program {id}"), |name| format!("{name} id {id}"))
    }

    fn filter(&self, filter: &Filter) -> String {
        let Filter { kind, name, program, .. } = filter;
        let what = match program {
            Some(id) if name.is_empty() => self.program(*id),
            Some(id) => format!("{name} id {id}"),
            None => kind.clone(),
        };
        format!("{what} pref {}", filter.priority())
    }
}

/// Lists what is attached at tc.
fn at_tc(ifindex: u32) -> io::Result<AtTc> {
    let mut control = TrafficControl::connect()?;
    // A kernel without TCX takes a qdisc of kind ingress or clsact, not both.
    let mut at = AtTc { ingress_only: control.has_ingress_only(ifindex)?, ..AtTc::default() };
    for direction in Direction::ALL {
        match bpf::tcx(ifindex, direction) {
            Ok(ids) => at.tcx.push((direction, ids)),
            Err(error) => at.tcx_error = Some(error),
        }
        let mut filters = control.filters(ifindex, direction)?;
        filters.retain(|filter| !filter.is_head());
        at.filters.push((direction, filters));
    }
    Ok(at)
}

/// The programs and filters at tc.
#[derive(Default)]
struct AtTc {
    tcx: Vec<(Direction, Vec<u32>)>,
    /// The error, if the programs at TCX could not be listed.
    tcx_error: Option<io::Error>,
    filters: Vec<(Direction, Vec<Filter>)>,
    ingress_only: bool,
}

/// The programs at tc, in relation to pping.
#[derive(Default)]
struct Order {
    own: Vec<String>,
    before: Vec<String>,
    after: Vec<String>,
    /// Whether all programs at tc are known.
    is_complete: bool,
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { own, before, after, is_complete } = self;
        for (programs, what) in
            [(own, "a pping measures there"), (before, "before pping"), (after, "after pping")]
        {
            if !programs.is_empty() {
                write!(formatter, "; {what}: {}", programs.join(", "))?;
            }
        }
        let is_alone = own.is_empty() && before.is_empty() && after.is_empty();
        if is_alone && *is_complete { formatter.write_str("; no other program is attached") } else { Ok(()) }
    }
}

/// The result for XDP if another program is attached there.
fn occupied(found: &str, ingress: Ingress) -> Check {
    match ingress {
        Ingress::Xdp => {
            Check::missing(Name::Xdp, found, "use --ingress tc: pping does not replace other programs")
        }
        Ingress::Auto => Check::degraded(
            Name::Xdp,
            found,
            "pping uses tc, and does not see packets that this program drops or redirects (see bpftool prog)",
        ),
        Ingress::Tc => Check::degraded(
            Name::Xdp,
            found,
            "pping does not see packets that this program drops or redirects (see bpftool prog)",
        ),
    }
}
