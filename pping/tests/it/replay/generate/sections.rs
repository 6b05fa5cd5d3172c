//! Captures with several interfaces and sections.

use super::{
    Golden,
    dialogue::{Dialogue, TimedPacket},
    links,
    pcap::Endian,
    pcapng::{Interface, Resolution, Section},
};
use crate::frames::{Ip, Tcp};

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
const RAW: u16 = 101;

pub(super) fn captures() -> Vec<Golden> {
    vec![
        Golden::new("interfaces-little-endian.pcapng", interfaces(Endian::Little)).with_samples("interfaces"),
        Golden::new("interfaces-big-endian.pcapng", interfaces(Endian::Big)).with_samples("interfaces"),
        Golden::new("resolutions.pcapng", resolutions()),
        Golden::new("sections.pcapng", sections()),
        Golden::new("hooks.pcapng", hooks()),
    ]
}

fn interface(link_type: u16, name: Option<&'static str>) -> Interface {
    Interface { link_type, name, resolution: Resolution::Ten(9), offset: 0 }
}

fn basic(number: u16) -> Vec<TimedPacket> {
    Dialogue::new(Ip::v4(), number).basic().packets()
}

/// A flow that passes four interfaces counts as four flows. Packets of other flows have no time.
fn interfaces(endian: Endian) -> Vec<u8> {
    let mut section = Section::new(endian);
    section.interface(interface(ETHERNET, Some("eth0")));
    section.interface(interface(PPP, Some("ppp0")));
    section.others();
    for packet in basic(0) {
        section.frame(0, &packet.on_ethernet());
        section.frame(1, &TimedPacket { at: packet.at + 1_000_001, ..packet.clone() }.frame(links::ppp));
        section.simple(&packet.on_ethernet());
    }
    section.others();
    // An interface may be described after others have been used, and needs no name.
    section.interface(interface(NULL, None));
    section.interface(interface(RAW, None));
    for packet in basic(0) {
        section.frame(3, &packet.frame(links::raw));
        section.frame(
            2,
            &TimedPacket { at: packet.at + 2_000_003, ..packet.clone() }.frame(links::null_little_endian),
        );
    }
    section.bytes()
}

/// Each packet comes in and goes out by the same interface. Then a host is at the other hook for some seconds.
fn hooks() -> Vec<u8> {
    /// How long it takes to forward a packet, ns.
    const FORWARDING: u64 = 20_001;
    let mut section = Section::new(Endian::Little);
    section.interface(interface(ETHERNET, Some("arm")));
    let without_timestamps = |_, _| Tcp::with_options(Vec::new());
    let dialogues = [
        Dialogue::new(Ip::v4(), 0).basic().answer().ping(),
        Dialogue::new(Ip::v6(), 3).with_segments(without_timestamps).basic().answer().ping(),
    ];
    for packet in dialogues.into_iter().flat_map(Dialogue::packets) {
        section.passing(0, &packet.on_ethernet(), false);
        section.passing(0, &TimedPacket { at: packet.at + FORWARDING, ..packet }.on_ethernet(), true);
    }
    let moving = (0..8).fold(Dialogue::new(Ip::v4(), 6), |dialogue, number| {
        let at = 600 * u64::from(number);
        dialogue.request(at, number).reply(at + 20, number)
    });
    for (number, packet) in moving.packets().into_iter().enumerate() {
        // The hosts change sides between the second and the third ping.
        section.passing(0, &packet.on_ethernet(), packet.is_outward == (number >= 4));
    }
    section.bytes()
}

fn resolutions() -> Vec<u8> {
    let offset = 1_699_999_999;
    let mut section = Section::new(Endian::Little);
    let resolutions = [
        (Resolution::Default, 0),
        (Resolution::Default, offset),
        (Resolution::Ten(3), 0),
        (Resolution::Ten(7), 0),
        (Resolution::Ten(9), offset),
        (Resolution::Ten(10), offset),
        (Resolution::Two(10), 0),
        (Resolution::Two(20), offset),
        (Resolution::Two(30), 0),
        (Resolution::Two(34), offset),
    ];
    for (number, (resolution, offset)) in (0..).zip(resolutions) {
        section.interface(Interface { resolution, offset, ..interface(ETHERNET, Some("eth0")) });
        for packet in basic(number) {
            section.frame(number.into(), &packet.on_ethernet());
        }
    }
    section.bytes()
}

/// The flows of an interface continue if the next section has an interface with the same number and name.
fn sections() -> Vec<u8> {
    let packets = basic(0);
    let (before, after) = packets.split_at(1);
    let mut first = Section::new(Endian::Little);
    first.interface(interface(ETHERNET, Some("eth0")));
    for packet in before {
        first.frame(0, &packet.on_ethernet());
    }
    let mut second = Section::new(Endian::Big);
    second.others();
    second.interface(interface(ETHERNET, Some("eth0")));
    second.interface(interface(RAW, Some("tun0")));
    for packet in after {
        second.frame(0, &packet.on_ethernet());
        second.frame(1, &packet.frame(links::raw));
    }
    let mut third = Section::new(Endian::Little);
    third.interface(Interface { resolution: Resolution::Default, ..interface(PPP, Some("ppp0")) });
    for packet in basic(1) {
        third.frame(0, &packet.frame(links::ppp));
    }
    [first.bytes(), second.bytes(), third.bytes()].concat()
}
