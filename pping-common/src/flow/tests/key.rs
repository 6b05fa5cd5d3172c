//! Flow keys.

use crate::{
    flow::{Endpoint, FlowKey},
    parse::{Address, Frame, IpAddress, Ipv4, Ipv6, Kind, Transport},
    testing::{data, reply, request},
};

fn v4(last: u8) -> IpAddress {
    IpAddress::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 198, 51, 100, last])
}

fn v6(last: u8) -> IpAddress {
    IpAddress::from_bytes([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
}

fn frame(source: (IpAddress, u16), destination: (IpAddress, u16), mut transport: Transport) -> Frame {
    transport.segment.source_port = source.1;
    transport.segment.destination_port = destination.1;
    let mut frame = Frame::EMPTY;
    (frame.source, frame.destination, frame.transport) = (source.0, destination.0, transport);
    frame
}

/// Asserts that both directions of a segment find the same flow, from opposite ends.
fn assert_canonical<A: Address + PartialEq + core::fmt::Debug>(
    low: (IpAddress, u16),
    high: (IpAddress, u16),
) {
    let (key, from) = FlowKey::<A>::new(3, &frame(low, high, data(1, 2)));
    assert_eq!(from, Endpoint::Low);
    assert_eq!((key.low.to_address(), key.low_port), low);
    assert_eq!((key.high.to_address(), key.high_port), high);
    assert_eq!((key.interface, key.protocol, key.zero), (3, 6, 0));
    assert_eq!(FlowKey::<A>::new(3, &frame(high, low, data(1, 2))), (key, Endpoint::High));
}

#[test]
fn key_is_canonical_in_both_directions() {
    assert_canonical::<Ipv4>((v4(1), 50_000), (v4(2), 443));
    assert_canonical::<Ipv4>((v4(1), 443), (v4(255), 50_000));
    assert_canonical::<Ipv6>((v6(1), 50_000), (v6(2), 443));
    assert_canonical::<Ipv6>((IpAddress([1, u64::MAX]), 9), (IpAddress([2, 0]), 1));
}

#[test]
fn ports_order_the_ends_of_a_host_that_talks_to_itself() {
    assert_canonical::<Ipv4>((v4(1), 443), (v4(1), 50_000));
    assert_canonical::<Ipv6>((v6(1), 443), (v6(1), 50_000));
}

#[test]
fn every_part_of_the_key_tells_flows_apart() {
    let key = |interface, source, destination| {
        FlowKey::<Ipv4>::new(interface, &frame(source, destination, data(1, 2))).0
    };
    let one = key(3, (v4(1), 50_000), (v4(2), 443));
    assert_ne!(one, key(4, (v4(1), 50_000), (v4(2), 443)));
    assert_ne!(one, key(3, (v4(1), 50_001), (v4(2), 443)));
    assert_ne!(one, key(3, (v4(1), 50_000), (v4(2), 444)));
    assert_ne!(one, key(3, (v4(0), 50_000), (v4(2), 443)));
    assert_ne!(one, key(3, (v4(1), 50_000), (v4(3), 443)));
    // The same addresses and ports, but with the ports exchanged.
    assert_ne!(one, key(3, (v4(1), 443), (v4(2), 50_000)));
}

#[test]
fn identifier_takes_the_place_of_the_ports() {
    let echo = |id, mut transport: Transport, source, destination| {
        transport.echo.id = id;
        FlowKey::<Ipv4>::new(0, &frame((source, 1), (destination, 2), transport))
    };
    let (key, from) = echo(77, request(1), v4(1), v4(2));
    assert_eq!((key.low_port, key.high_port, key.protocol, from), (77, 77, 1, Endpoint::Low));
    assert_eq!(echo(77, reply(1), v4(2), v4(1)), (key, Endpoint::High));
    assert_eq!(echo(77, request(2), v4(1), v4(2)), (key, Endpoint::Low));
    assert_ne!(echo(78, request(1), v4(1), v4(2)).0, key);
}

#[test]
fn echo_and_segment_with_the_same_numbers_are_different_flows() {
    let segment = frame((v4(1), 77), (v4(2), 77), data(1, 2));
    let echo = frame((v4(1), 77), (v4(2), 77), request(1));
    assert_eq!((segment.transport.kind, echo.transport.kind), (Kind::Tcp, Kind::Echo));
    assert_ne!(FlowKey::<Ipv4>::new(0, &segment).0, FlowKey::<Ipv4>::new(0, &echo).0);
}

#[test]
fn host_that_pings_itself_answers_from_the_other_side() {
    for address in [v4(1), v6(1)] {
        let (asked, from) = FlowKey::<Ipv6>::new(0, &frame((address, 0), (address, 0), request(1)));
        let (answered, back) = FlowKey::<Ipv6>::new(0, &frame((address, 0), (address, 0), reply(1)));
        assert_eq!(asked, answered);
        assert_eq!((from, back), (Endpoint::Low, Endpoint::High));
    }
}

#[test]
fn address_survives_the_key() {
    assert_eq!(Ipv4::of(v4(200)).to_address(), v4(200));
    assert_eq!(Ipv6::of(v6(200)).to_address(), v6(200));
}

#[test]
fn sides_are_opposite() {
    assert_eq!((Endpoint::Low.other(), Endpoint::High.other()), (Endpoint::High, Endpoint::Low));
}

#[test]
fn key_is_found_in_memory_and_no_other() {
    fn check<A: Address>(a: IpAddress, b: IpAddress) {
        let key =
            |interface, port| FlowKey::<A>::new(interface, &frame((a, 50_000), (b, port), data(1, 2))).0;
        let mut memory = [0_u64; 5];
        // SAFETY: the words are aligned as the key is, and have room for it.
        unsafe { memory.as_mut_ptr().cast::<FlowKey<A>>().write(key(3, 443)) };
        assert!(key(3, 443).is_in(|word| memory[word]));
        assert!(!key(4, 443).is_in(|word| memory[word]) && !key(3, 444).is_in(|word| memory[word]));
        for byte in 0..size_of::<FlowKey<A>>() {
            let mut other = memory;
            other[byte / 8] ^= 1 << (byte % 8 * 8);
            assert!(!key(3, 443).is_in(|word| other[word]), "byte {byte}");
        }
    }
    check::<Ipv4>(v4(1), v4(2));
    check::<Ipv6>(v6(1), v6(2));
}
