//! A second parser, written from the RFCs with slices and without regard to the verifier. The fuzz target compares the
//! first parser with it.

mod link;
mod quic;
mod tunnel;

use pping_common::{
    bytes::Captured,
    parse::{Decap, Direction, Frame, Kind, LinkType, Timestamps},
};

use self::{quic::Quic, tunnel::Inside};

/// The content of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    addresses: [[u8; 16]; 2],
    traffic_class: u8,
    vlan: Vec<u16>,
    payload: u32,
    transport: Transport,
}

#[derive(Debug, PartialEq, Eq)]
enum Transport {
    Tcp { ports: [u16; 2], numbers: [u32; 2], flags: u8, timestamps: Option<Timestamps>, has_sack: bool },
    Dns { ports: [u16; 2], id: u16, is_response: bool, rcode: u8 },
    Echo { id: u16, sequence: u16, is_reply: bool },
    Quic { ports: [u16; 2], quic: Quic },
}

/// A packet that can be measured.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) found: Found,
    /// Where its headers end, captured or not.
    pub(super) header_end: usize,
}

/// An IP header with all its extensions.
struct Network {
    is_v4: bool,
    addresses: [[u8; 16]; 2],
    traffic_class: u8,
    next_header: u8,
    /// Where the next header begins, and where the packet ends.
    start: usize,
    end: usize,
}

pub(super) fn parse(
    captured: Captured<'_>,
    link: LinkType,
    offloaded: &[u16],
    decap: Decap,
) -> Option<Packet> {
    let bytes = captured.bytes;
    let mut vlan = offloaded.to_vec();
    let start = link::network(captured, link, &mut vlan)?;
    let mut network = Network::parse(captured, start)?;
    if let Some(inside) = tunnel::inside(bytes, &network, decap) {
        let start = match inside {
            Inside::Ip(start) => start,
            Inside::Ethertype(ethertype, start) => link::follow(captured, ethertype, start, &mut vlan)?,
            Inside::Other => return None,
        };
        network = Network::parse(captured, start)?;
        // Only one level of tunnel is parsed.
        if tunnel::inside(bytes, &network, decap).is_some() {
            return None;
        }
    }
    let (transport, header_len) = network.transport(bytes)?;
    let mut header_end = network.start + header_len;
    let mut payload = network.end.checked_sub(header_end)? as u32;
    // The length in a header may be forged: no more of a datagram counts than the frame has.
    let present = captured.frame_len.saturating_sub(header_end) as u32;
    if let Transport::Dns { .. } = transport {
        // The parser needs only these four bytes. The frame must have the whole header, even if it was not captured.
        header_end += 4;
        if payload < 12 {
            return None;
        }
    }
    if !matches!(transport, Transport::Tcp { .. }) {
        payload = payload.min(present);
    }
    let found = Found {
        addresses: network.addresses,
        traffic_class: network.traffic_class,
        vlan: vlan[vlan.len().saturating_sub(4)..].to_vec(),
        payload,
        transport,
    };
    Some(Packet { found, header_end })
}

/// Returns the direction and the interface number in the header of a cooked capture.
pub(super) fn cooked(bytes: &[u8], link: LinkType) -> (Option<Direction>, Option<u32>) {
    let direction = |packet_type| if packet_type == 4 { Direction::Egress } else { Direction::Ingress };
    match link {
        LinkType::Cooked => (array::<2>(bytes, 0).map(|[_, packet_type]| direction(packet_type)), None),
        LinkType::CookedV2 => (
            array::<2>(bytes, 10).map(|[packet_type, _]| direction(packet_type)),
            array(bytes, 4).map(u32::from_be_bytes),
        ),
        _ => (None, None),
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

impl Network {
    fn parse(captured: Captured<'_>, start: usize) -> Option<Self> {
        match captured.bytes.get(start)? >> 4 {
            4 => Self::parse_v4(captured, start),
            6 => Self::parse_v6(captured, start),
            _ => None,
        }
    }

    fn parse_v4(Captured { bytes, frame_len }: Captured<'_>, start: usize) -> Option<Self> {
        let header: [u8; 20] = array(bytes, start)?;
        let words = usize::from(header[0] & 0xf);
        let is_first_fragment = number(&header, 6)? << 3 == 0;
        if words < 5 || !is_first_fragment {
            return None;
        }
        let address = |at| {
            let mut mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
            mapped[12..].copy_from_slice(&header[at..at + 4]);
            mapped
        };
        let mut network = Self {
            is_v4: true,
            addresses: [address(12), address(16)],
            traffic_class: header[1],
            next_header: header[9],
            start: start + words * 4,
            end: match number(&header, 2)? {
                0 => frame_len,
                total => start + usize::from(total),
            },
        };
        if network.next_header == 51 {
            network.skip(bytes)?;
        }
        (network.start <= network.end).then_some(network)
    }

    fn parse_v6(Captured { bytes, frame_len }: Captured<'_>, start: usize) -> Option<Self> {
        let header: [u8; 40] = array(bytes, start)?;
        let mut network = Self {
            is_v4: false,
            addresses: [array(&header, 8)?, array(&header, 24)?],
            traffic_class: header[0] << 4 | header[1] >> 4,
            next_header: header[6],
            start: start + 40,
            end: match number(&header, 4)? {
                0 => frame_len,
                len => start + 40 + usize::from(len),
            },
        };
        let mut skipped = 0;
        while matches!(network.next_header, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140) {
            skipped += 1;
            network.skip(bytes)?;
        }
        (skipped <= 6 && network.start <= network.end).then_some(network)
    }

    /// Skips an extension header.
    fn skip(&mut self, bytes: &[u8]) -> Option<()> {
        let [next, len] = array(bytes, self.start)?;
        let len = usize::from(len);
        let bytes_of_it = match self.next_header {
            44 if number(bytes, self.start + 2)? >> 3 != 0 => return None,
            44 => 8,
            51 => 4 * len + 8,
            _ => 8 * len + 8,
        };
        self.next_header = next;
        self.start += bytes_of_it;
        Some(())
    }

    /// Returns the transport header and its length.
    fn transport(&self, bytes: &[u8]) -> Option<(Transport, usize)> {
        match self.next_header {
            6 => tcp(bytes, self.start),
            17 => dns(bytes, self.start).or_else(|| {
                let ports = [number(bytes, self.start)?, number(bytes, self.start + 2)?];
                let quic = quic::parse(bytes.get(self.start + 8..)?, self.end.checked_sub(self.start + 8)?)?;
                (!ports.contains(&53)).then_some((Transport::Quic { ports, quic }, 8))
            }),
            1 if self.is_v4 => echo(bytes, self.start, [8, 0]),
            58 if !self.is_v4 => echo(bytes, self.start, [128, 129]),
            _ => None,
        }
    }
}

fn tcp(bytes: &[u8], at: usize) -> Option<(Transport, usize)> {
    let header: [u8; 20] = array(bytes, at)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    // Only the captured options. If the parser needs more of them, it reports the frame as truncated. It reads four bytes
    // at a time, so it does not see an option that the capture cuts after a byte or two of its last four.
    let mut options = bytes.get(at + 20..bytes.len().min(at + header_len.max(20)))?.to_vec();
    options.truncate(options.len() / 4 * 4);
    options.resize(header_len.max(20) - 20, 0);
    let ports = [number(&header, 0)?, number(&header, 2)?];
    let numbers = [4, 8].map(|at| array(&header, at).map_or(0, u32::from_be_bytes));
    let (timestamps, has_sack) = find(&options);
    (header_len >= 20)
        .then_some((Transport::Tcp { ports, numbers, flags: header[13], timestamps, has_sack }, header_len))
}

/// Timestamps and SACK blocks among other options (RFC 9293, 3.1; RFC 7323, 3.2; RFC 2018, 3).
fn find(mut options: &[u8]) -> (Option<Timestamps>, bool) {
    let (mut timestamps, mut has_sack) = (None, false);
    while let Some((&kind, rest)) = options.split_first() {
        let len = match (kind, rest) {
            (0, _) | (_, []) => break,
            (1, _) => 1,
            (_, &[len, ..]) => usize::from(len),
        };
        let Some((option, rest)) = options.split_at_checked(len) else { break };
        match (kind, len) {
            (8, 10) => {
                let value = |at| array(option, at).map(u32::from_be_bytes);
                timestamps = value(2).zip(value(6)).map(|(tsval, tsecr)| Timestamps { tsval, tsecr });
            }
            (8, _) | (2.., 0 | 1) => break,
            (5, 10..) => has_sack = true,
            _ => {}
        }
        options = rest;
    }
    (timestamps, has_sack)
}

/// RFC 768, and RFC 1035, section 4.1.1. The host with port 53 is the server.
fn dns(bytes: &[u8], at: usize) -> Option<(Transport, usize)> {
    let ports = [number(bytes, at)?, number(bytes, at + 2)?];
    let [high, low, flags, more] = array(bytes, at + 8)?;
    let is_response = flags & 0x80 != 0;
    let server = if is_response { ports[0] } else { ports[1] };
    let id = u16::from_be_bytes([high, low]);
    (server == 53).then_some((Transport::Dns { ports, id, is_response, rcode: more & 0xf }, 8))
}

fn echo(bytes: &[u8], at: usize, kinds: [u8; 2]) -> Option<(Transport, usize)> {
    let [kind, code, ..] = array::<8>(bytes, at)?;
    let is_echo = kinds.contains(&kind) && code == 0;
    let (id, sequence) = (number(bytes, at + 4)?, number(bytes, at + 6)?);
    is_echo.then_some((Transport::Echo { id, sequence, is_reply: kind == kinds[1] }, 8))
}

impl Found {
    /// Converts the parser's result.
    pub(super) fn of(frame: &Frame) -> Self {
        let (segment, echo) = (&frame.transport.segment, &frame.transport.echo);
        let (source, destination) = frame.transport.ports();
        let (ports, dns) = ([source, destination], &frame.transport.datagram.dns);
        Self {
            addresses: [frame.source.to_bytes(), frame.destination.to_bytes()],
            traffic_class: frame.traffic_class,
            vlan: frame.vlan.identifiers().collect(),
            payload: frame.transport.payload(),
            transport: match frame.transport.kind {
                Kind::Tcp => Transport::Tcp {
                    ports,
                    numbers: [segment.sequence, segment.acknowledgement],
                    flags: segment.flags.0,
                    timestamps: segment.timestamps(),
                    has_sack: segment.has_sack,
                },
                Kind::Echo => {
                    Transport::Echo { id: echo.id, sequence: echo.sequence, is_reply: echo.is_reply }
                }
                Kind::Dns => {
                    Transport::Dns { ports, id: dns.id, is_response: dns.is_response, rcode: dns.rcode }
                }
                Kind::Quic => Transport::Quic { ports, quic: Quic::of(&frame.transport.datagram.quic) },
            },
        }
    }
}
