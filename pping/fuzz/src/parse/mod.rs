//! Any bytes, on any link, through the parser.

mod oracle;
mod watched;

use pping_common::{
    bytes::Captured,
    flow::FlowKey,
    method::{Method, Methods},
    parse::{Address, Decap, Family, Frame, Ipv4, Ipv6, Kind, LinkType, Scope, Untracked, Vlan},
};

use self::watched::Watched;

/// Bytes of an input before the frame: link type, tunnels, offloaded tags, and how many bytes of the frame were not
/// captured.
pub const HEADER: usize = 7;

/// What [`oracle`] knows: all methods, and DNS on its standard port.
const SCOPE: Scope = Scope::ALL;

/// A frame, and how to parse it.
struct Case<'a> {
    link: LinkType,
    decap: Decap,
    /// Identifiers of the VLAN tags that the device removed.
    offloaded: Vec<u16>,
    captured: Captured<'a>,
}

/// Parses a frame.
///
/// # Panics
/// If a read leaves the frame, if a failed read does not end the parse, if a mask changes a value, if the result
/// depends on an earlier frame, or if the parser and [`oracle`] disagree.
pub fn check(input: &[u8]) {
    let Some(case) = decode(input) else { return };
    let watched = Watched::new(case.captured);
    let mut frame = Frame::EMPTY;
    let parsed = frame.parse(&watched, case.link, case.vlan(), case.decap, &SCOPE);
    watched.assert_reads_explain(parsed, &frame);
    assert_reads_nothing_beyond(&case);
    assert_ignores_what_was_before(&case, &frame, parsed);
    assert_agrees_with_oracle(&case, &frame, parsed);
    if parsed.is_ok() {
        match frame.family {
            Family::V4 => assert_key_is_canonical::<Ipv4>(frame),
            Family::V6 => assert_key_is_canonical::<Ipv6>(frame),
        }
    }
    let cooked = oracle::cooked(case.captured.bytes, case.link);
    assert_eq!((case.link.direction(&case.captured), case.link.interface(&case.captured)), cooked);
}

impl Case<'_> {
    fn vlan(&self) -> Vlan {
        let mut vlan = Vlan::NONE;
        self.offloaded.iter().for_each(|&identifier| vlan.push(identifier));
        vlan
    }
}

fn decode(input: &[u8]) -> Option<Case<'_>> {
    let (&[link, decap, tags, missing @ ..], bytes) = input.split_first_chunk::<HEADER>()?;
    let missing = u32::from_be_bytes(missing) as usize;
    Some(Case {
        link: LinkType::ALL[usize::from(link) % LinkType::ALL.len()],
        decap: Decap(u32::from(decap) & Decap::ALL.0),
        offloaded: (0..tags % 4).map(|position| u16::from(tags) << 4 | u16::from(position)).collect(),
        // A capture stores the length of a frame in 32 bits.
        captured: Captured { bytes, frame_len: (bytes.len() + missing).min(u32::MAX as usize) },
    })
}

/// Asserts that reads stay within the frame, for any choice of methods.
fn assert_reads_nothing_beyond(case: &Case<'_>) {
    let without_quic = Methods::ALL.without(Method::QuicSpin).without(Method::QuicHandshake);
    for methods in [without_quic, Methods::NONE] {
        let watched = Watched::new(case.captured);
        let scope = Scope::of(methods);
        let mut frame = Frame::EMPTY;
        let parsed = frame.parse(&watched, case.link, case.vlan(), case.decap, &scope);
        watched.assert_reads_explain(parsed, &frame);
    }
}

/// The kernel programs parse every frame into the same memory. A segment or an echo left there by an earlier frame must
/// have no effect.
fn assert_ignores_what_was_before(case: &Case<'_>, fresh: &Frame, parsed: Result<(), Untracked>) {
    const BEFORE: [&[u8]; 2] = [
        b"\x45\xff\0\x40\0\0\0\0\x40\x06\0\0\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x99\x99\x88\x88\0\0\0\0\0\0\0\0\
          \x80\xff\0\0\0\0\0\0\x01\x01\x08\x0a\x77\x77\x77\x77\x66\x66\x66\x66",
        b"\x6f\xf0\0\0\0\x10\x3a\x40aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb\x81\0\0\0\x55\x55\x44\x44",
    ];
    for before in BEFORE {
        let mut frame = Frame::EMPTY;
        let earlier = frame.parse(before, LinkType::Ip, Vlan::NONE, Decap::NONE, &SCOPE);
        assert_eq!(earlier, Ok(()));
        assert_eq!(frame.parse(&case.captured, case.link, case.vlan(), case.decap, &SCOPE), parsed);
        assert_eq!((frame.protocol, frame.traffic_class), (fresh.protocol, fresh.traffic_class));
        assert_eq!(frame.vlan, fresh.vlan);
        if parsed.is_err() {
            continue;
        }
        assert_eq!((frame.source, frame.destination), (fresh.source, fresh.destination));
        assert_eq!((frame.family, frame.transport.kind), (fresh.family, fresh.transport.kind));
        assert_eq!(frame.transport.ports(), fresh.transport.ports());
        assert_eq!(frame.transport.payload(), fresh.transport.payload());
        match frame.transport.kind {
            Kind::Tcp => {
                let (segment, fresh) = (&frame.transport.segment, &fresh.transport.segment);
                assert_eq!(segment.flags, fresh.flags);
                assert_eq!(segment.timestamps(), fresh.timestamps());
                assert_eq!(segment.has_sack, fresh.has_sack);
                assert_eq!(segment.window_scale, fresh.window_scale);
            }
            Kind::Dns => assert_eq!(frame.transport.datagram.dns, fresh.transport.datagram.dns),
            Kind::Quic => assert_eq!(frame.transport.datagram.quic, fresh.transport.datagram.quic),
            Kind::Echo => assert_eq!(frame.transport.echo, fresh.transport.echo),
        }
    }
}

/// Asserts that the parser finds only what the oracle finds, and finds all of it unless the capture cuts the headers.
fn assert_agrees_with_oracle(case: &Case<'_>, frame: &Frame, parsed: Result<(), Untracked>) {
    let expected = oracle::parse(case.captured, case.link, &case.offloaded, case.decap);
    let Some(packet) = expected else {
        assert!(parsed.is_err(), "found what is not there: {frame:?}");
        return;
    };
    match parsed {
        Ok(()) => assert_eq!(oracle::Found::of(frame), packet.found),
        Err(reason) => {
            let is_whole = packet.header_end <= case.captured.bytes.len();
            assert!(reason == Untracked::Truncated && !is_whole, "{reason:?}, but there is {packet:?}");
        }
    }
}

/// Asserts that both directions have the same key, and that the key has the frame's addresses.
fn assert_key_is_canonical<A: Address + Eq + std::fmt::Debug>(frame: Frame) {
    let mut back = frame;
    (back.source, back.destination) = (frame.destination, frame.source);
    let segment = &mut back.transport.segment;
    (segment.source_port, segment.destination_port) = (segment.destination_port, segment.source_port);
    let datagram = &mut back.transport.datagram;
    (datagram.source_port, datagram.destination_port) = (datagram.destination_port, datagram.source_port);
    back.transport.echo.is_reply = !frame.transport.echo.is_reply;
    let ((key, from), (same, to)) = (FlowKey::<A>::new(3, &frame), FlowKey::<A>::new(3, &back));
    assert_eq!(key, same);
    let ports = frame.transport.ports();
    let is_loop = frame.source == frame.destination && ports.0 == ports.1;
    assert!(from != to || is_loop && frame.transport.kind != Kind::Echo, "both are from {from:?}: {frame:?}");
    let mut addresses = [key.low.to_address(), key.high.to_address()];
    if (addresses[0], key.low_port) != (frame.source, ports.0) {
        addresses.reverse();
    }
    assert_eq!(addresses, [frame.source, frame.destination]);
}
