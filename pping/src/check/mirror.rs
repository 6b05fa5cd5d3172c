//! Checks interfaces that look like mirror ports: they take frames to other addresses only if they are promiscuous.

use super::{name::Name, report::Check, shell::quoted};
use crate::{
    config::Arms,
    kernel::{inspect::links::Interface, promiscuous::Promiscuous},
};

/// The least packets that have to come in.
const EVIDENCE: u64 = 64;

/// The share of packets that go out, of those that come in, below which an interface looks like a mirror port: one in this many.
const RARE: u64 = 64;

/// The packets that came in by an interface and went out: all, and those during this check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    all: [u64; 2],
    recent: [u64; 2],
}

impl Traffic {
    /// `before` is the interface as it was when this check began, if it was there.
    pub(super) fn of(interface: &Interface, before: Option<&Interface>) -> Self {
        let all = interface.packets;
        let [came, went] = before.map_or(all, |before| before.packets);
        Self { all, recent: [all[0].saturating_sub(came), all[1].saturating_sub(went)] }
    }

    /// Says how likely the interface is a mirror port, with the numbers; `None` if it does not look like one.
    pub(super) fn describe(self) -> Option<String> {
        let Self { all, recent } = self;
        let likely = match (is_one_way(all), is_one_way(recent)) {
            (true, true) => "very likely",
            // Few packets say nothing against what all the others say.
            (true, false) if recent[0] < EVIDENCE => "probably",
            (false, true) => "perhaps",
            _ => return None,
        };
        Some(format!(
            "{likely} a mirror port: {} packets came in by it and {} went out since it was made, {} and {} during this check",
            all[0], all[1], recent[0], recent[1]
        ))
    }
}

/// Whether packets come in, and hardly any go out.
fn is_one_way([came, went]: [u64; 2]) -> bool {
    came >= EVIDENCE && went < came / RARE
}

/// Says whether a mirror port, described as by [`Traffic::describe`], is promiscuous, or will be by `--mirror`, and names the
/// other mirror ports.
pub(super) fn mirror(interface: &Interface, described: &str, others: &[&str], will_be: bool) -> Check {
    let name = quoted(&interface.link.name);
    let joined = others.first().map(|other| {
        let (others, other) = (others.join(", "), quoted(other));
        format!("; {others} may be one, too: if each shows one direction of the flows, join them (-i {name}+{other})")
    });
    let found = described.to_owned() + &joined.unwrap_or_default();
    if will_be {
        return Check::ok(Name::Mirror, format!("{found}; --mirror keeps it promiscuous while pping runs"));
    }
    if interface.is_promiscuous {
        let remedy = "add --mirror and --inside with the prefixes of your network: until then both sides are in one histogram, and \
                      packets that are mirrored twice count as retransmitted";
        return Check::degraded(Name::Mirror, format!("{found}; it is promiscuous"), remedy);
    }
    Check::degraded(
        Name::Mirror,
        format!("{found}; it is not promiscuous"),
        format!(
            "add --mirror, with --inside PREFIX, or ip link set dev {name} promisc on: until then a network card drops frames to \
             other addresses than its own"
        ),
    )
}

/// Says whether `--mirror` can keep ports in promiscuous mode.
pub(super) fn socket() -> Check {
    match Promiscuous::open() {
        Ok(_) => Check::ok(Name::Mirror, "--mirror can keep its ports in promiscuous mode"),
        Err(error) => Check::missing(
            Name::Mirror,
            format!("--mirror cannot keep its ports in promiscuous mode: no packet socket: {error}"),
            "run as root, or grant CAP_NET_RAW, too; for a service as in docs/placement.md: pping does not start without it",
        ),
    }
}

/// Says so if connections at a mirror port cannot be proved, because its two hosts are taken to be on two sides.
pub(super) fn arms(arms: Arms) -> Option<Check> {
    (arms == Arms::Two).then(|| {
        Check::degraded(
            Name::Arms,
            "it looks like a mirror port, where both directions come in, but --arms two was given",
            "use --arms auto or one: until then its flows give no samples",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};
    use crate::kernel::interfaces::Link;

    fn described(all: [u64; 2], recent: [u64; 2]) -> Option<String> {
        Traffic { all, recent }.describe()
    }

    #[test]
    fn mirror_ports_are_told_by_what_comes_in_with_how_sure_that_is() {
        for (all, recent) in [
            ([0, 0], [0, 0]),
            ([63, 0], [40, 0]),
            ([6_400, 100], [0, 0]),
            ([900_000, 10], [500, 400]),
            ([10, 900_000], [0, 500]),
        ] {
            assert_eq!(described(all, recent), None, "{all:?} {recent:?}");
        }
        for (all, recent, likely) in [
            ([900_000, 10], [500, 0], "very likely "),
            ([900_000, 10], [0, 0], "probably "),
            ([64, 0], [0, 0], "probably "),
            ([9_000, 8_000], [64, 0], "perhaps "),
        ] {
            let said = described(all, recent).unwrap();
            assert!(said.starts_with(likely), "{said}");
        }
    }

    #[test]
    fn a_mirror_port_has_to_be_promiscuous() {
        let link = Link { name: "tap0".into(), ..Link::default() };
        let mut interface = Interface { link, packets: [5_000, 3], ..Interface::default() };
        let said = Traffic::of(&interface, None).describe().unwrap();
        assert!(
            said.starts_with("probably a mirror port: 5000 packets came in by it and 3 went out"),
            "{said}"
        );
        let check = mirror(&interface, &said, &[], false);
        assert_eq!(check.status, Status::Degraded);
        assert!(
            check
                .remedy
                .unwrap()
                .starts_with("add --mirror, with --inside PREFIX, or ip link set dev tap0 promisc")
        );
        interface.is_promiscuous = true;
        let check = mirror(&interface, &said, &["tap1"], false);
        assert_eq!(check.status, Status::Degraded);
        assert!(check.remedy.as_ref().unwrap().starts_with("add --mirror and --inside"), "{check:?}");
        assert_eq!(mirror(&interface, &said, &[], true).status, Status::Ok);
        assert!(
            check.found.contains("tap1 may be one, too") && check.found.contains("-i tap0+tap1"),
            "{check:?}"
        );
    }
}
