//! Checks whether an interface is a bridge: what that forwards passes its ports alone.

use super::{arms::is_router, name::Name, report::Check, shell::quoted};
use crate::kernel::inspect::links::Interface;

/// Names the ports of a bridge.
pub(super) fn bridge(interface: &Interface, all: &[Interface]) -> Option<Check> {
    check(interface, all, is_router())
}

fn check(interface: &Interface, all: &[Interface], is_router: bool) -> Option<Check> {
    let Interface { link, is_bridge: true, .. } = interface else { return None };
    let ports: Vec<&str> =
        all.iter().filter(|it| it.port_of == Some(link.ifindex)).map(|it| it.link.name.as_str()).collect();
    let found =
        format!("a bridge with {}", if ports.is_empty() { "no ports".to_owned() } else { ports.join(", ") });
    if ports.len() < 2 {
        return Some(Check::ok(Name::Bridge, found));
    }
    let found = format!("{found}: what it forwards from port to port passes these alone");
    if is_router {
        // What a router forwards to another network does pass it.
        return Some(Check::ok(Name::Bridge, format!("{found}; what is routed passes {}, too", link.name)));
    }
    let watched: Vec<String> = ports.iter().map(|port| format!("-i {}", quoted(port))).collect();
    let remedy = format!(
        "watch the ports ({}): {} has what this host itself sends and receives",
        watched.join(" "),
        link.name
    );
    Some(Check::degraded(Name::Bridge, found, remedy))
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};
    use crate::kernel::interfaces::Link;

    fn interface(name: &str, ifindex: u32, port_of: Option<u32>) -> Interface {
        let link = Link { name: name.into(), ifindex, ..Link::default() };
        Interface { link, is_bridge: name == "br0", port_of, ..Interface::default() }
    }

    #[test]
    fn a_bridge_names_its_ports_unless_it_has_one() {
        let bridge = interface("br0", 7, None);
        let ports =
            [interface("eth0", 2, Some(7)), interface("eth1", 3, Some(7)), interface("eth2", 4, Some(8))];
        let asked = |ports: &[Interface], is_router| check(&bridge, ports, is_router).unwrap();
        let two = asked(&ports, false);
        assert_eq!(two.status, Status::Degraded);
        assert!(two.found.starts_with("a bridge with eth0, eth1: "), "{two:?}");
        assert!(two.remedy.unwrap().contains("(-i eth0 -i eth1)"));
        assert_eq!(asked(&ports, true).status, Status::Ok);
        assert_eq!((asked(&ports[1..], false).status, asked(&[], false).status), (Status::Ok, Status::Ok));
        assert!(check(&ports[0], &ports, false).is_none());
    }
}
