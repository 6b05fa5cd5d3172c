//! The fast path gives the same frame as the slow path, or none.

use std::vec::Vec;

use proptest::{collection::vec, prelude::*};

use crate::{
    method::{Method, Methods},
    parse::{Datagram, Decap, Family, Frame, Ipv4, Ipv6, LinkType, Protocol, Scope, Untracked, Vlan},
    testing::{Network, TCP, Tcp, ethernet},
};

/// A frame of the common form.
fn common(network: &Network, with_timestamps: bool) -> Vec<u8> {
    let tcp = Tcp { payload: 30, ..Tcp::usual(3, 4) };
    let options = if with_timestamps { tcp.options.clone() } else { Vec::new() };
    let packet = network.packet(TCP, &Tcp { options, ..tcp }.bytes());
    ethernet(&[], network.ethertype(), &packet)
}

/// Takes the fast path. If that gives a frame, compares it with the slow path's and returns true.
fn take(bytes: &[u8]) -> bool {
    let mut taken = false;
    for family in Family::ALL {
        let fast = match family {
            Family::V4 => Frame::parse_fast::<Ipv4>(bytes),
            Family::V6 => Frame::parse_fast::<Ipv6>(bytes),
        };
        let Some(fast) = fast else { continue };
        let mut slow = Frame::EMPTY;
        let parsed = slow.parse(bytes, LinkType::Ethernet, Vlan::NONE, Decap::ALL, &Scope::ALL);
        // The fast path was asked for the other family.
        if slow.family != family {
            continue;
        }
        assert_eq!(parsed, Ok(()));
        // A frame that held another segment before.
        let mut copied = Frame::EMPTY;
        copied.transport.segment.has_sack = true;
        copied.copy_fast(&fast);
        for frame in [fast, copied] {
            assert_eq!((frame.source, frame.destination), (slow.source, slow.destination));
            assert_eq!((frame.family, frame.protocol), (slow.family, slow.protocol));
            assert_eq!((frame.traffic_class, frame.transport), (slow.traffic_class, slow.transport));
        }
        taken = true;
    }
    taken
}

/// A UDP datagram of the common form, with 30 bytes of payload.
fn common_udp(network: &Network) -> Vec<u8> {
    let datagram = [&[0x30, 0x39, 0, 53, 0, 38, 0, 0][..], &[7; 30]].concat();
    ethernet(&[], network.ethertype(), &network.packet(Datagram::NUMBER, &datagram))
}

/// Takes the fast path of datagrams that are not measured. If that gives a result, compares it with the slow path's and
/// returns true.
fn take_udp(bytes: &[u8]) -> bool {
    let scope = Scope::of(Methods::NONE.with(Method::TcpTs));
    let mut taken = false;
    for family in Family::ALL {
        let fast = match family {
            Family::V4 => Frame::parse_fast_udp::<Ipv4>(bytes),
            Family::V6 => Frame::parse_fast_udp::<Ipv6>(bytes),
        };
        let mut slow = Frame::EMPTY;
        let parsed = slow.parse(bytes, LinkType::Ethernet, Vlan::NONE, Decap::NONE, &scope);
        if let Some(traffic_class) = fast.filter(|_| slow.family == family) {
            assert_eq!(parsed, Err(Untracked::Unsupported));
            assert_eq!((slow.protocol, slow.traffic_class), (Protocol::Udp, traffic_class));
            taken = true;
        }
    }
    taken
}

#[test]
fn most_frames_take_the_fast_path() {
    for network in [Network::v4(), Network::v6()] {
        for with_timestamps in [true, false] {
            assert!(take(&common(&network, with_timestamps)), "{network:?}");
        }
    }
}

#[test]
fn most_datagrams_take_the_fast_path() {
    for network in [Network::v4(), Network::v6()] {
        assert!(take_udp(&common_udp(&network)), "{network:?}");
        assert!(take_udp(&common_udp(&Network { traffic_class: 0xb9, ..network })), "a traffic class");
    }
}

#[test]
fn other_datagrams_do_not() {
    assert!(!take_udp(&common(&Network::v4(), true)), "a segment");
    for fragment in [0x2001, 1] {
        let network = Network { fragment, ..Network::v4() };
        assert!(!take_udp(&common_udp(&network)), "fragment {fragment:#x}");
    }
    for len in [0, 19] {
        let network = Network { len: Some(len), ..Network::v4() };
        assert!(!take_udp(&common_udp(&network)), "{len} bytes by the header");
    }
    assert!(
        !take_udp(&common_udp(&Network { options: std::vec![1; 4], ..Network::v4() })),
        "options of IPv4"
    );
    for (network, header) in [(Network::v4(), 34), (Network::v6(), 54)] {
        let frame = common_udp(&network);
        assert!(!take_udp(&frame[..header - 1]), "cut short");
        assert!(take_udp(&frame[..header]), "no more than the IP header");
    }
}

#[test]
fn others_do_not() {
    let v4 = Network { options: std::vec![1; 4], ..Network::v4() };
    assert!(!take(&common(&v4, true)), "options of IPv4");
    for flags in [0x02, 0x12, 0x11, 0x14] {
        let packet = Network::v4().packet(TCP, &Tcp { flags, ..Tcp::usual(1, 2) }.bytes());
        assert!(!take(&ethernet(&[], 0x0800, &packet)), "flags {flags:#x}");
    }
    let packet = Network::v4().packet(TCP, &Tcp::usual(1, 2).bytes());
    assert!(!take(&ethernet(&[(0x8100, 5)], 0x0800, &packet)), "a tag");
    for network in [Network::v4(), Network::v6()] {
        let frame = common(&network, true);
        let header = frame.len() - 30;
        for len in 0..header {
            assert!(!take(&frame[..len]), "cut to {len} bytes");
        }
        assert!(take(&frame[..header]), "no more than the header");
    }
}

proptest! {
    #[test]
    fn what_it_comes_to_is_what_the_slow_path_comes_to(
        is_v6 in any::<bool>(),
        with_timestamps in any::<bool>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 0..30_usize,
    ) {
        let network = if is_v6 { Network::v6() } else { Network::v4() };
        let mut bytes = common(&network, with_timestamps);
        let header = bytes.len() - 30;
        for (position, byte) in changes {
            // The caller of the fast path checks the link header, so that stays.
            bytes[14 + position.index(header - 14)] = byte;
        }
        take(&bytes[..bytes.len() - cut]);
    }

    #[test]
    fn what_is_said_of_a_datagram_is_what_the_slow_path_says(
        is_v6 in any::<bool>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 0..60_usize,
    ) {
        let network = if is_v6 { Network::v6() } else { Network::v4() };
        let mut bytes = common_udp(&network);
        for (position, byte) in changes {
            bytes[14 + position.index(network.header_len())] = byte;
        }
        take_udp(&bytes[..bytes.len() - cut.min(bytes.len())]);
    }
}
