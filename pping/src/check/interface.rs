//! Checks the interfaces to watch.

use pping_common::parse::LinkType;

use super::{name::Name, report::Check, shell::quoted};
use crate::{
    config::Live,
    kernel::{
        Error,
        inspect::{ethtool, links::Interface},
        interfaces::Link,
        selection::Selection,
    },
};

/// The interface that "all" does not include.
const LOOPBACK: &str = "lo";

/// Returns the interfaces of `all` to watch, and a check for each configured one that does not exist.
///
/// # Errors
/// If a pattern is malformed.
pub(super) fn select(live: &Live, all: Vec<Interface>) -> Result<(Vec<Interface>, Vec<Check>), Error> {
    if live.interfaces.is_empty() {
        let is_meant = |it: &Interface| it.is_up && it.link.name != LOOPBACK;
        let chosen: Vec<Interface> = all.into_iter().filter(is_meant).collect();
        let none = chosen.is_empty().then(|| {
            Check::degraded(Name::Interfaces, "only loopback is up", "bring one up, or name one with -i")
        });
        return Ok((chosen, none.into_iter().collect()));
    }
    let selection = Selection::new(&live.interfaces)?;
    let links: Vec<Link> = all.iter().map(|it| it.link.clone()).collect();
    let mut absent: Vec<Check> =
        selection.missing(&links).map(|name| missing(name, &links, live.wait).of(name)).collect();
    for pattern in live.interfaces.iter().filter(|text| text.contains(['*', '?', '['])) {
        let alone = Selection::new(std::slice::from_ref(pattern))?;
        if !links.iter().any(|link| alone.includes(link)) {
            let remedy =
                "nothing to do if they appear later: pping waits for interfaces that match a pattern";
            absent.push(Check::degraded(Name::Interface, "no interface matches now", remedy).of(pattern));
        }
    }
    Ok((all.into_iter().filter(|it| selection.includes(&it.link)).collect(), absent))
}

fn missing(name: &str, links: &[Link], wait: bool) -> Check {
    if wait {
        let remedy = "nothing to do if it appears later: pping waits for it";
        return Check::degraded(Name::Interface, "there is no such interface now", remedy);
    }
    let hint = match Selection::unknown(name, links) {
        Error::UnknownInterface { hint, .. } => hint,
        error => error.to_string(),
    };
    Check::missing(
        Name::Interface,
        "there is no such interface here",
        format!("{hint} (--wait waits for an interface that appears later)"),
    )
}

/// Checks that an interface can be watched, and that packets can pass.
pub(super) fn interface(interface: &Interface) -> Check {
    let Interface { link, is_up, has_carrier, .. } = interface;
    let frames = match link.link_type() {
        Ok(LinkType::Ethernet) => "Ethernet",
        Ok(_) => "IP without Ethernet",
        Err(_) => {
            let found = format!("its link type {} is not supported", link.hardware_type);
            let remedy = "watch an interface that carries Ethernet or IP alone; the numbers are ARPHRD_* of linux/if_arp.h";
            return Check::missing(Name::Interface, found, remedy);
        }
    };
    let driver = ethtool::driver(&link.name).map(|driver| format!(", driver {driver}")).unwrap_or_default();
    match (is_up, has_carrier) {
        (true, true) => Check::ok(Name::Interface, format!("up, {frames}{driver}")),
        (true, false) => Check::degraded(
            Name::Interface,
            format!("up without a carrier, {frames}{driver}"),
            "plug in the cable: no packets pass until then",
        ),
        (false, _) => Check::degraded(
            Name::Interface,
            format!("down, {frames}{driver}"),
            format!("ip link set dev {} up: no packets pass until then", quoted(&link.name)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};

    #[test]
    fn frames_that_cannot_be_read_are_refused_by_number() {
        let hardware_type = libc::ARPHRD_INFINIBAND;
        let link = Link { name: "ib0".into(), ifindex: 3, hardware_type, ..Link::default() };
        let check = interface(&Interface { link, is_up: true, has_carrier: true, ..Interface::default() });
        assert_eq!(check.status, Status::Missing);
        assert!(check.found.contains("link type 32 "), "{}", check.found);
    }
}
