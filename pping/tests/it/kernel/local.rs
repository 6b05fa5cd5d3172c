//! Packets to this host itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    method::Method,
    parse::{Direction, LinkType},
    rtt::Rules,
};

use super::{
    frames::{echo, v4, v6},
    random::Random,
    rig::{Program, Rig, SETTINGS, samples},
    talk::{Connection, Temper, program},
};

fn bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn rig(include_local: bool) -> Rig {
    let rules = Rules { include_local, ..SETTINGS.rules };
    Rig::with(LoadOptions { rules, ..SETTINGS }, LinkType::Ethernet)
}

/// Lets each host ping the other, with the given addresses local. Returns the samples matched on ingress and egress. The
/// other pings are those to this host.
fn ping(rig: &mut Rig, local: &[IpAddr], here: IpAddr, there: IpAddr) -> [u64; 2] {
    rig.start_over();
    for address in local {
        rig.add_local(bytes(*address));
    }
    rig.send(Program::Egress, &echo(here, there, 1, 1, false));
    rig.send(Program::Ingress, &echo(there, here, 1, 1, true));
    rig.send(Program::Ingress, &echo(there, here, 2, 1, false));
    rig.send(Program::Egress, &echo(here, there, 2, 1, true));
    let reported = samples(&rig.agree("pings"));
    let counters = rig.twin.counters;
    let timed = reported.len() as u64;
    assert_eq!((counters.echo_requests, counters.to_this_host), (timed, 2 - timed));
    Direction::ALL
        .map(|direction| reported.iter().filter(|event| event.direction == direction as u8).count() as u64)
}

#[test]
fn packets_to_this_host_are_timed_only_with_include_local() {
    let (mut without, mut with) = (rig(false), rig(true));
    for [here, there] in [[v4(1), v4(2)], [v4(2), v4(1)], [v6(1), v6(2)], [v6(2), v6(1)]] {
        assert_eq!(ping(&mut without, &[], here, there), [1, 1], "no address known");
        assert_eq!(ping(&mut without, &[here], here, there), [1, 0]);
        assert_eq!(ping(&mut with, &[here], here, there), [1, 1]);
        assert_eq!(ping(&mut without, &[here, there], here, there), [0, 0]);
        assert_eq!(ping(&mut with, &[here, there], here, there), [1, 1]);
    }
}

#[test]
fn loopback_addresses_are_known_as_local() {
    let hosts: [IpAddr; 2] = [Ipv4Addr::new(127, 1, 2, 3).into(), Ipv6Addr::LOCALHOST.into()];
    let (mut without, mut with) = (rig(false), rig(true));
    for host in hosts {
        assert_eq!(ping(&mut without, &[], host, host), [0, 0]);
        assert_eq!(ping(&mut with, &[], host, host), [1, 1], "a host that pings itself");
    }
}

#[test]
fn connections_to_this_host_are_timed_in_one_direction() {
    let mut rig = rig(false);
    for [here, there] in [[v4(1), v4(2)], [v6(2), v6(1)]] {
        rig.start_over();
        rig.add_local(bytes(here));
        let mut random = Random::seeded(31);
        let mut connection = Connection::new([here, there], 50_000, Temper::Calm, &mut random);
        for _ in 0..1000 {
            let (from, frame) = connection.next(&mut random);
            rig.send(program(from, Program::Xdp), &frame);
        }
        rig.agree("a connection");
        let [ingress, egress] = rig.twin.counters.samples.map(|samples| samples[Method::TcpTs as usize]);
        assert!(ingress > 100 && egress == 0, "{ingress} {egress}");
        let left_out = rig.twin.counters.to_this_host;
        assert!(left_out > 100, "{left_out}");
    }
}
