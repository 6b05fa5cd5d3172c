//! Headers below IP: VLAN tags added by the kernel, and raw PPPoE frames.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Namespace, PacketSocket, Topology};

use super::{CONVERSATION, EXACT, FAMILIES, Family, Net, PINGS, Watched, assert_exact, ok, pings, to_server};
use crate::frames::{ICMP, ICMPV6, Ip, PPPOE_SESSION, ethernet, icmp, pppoe, v4, v6};

const DELAY: Duration = Duration::from_millis(20);

/// The PPP protocol numbers of IP.
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

fn tags_do_not_matter(ingress: &str) {
    let net = Net::tagged();
    net.delay(DELAY);
    let mut watched = Watched::start(&net.router, Topology::WAN, &format!("--ingress {ingress}"));
    for family in FAMILIES {
        net.converse(family, CONVERSATION);
        let said = pings(&net.client, family.server(), PINGS);
        let samples = watched.take();
        let samples = to_server(&samples, family);
        assert_exact(&samples, DELAY);
        let echoes = samples.iter().filter(|sample| sample.method == "icmp-echo").count();
        assert_eq!((echoes, said.len()), (PINGS, PINGS));
        assert!(samples.len() - echoes > 20, "{} samples of TCP", samples.len() - echoes);
    }
    watched.finish();
}

#[test]
fn vlan_tags_do_not_matter_at_tc() {
    tags_do_not_matter("tc");
}

#[test]
fn vlan_tags_do_not_matter_at_xdp() {
    tags_do_not_matter("xdp");
}

/// Builds a frame of a session, with an echo request or reply.
fn echo(family: Family, sequence: u16, is_reply: bool) -> Vec<u8> {
    let (near, far): (IpAddr, IpAddr) = match family {
        Family::Ipv4 => (v4(1), v4(2)),
        Family::Ipv6 => (v6(1), v6(2)),
    };
    let (source, destination) = if is_reply { (far, near) } else { (near, far) };
    let (ppp, protocol, kinds) = match family {
        Family::Ipv4 => (PPP_IPV4, ICMP, [8, 0]),
        Family::Ipv6 => (PPP_IPV6, ICMPV6, [128, 129]),
    };
    let message = icmp(kinds[usize::from(is_reply)], 0, 77, sequence, 56);
    let packet = Ip::between(source, destination).packet(protocol, &message);
    ethernet(&[], PPPOE_SESSION, &pppoe(ppp, &packet))
}

fn socket(host: &Namespace, interface: &str) -> PacketSocket {
    ok(host.enter(|| PacketSocket::open(interface))).unwrap()
}

fn sessions_are_parsed(ingress: &str) {
    const ECHOES: u16 = 10;
    let net = Net::new();
    let (router, server) = (socket(&net.router, Topology::WAN), socket(&net.server, Topology::ETH));
    let mut watched = Watched::start(&net.router, Topology::WAN, &format!("--ingress {ingress}"));
    for family in FAMILIES {
        let mut taken = Vec::new();
        for sequence in 0..ECHOES {
            let began = Instant::now();
            router.send(&echo(family, sequence, false)).unwrap();
            let sent = Instant::now();
            thread::sleep(DELAY);
            let least = sent.elapsed();
            server.send(&echo(family, sequence, true)).unwrap();
            taken.push(least..=began.elapsed());
        }
        let samples = watched.take();
        assert_eq!(samples.len(), usize::from(ECHOES), "{samples:?}");
        for (sample, taken) in samples.iter().zip(taken) {
            assert!(!sample.match_on_egress && sample.method == "icmp-echo", "{sample:?}");
            assert!(
                sample.rtt() >= *taken.start() && sample.rtt() <= *taken.end() + EXACT,
                "{taken:?}: {sample:?}"
            );
        }
    }
    watched.finish();
}

#[test]
fn pppoe_sessions_are_parsed_at_tc() {
    sessions_are_parsed("tc");
}

#[test]
fn pppoe_sessions_are_parsed_at_xdp() {
    sessions_are_parsed("xdp");
}
