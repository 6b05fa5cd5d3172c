//! Frames of random bytes pass unchanged, and the kernel counts them as user space does.

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    method::{Method, Methods},
    parse::LinkType,
    rtt::Rules,
};

use super::{
    frames::{ICMP, ICMPV6, IPV4, IPV6, TCP, VLAN, ethernet},
    random::Random,
    rig::{Program, Rig, SETTINGS},
    shapes::{DECAP_ALL, SHORTEST, Shape, catalogue, tunnels},
};

/// The longest Ethernet frame without tags.
const LONGEST: usize = 1514;

fn take(link: LinkType, mut frame: impl FnMut(&mut Random, usize) -> Vec<u8>) {
    let mut rig = Rig::with(SETTINGS, link);
    let mut random = Random::seeded(1);
    for len in SHORTEST..=LONGEST {
        for program in Program::ALL {
            let mut bytes = frame(&mut random, len);
            bytes.resize(len, 0);
            rig.send(program, &bytes);
            rig.agree(&format!("{program:?}: {bytes:02x?}"));
        }
    }
}

/// Random bytes with just enough structure for the parser to continue.
fn almost_ip(random: &mut Random, len: usize) -> Vec<u8> {
    let mut packet = random.bytes(len);
    if random.chance(50) {
        packet[0] = 0x45 + random.below(3) as u8;
        packet[6] &= 0x20;
        packet[7] = 0;
        packet[9] = random.pick(&[TCP, TCP, TCP, ICMP]);
    } else {
        packet[0] = 0x60;
        packet[6] = random.pick(&[TCP, TCP, ICMPV6, 0, 43, 44, 60]);
    }
    packet
}

#[test]
fn garbage_of_every_length() {
    take(LinkType::Ethernet, Random::bytes);
}

#[test]
fn garbage_of_every_length_behind_an_ethernet_header() {
    take(LinkType::Ethernet, |random, len| {
        let packet = almost_ip(random, len);
        let ethertype = if packet[0] >> 4 == 4 { IPV4 } else { IPV6 };
        let tags = [(VLAN, 5), (VLAN, 6)];
        let mut frame = ethernet(&tags[..random.below(3)], ethertype, &packet);
        frame.truncate(len);
        frame
    });
}

#[test]
fn garbage_of_every_length_without_a_link_header() {
    take(LinkType::Ip, almost_ip);
}

#[test]
fn shapes_with_a_few_bytes_changed() {
    change(Rig::new(), &catalogue());
}

#[test]
fn tunnels_with_a_few_bytes_changed() {
    change(Rig::with(DECAP_ALL, LinkType::Ethernet), &tunnels());
}

#[test]
fn shapes_with_a_few_bytes_changed_with_udp_methods_off() {
    let rules = Rules { methods: Methods::NONE.with(Method::TcpTs).with(Method::IcmpEcho), ..SETTINGS.rules };
    let shapes: Vec<Shape> = catalogue().into_iter().chain(tunnels()).collect();
    change(Rig::with(LoadOptions { rules, ..SETTINGS }, LinkType::Ethernet), &shapes);
}

fn change(mut rig: Rig, shapes: &[Shape]) {
    let mut random = Random::seeded(2);
    for _ in 0..20_000 {
        let mut frame = random.pick(&shapes.iter().map(|shape| &shape.frame).collect::<Vec<_>>()).clone();
        for _ in 0..=random.below(3) {
            let at = 12 + random.below(frame.len() - 12);
            frame[at] = random.next() as u8;
        }
        let program = random.pick(&Program::ALL);
        rig.send(program, &frame);
        rig.agree(&format!("{program:?}: {frame:02x?}"));
    }
}
