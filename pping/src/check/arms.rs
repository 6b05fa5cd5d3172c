//! Checks whether packets that this host forwards pass an interface twice.

use std::fs;

use super::{name::Name, report::Check};
use crate::{config::Arms, kernel::inspect::links::Interface};

/// The settings that make a host a router, for each address family.
const FORWARDING: [&str; 2] = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];

/// Says so if this host is a router that forwards from an interface to itself: it has no other, or this one carries VLANs.
pub(super) fn arms(interface: &Interface, all: &[Interface], arms: Arms) -> Option<Check> {
    let why = if is_router() { one_arm(interface, all)? } else { return None };
    Some(match arms {
        Arms::Two => Check::degraded(
            Name::Arms,
            format!("{why}, but --arms two was given"),
            "use --arms auto or one: of flows that are forwarded from this interface to itself, handshakes are not \
             measured, and nothing is before a copy of both hosts was seen",
        ),
        Arms::Auto | Arms::One => Check::ok(
            Name::Arms,
            format!("{why}: what is forwarded passes it twice, and counts once for its flow"),
        ),
    })
}

/// Whether this host forwards.
pub(super) fn is_router() -> bool {
    FORWARDING.iter().any(|path| fs::read_to_string(path).is_ok_and(|text| text.trim() != "0"))
}

/// Why a router forwards from this interface to itself, if it does.
fn one_arm(interface: &Interface, all: &[Interface]) -> Option<String> {
    let ifindex = interface.link.ifindex;
    let vlans: Vec<&str> =
        all.iter().filter(|it| it.vlan_of == Some(ifindex)).map(|it| it.link.name.as_str()).collect();
    if vlans.len() > 1 {
        return Some(format!("it carries {}", vlans.join(", ")));
    }
    let is_other = |it: &&Interface| {
        it.is_up && it.link.ifindex != ifindex && it.link.hardware_type != libc::ARPHRD_LOOPBACK
    };
    let is_alone =
        interface.link.hardware_type != libc::ARPHRD_LOOPBACK && !all.iter().any(|it| is_other(&it));
    is_alone.then(|| "the only interface of a router".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::interfaces::Link;

    fn interface(name: &str, ifindex: u32, vlan_of: Option<u32>) -> Interface {
        let hardware_type = if name == "lo" { libc::ARPHRD_LOOPBACK } else { libc::ARPHRD_ETHER };
        let link = Link { name: name.into(), ifindex, hardware_type, ..Link::default() };
        Interface { link, is_up: true, has_carrier: true, vlan_of, ..Interface::default() }
    }

    #[test]
    fn the_only_interface_and_the_parent_of_vlans_have_one_arm() {
        let (lo, eth0, eth1) =
            (interface("lo", 1, None), interface("eth0", 2, None), interface("eth1", 3, None));
        let alone = [lo.clone(), eth0.clone()];
        assert_eq!(one_arm(&eth0, &alone).as_deref(), Some("the only interface of a router"));
        assert_eq!(one_arm(&lo, &alone), None);
        let two = [lo, eth0.clone(), eth1];
        assert_eq!(one_arm(&eth0, &two), None);
        let vlans = [10, 20].map(|tag| interface(&format!("eth0.{tag}"), tag, Some(2)));
        assert_eq!(one_arm(&eth0, &[&two[..], &vlans[..1]].concat()), None);
        let trunk = [&two[..], &vlans].concat();
        assert_eq!(one_arm(&eth0, &trunk).as_deref(), Some("it carries eth0.10, eth0.20"));
        assert_eq!(one_arm(&vlans[0], &trunk), None);
    }
}
