//! What holds for any bytes and for any frame.

use core::cell::RefCell;
use std::{vec, vec::Vec};

use proptest::{collection::vec, prelude::*, sample::subsequence};

use super::tunnel::tunnels;
use crate::{
    bytes::Bytes,
    parse::{Decap, Frame, IpAddress, Kind, LinkType, Protocol, Scope, Timestamps, Untracked, Vlan},
    testing::{ICMP, ICMPV6, Network, TCP, Tcp, echo, ethernet, extension, identifiers, parse},
};

/// A frame that logs its reads: offset, length, and whether the read was inside the frame.
struct Watched<'a> {
    bytes: &'a [u8],
    reads: RefCell<Vec<(usize, usize, bool)>>,
}

impl Bytes for Watched<'_> {
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let read = self.bytes.read(offset);
        assert_eq!(read.is_some(), offset + N <= self.bytes.len());
        self.reads.borrow_mut().push((offset, N, read.is_some()));
        read
    }

    fn frame_len(&self) -> usize {
        self.bytes.len()
    }
}

/// Parses a frame. Checks that a failed read is the last one and makes the frame truncated, unless it was a read of TCP
/// options that were no longer needed. Returns how far reads went.
fn parse_watched(bytes: &[u8], link: LinkType) -> (Result<(), Untracked>, usize) {
    parse_watched_inside(bytes, link, Decap::NONE)
}

/// The same, with tunnels.
fn parse_watched_inside(bytes: &[u8], link: LinkType, decap: Decap) -> (Result<(), Untracked>, usize) {
    let watched = Watched { bytes, reads: RefCell::default() };
    let mut frame = Frame::EMPTY;
    let parsed = frame.parse(&watched, link, Vlan::NONE, decap, &Scope::ALL);
    let reads = watched.reads.into_inner();
    let failed = reads.iter().position(|&(_, _, is_inside)| !is_inside);
    let does_without = parsed.is_ok() && frame.transport.kind == Kind::Tcp;
    assert!(
        failed.is_some() == (parsed == Err(Untracked::Truncated)) || does_without,
        "{parsed:?}: {frame:?}"
    );
    assert!(failed.is_none_or(|position| position + 1 == reads.len()));
    let inside = reads.iter().filter(|&&(_, _, is_inside)| is_inside);
    (parsed, inside.map(|&(offset, len, _)| offset + len).max().unwrap_or(0))
}

/// Reads options by RFC 9293, 3.1: returns the timestamps, and whether there is a SACK of one block or more (RFC 2018,
/// 3). Of two timestamps the latter counts, as in Linux.
fn find(mut options: &[u8]) -> (Option<Timestamps>, bool) {
    let (mut timestamps, mut has_sack) = (None, false);
    loop {
        options = match *options {
            [1, ref rest @ ..] => rest,
            [kind, len, ..] if kind != 0 && len >= 2 && usize::from(len) <= options.len() => {
                let (option, rest) = options.split_at(usize::from(len));
                match (kind, option) {
                    (8, &[_, _, a, b, c, d, e, f, g, h]) => {
                        let (tsval, tsecr) =
                            (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                        timestamps = Some(Timestamps { tsval, tsecr });
                    }
                    (8, _) => return (timestamps, has_sack),
                    (5, option) => has_sack |= option.len() >= 10,
                    _ => {}
                }
                rest
            }
            _ => return (timestamps, has_sack),
        };
    }
}

/// Options that hosts send, other than timestamps.
fn other_options() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let all: Vec<Vec<u8>> = vec![
        vec![1],
        vec![1],
        vec![1],
        vec![2, 4, 5, 0xb4],
        vec![3, 3, 7],
        vec![4, 2],
        vec![5, 10, 8, 10, 8, 10, 8, 10, 8, 10],
        vec![253, 6, 8, 10, 0, 0],
    ];
    subsequence(all.clone(), 0..all.len())
        .prop_filter("must leave room for timestamps", |options| options.concat().len() <= 30)
}

fn network() -> impl Strategy<Value = Network> {
    let v4 = (any::<[u8; 8]>(), 0..=10_usize).prop_map(|(bytes, words)| {
        let mapped = |half: &[u8]| {
            let mut address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0];
            address[12..].copy_from_slice(half);
            IpAddress::from_bytes(address)
        };
        Network {
            source: mapped(&bytes[..4]),
            destination: mapped(&bytes[4..]),
            options: vec![1; 4 * words],
            ..Network::v4()
        }
    });
    let headers = vec((prop_oneof![Just(0), Just(43), Just(60)], 1..5_usize), 0..=6);
    let v6 =
        (any::<[u8; 16]>(), any::<[u8; 16]>(), headers).prop_map(|(source, destination, headers)| Network {
            source: IpAddress::from_bytes(source),
            destination: IpAddress::from_bytes(destination),
            extensions: headers.into_iter().map(|(number, units)| extension(number, units)).collect(),
            ..Network::v6()
        });
    (prop_oneof![v4, v6], any::<u8>())
        .prop_map(|(network, traffic_class)| Network { traffic_class, ..network })
}

fn tags() -> impl Strategy<Value = Vec<(u16, u16)>> {
    vec((prop_oneof![Just(0x8100), Just(0x88a8), Just(0x9100), Just(0x9200)], any::<u16>()), 0..=4)
}

/// Checks that the lower layers of a built frame are parsed correctly.
fn assert_lower_layers(frame: &Frame, network: &Network, tags: &[(u16, u16)]) {
    let built: Vec<u16> = tags.iter().map(|(_, control)| control & 0xfff).collect();
    assert_eq!(identifiers(frame), built);
    assert_eq!((frame.source, frame.destination), (network.source, network.destination));
    assert_eq!((frame.family, frame.traffic_class), (network.family, network.traffic_class));
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_without_leaving_the_frame(bytes in vec(any::<u8>(), 0..200)) {
        for link in LinkType::ALL {
            for decap in [Decap::NONE, Decap::ALL] {
                let (_, furthest) = parse_watched_inside(&bytes, link, decap);
                prop_assert!(furthest <= bytes.len());
            }
        }
    }

    #[test]
    fn any_change_of_a_frame_is_parsed_without_leaving_it(
        network in network(),
        tags in tags(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let packet = network.packet(TCP, &Tcp::usual(1, 2).bytes());
        let mut bytes = ethernet(&tags, network.ethertype(), &packet);
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        let prefix = &bytes[..cut.index(bytes.len())];
        for bytes in [&bytes[..], prefix] {
            let (_, furthest) = parse_watched(bytes, LinkType::Ethernet);
            prop_assert!(furthest <= bytes.len());
        }
    }

    #[test]
    fn any_change_of_a_tunnel_is_parsed_without_leaving_it(
        network in network(),
        kind in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let tunnels = tunnels(&network, &network.packet(TCP, &Tcp::usual(1, 2).bytes()));
        let mut bytes = tunnels[kind.index(tunnels.len())].bytes.clone();
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        let prefix = &bytes[..cut.index(bytes.len())];
        for bytes in [&bytes[..], prefix] {
            let (_, furthest) = parse_watched_inside(bytes, LinkType::Ethernet, Decap::ALL);
            prop_assert!(furthest <= bytes.len());
        }
    }

    #[test]
    fn built_segments_parse_without_reading_payload(
        network in network(),
        tags in tags(),
        ports in any::<(u16, u16)>(),
        flags in any::<u8>(),
        (tsval, tsecr) in any::<(u32, u32)>(),
        payload in 0..50_usize,
        padding in 0..50_usize,
    ) {
        let (source_port, destination_port) = ports;
        let tcp = Tcp { source_port, destination_port, flags, payload, ..Tcp::usual(tsval, tsecr) };
        let packet = network.packet(TCP, &tcp.bytes());
        let mut bytes = ethernet(&tags, network.ethertype(), &packet);
        let header_end = bytes.len() - payload;
        bytes.resize(bytes.len() + padding, 0);
        let frame = parse(&bytes).unwrap();
        assert_lower_layers(&frame, &network, &tags);
        let segment = frame.transport.segment;
        prop_assert_eq!((frame.protocol, frame.transport.kind), (Protocol::Tcp, Kind::Tcp));
        prop_assert_eq!(frame.transport.ports(), ports);
        prop_assert_eq!(segment.flags.0, flags);
        prop_assert_eq!(segment.payload as usize, payload);
        prop_assert_eq!(segment.timestamps(), Some(Timestamps { tsval, tsecr }));
        let (parsed, furthest) = parse_watched(&bytes, LinkType::Ethernet);
        prop_assert_eq!(parsed, Ok(()));
        prop_assert_eq!(furthest, header_end);
    }

    #[test]
    fn built_echoes_parse_reading_only_first_data(
        network in network(),
        tags in tags(),
        (id, sequence, is_reply) in any::<(u16, u16, bool)>(),
        payload in 0..50_usize,
        padding in 0..50_usize,
    ) {
        let (number, kind) = match (network.ethertype(), is_reply) {
            (0x0800, false) => (ICMP, 8),
            (0x0800, true) => (ICMP, 0),
            (_, false) => (ICMPV6, 128),
            (_, true) => (ICMPV6, 129),
        };
        let packet = network.packet(number, &echo(kind, 0, id, sequence, &vec![0; payload]));
        let mut bytes = ethernet(&tags, network.ethertype(), &packet);
        let read_to = bytes.len() - payload + if payload < 16 { 0 } else { 16 };
        bytes.resize(bytes.len() + padding, 0);
        let frame = parse(&bytes).unwrap();
        assert_lower_layers(&frame, &network, &tags);
        let parsed = frame.transport.echo;
        prop_assert_eq!((parsed.id, parsed.sequence, parsed.is_reply), (id, sequence, is_reply));
        prop_assert_eq!(parsed.payload as usize, payload);
        prop_assert_eq!(parse_watched(&bytes, LinkType::Ethernet), (Ok(()), read_to));
    }

    #[test]
    fn timestamps_are_found_in_any_order_of_options(
        options in other_options().prop_flat_map(|mut options| {
            options.push(Tcp::timestamps(0xdead_beef, 0x0bad_cafe).to_vec());
            Just(options).prop_shuffle()
        }),
    ) {
        let bytes = Network::v6().frame(TCP, &Tcp::with_options(&options.concat()).bytes());
        let expected = Timestamps { tsval: 0xdead_beef, tsecr: 0x0bad_cafe };
        let segment = parse(&bytes).unwrap().transport.segment;
        prop_assert_eq!(segment.timestamps(), Some(expected));
        prop_assert_eq!(segment.has_sack, options.iter().any(|option| option[0] == 5));
    }

    #[test]
    fn any_options_are_read_by_the_rfc_and_not_beyond(
        // Most bytes are valid as a kind or as a length.
        options in vec(prop_oneof![0..=12_u8, Just(8), Just(10), any::<u8>()], 0..=40),
    ) {
        let tcp = Tcp::with_options(&options);
        let mut padded = options;
        padded.resize(tcp.header_len() - 20, 0);
        let bytes = Network::v4().frame(TCP, &tcp.bytes());
        let segment = parse(&bytes).unwrap().transport.segment;
        prop_assert_eq!((segment.timestamps(), segment.has_sack), find(&padded));
        let (_, furthest) = parse_watched(&bytes, LinkType::Ethernet);
        prop_assert!(furthest <= bytes.len() - tcp.payload);
    }
}
