//! Checks whether `--inside` fits the packets that pass.

use std::{
    io,
    net::{IpAddr, Ipv6Addr},
    thread,
    time::Duration,
};

use ipnet::IpNet;
use pping_common::parse::{Decap, Frame, IpAddress, LinkType, Scope, Vlan};

use super::{name::Name, report::Check};
use crate::{
    config::Config,
    groups::{self, Labels, Lookup, PrefixRule},
    kernel::{
        inspect::{links::Interface, packets::Packets},
        promiscuous::Promiscuous,
    },
};

/// How long packets are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Packets from which on it says something that all of them are on one side.
const EVIDENCE: usize = 16;

/// The packets of an interface, by how many of their two hosts are inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    by_inside: [usize; 3],
}

/// Looks at the packets of all these interfaces for a second, and judges each; nothing without `--inside`.
pub(super) fn inside(config: &Config, interfaces: &[Interface]) -> Vec<Option<Check>> {
    let aggregation = &config.aggregation;
    if !aggregation.inside.is_known() {
        return vec![None; interfaces.len()];
    }
    let mut prefixes: Vec<(IpNet, u32)> = aggregation.inside.prefixes.iter().map(|&it| (it, 1)).collect();
    if aggregation.inside.groups
        && let Some(file) = &aggregation.groups
        // Another check names what is wrong with the file.
        && let rule = PrefixRule::of(aggregation.groups_socket.is_some())
        && let Ok(file) = groups::load(file, rule, &mut Labels::default())
    {
        prefixes.extend(file.prefixes);
    }
    let lookup = Lookup::new(prefixes);
    let opened: Vec<_> = interfaces.iter().map(|it| Packets::of(it.link.ifindex)).collect();
    // Like the run that would follow. A card in this mode shows what is mirrored to it.
    let promiscuous = Promiscuous::open().ok().filter(|_| config.live.mirror);
    if let Some(promiscuous) = &promiscuous {
        for interface in interfaces {
            promiscuous.hold(interface.link.ifindex).ok();
        }
    }
    if opened.iter().any(Result::is_ok) {
        thread::sleep(LOOK);
    }
    let looked = interfaces.iter().zip(opened).map(|(interface, opened)| {
        let link_type = interface.link.link_type().ok()?;
        Some(judge(opened.map(|packets| Seen::look(&packets, link_type, config.decap, &lookup))))
    });
    looked.collect()
}

impl Seen {
    fn look(packets: &Packets, link_type: LinkType, decap: Decap, inside: &Lookup) -> Self {
        let mut seen = Self::default();
        packets.each(|captured| {
            let mut frame = Frame::EMPTY;
            // Packets that are not measured have addresses, too.
            frame.parse(&captured, link_type, Vlan::NONE, decap, &Scope::ALL).ok();
            let hosts = [frame.source, frame.destination];
            if hosts.into_iter().all(is_routed) {
                seen.by_inside[hosts.into_iter().filter(|&host| inside.contains(host)).count()] += 1;
            }
        });
        seen
    }
}

/// Whether packets from and to an address go beyond a link.
fn is_routed(address: IpAddress) -> bool {
    match Ipv6Addr::from(address.to_bytes()).to_canonical() {
        IpAddr::V4(address) => !(address.is_multicast() || address.is_link_local() || address.is_broadcast()),
        IpAddr::V6(address) => {
            !(address.is_multicast() || address.is_unicast_link_local() || address.is_unspecified())
        }
    }
}

fn judge(seen: io::Result<Seen>) -> Check {
    let Seen { by_inside } = match seen {
        Ok(seen) => seen,
        Err(error) => return Check::unknown(Name::Inside, format!("no packet socket: {error}")),
    };
    let all: usize = by_inside.iter().sum();
    let [none, one, both] = by_inside;
    let found = format!(
        "of {all} packets in a second, {one} are between a host inside and one outside, {both} between two inside, \
         {none} between two outside"
    );
    let remedy =
        "compare --inside with the addresses of your network: until then all samples are of one side";
    match (all, one) {
        (0, _) => Check::unknown(Name::Inside, "no packet with addresses passed in a second"),
        (_, 0) if all < EVIDENCE => Check::unknown(Name::Inside, found + ", which are too few to say"),
        (_, 0) => Check::degraded(Name::Inside, found, remedy),
        _ => Check::ok(Name::Inside, found),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};

    #[test]
    fn packets_of_one_side_alone_say_that_something_is_wrong() {
        for (by_inside, status) in [
            ([0, 0, 0], Status::Unknown),
            ([EVIDENCE - 1, 0, 0], Status::Unknown),
            ([EVIDENCE, 0, 0], Status::Degraded),
            ([0, 0, EVIDENCE], Status::Degraded),
            ([900, 1, 0], Status::Ok),
        ] {
            let check = judge(Ok(Seen { by_inside }));
            assert_eq!(check.status, status, "{by_inside:?}: {}", check.found);
        }
        let refused = judge(Err(io::Error::from(io::ErrorKind::PermissionDenied)));
        assert_eq!(refused.status, Status::Unknown);
    }
}
