//! The same once more, for whoever has a slice and time: from the RFCs, without a thought of the verifier.

mod link;
mod tunnel;

use pping_common::{
    abi::Hook,
    octets::Captured,
    parse::{Decap, Frame, Kind, LinkType, Timestamps},
};

use self::tunnel::Inside;

/// What a packet is found to be.
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
    Tcp { ports: [u16; 2], flags: u8, timestamps: Option<Timestamps> },
    Echo { id: u16, sequence: u16, is_reply: bool },
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
    let octets = captured.octets;
    let mut vlan = offloaded.to_vec();
    let start = link::network(octets, link, &mut vlan)?;
    let mut network = Network::parse(captured, start)?;
    if let Some(inside) = tunnel::inside(octets, &network, decap) {
        let start = match inside {
            Inside::Ip(start) => start,
            Inside::Ethertype(ethertype, start) => link::follow(octets, ethertype, start, &mut vlan)?,
            Inside::Other => return None,
        };
        network = Network::parse(captured, start)?;
    }
    let (transport, header_len) = network.transport(octets)?;
    let header_end = network.start + header_len;
    let found = Found {
        addresses: network.addresses,
        traffic_class: network.traffic_class,
        vlan: vlan[vlan.len().saturating_sub(4)..].to_vec(),
        payload: network.end.checked_sub(header_end)? as u32,
        transport,
    };
    Some(Packet { found, header_end })
}

/// What a cooked capture knows of the interface: whether the packet left through it, and its number.
pub(super) fn cooked(octets: &[u8], link: LinkType) -> (Option<Hook>, Option<u32>) {
    let hook = |packet_type| if packet_type == 4 { Hook::Egress } else { Hook::Ingress };
    match link {
        LinkType::Cooked => (array::<2>(octets, 0).map(|[_, packet_type]| hook(packet_type)), None),
        LinkType::CookedV2 => (
            array::<2>(octets, 10).map(|[packet_type, _]| hook(packet_type)),
            array(octets, 4).map(u32::from_be_bytes),
        ),
        _ => (None, None),
    }
}

fn array<const N: usize>(octets: &[u8], at: usize) -> Option<[u8; N]> {
    octets.get(at..at + N)?.try_into().ok()
}

fn number(octets: &[u8], at: usize) -> Option<u16> {
    array(octets, at).map(u16::from_be_bytes)
}

impl Network {
    fn parse(captured: Captured<'_>, start: usize) -> Option<Self> {
        match captured.octets.get(start)? >> 4 {
            4 => Self::parse_v4(captured, start),
            6 => Self::parse_v6(captured, start),
            _ => None,
        }
    }

    fn parse_v4(Captured { octets, frame_len }: Captured<'_>, start: usize) -> Option<Self> {
        let header: [u8; 20] = array(octets, start)?;
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
            network.skip(octets)?;
        }
        (network.start <= network.end).then_some(network)
    }

    fn parse_v6(Captured { octets, frame_len }: Captured<'_>, start: usize) -> Option<Self> {
        let header: [u8; 40] = array(octets, start)?;
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
            network.skip(octets)?;
        }
        (skipped <= 6 && network.start <= network.end).then_some(network)
    }

    /// Goes on behind an extension header.
    fn skip(&mut self, octets: &[u8]) -> Option<()> {
        let [next, len] = array(octets, self.start)?;
        let len = usize::from(len);
        let octets_of_it = match self.next_header {
            44 if number(octets, self.start + 2)? >> 3 != 0 => return None,
            44 => 8,
            51 => 4 * len + 8,
            _ => 8 * len + 8,
        };
        self.next_header = next;
        self.start += octets_of_it;
        Some(())
    }

    /// The transport header, and its length.
    fn transport(&self, octets: &[u8]) -> Option<(Transport, usize)> {
        match self.next_header {
            6 => tcp(octets, self.start),
            1 if self.is_v4 => echo(octets, self.start, [8, 0]),
            58 if !self.is_v4 => echo(octets, self.start, [128, 129]),
            _ => None,
        }
    }
}

fn tcp(octets: &[u8], at: usize) -> Option<(Transport, usize)> {
    let header: [u8; 20] = array(octets, at)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    // As far as they were captured: who needs more of them says that the frame is truncated.
    let options = octets.get(at + 20..octets.len().min(at + header_len.max(20)))?;
    let ports = [number(&header, 0)?, number(&header, 2)?];
    (header_len >= 20)
        .then(|| (Transport::Tcp { ports, flags: header[13], timestamps: timestamps(options) }, header_len))
}

/// The timestamps option among others (RFC 9293, 3.1; RFC 7323, 3.2).
fn timestamps(mut options: &[u8]) -> Option<Timestamps> {
    loop {
        options = match *options {
            [1, ref rest @ ..] => rest,
            [8, 10, ..] => {
                let value = |at| array(options, at).map(u32::from_be_bytes);
                return Some(Timestamps { tsval: value(2)?, tsecr: value(6)? });
            }
            [0 | 8, ..] | [] | [_] => return None,
            [_, len, ..] if len >= 2 => options.get(usize::from(len)..)?,
            _ => return None,
        };
    }
}

fn echo(octets: &[u8], at: usize, kinds: [u8; 2]) -> Option<(Transport, usize)> {
    let [kind, code, ..] = array::<8>(octets, at)?;
    let is_echo = kinds.contains(&kind) && code == 0;
    let (id, sequence) = (number(octets, at + 4)?, number(octets, at + 6)?);
    is_echo.then_some((Transport::Echo { id, sequence, is_reply: kind == kinds[1] }, 8))
}

impl Found {
    /// What the parser found.
    pub(super) fn of(frame: &Frame) -> Self {
        let (segment, echo) = (&frame.transport.segment, &frame.transport.echo);
        Self {
            addresses: [frame.source.to_octets(), frame.destination.to_octets()],
            traffic_class: frame.traffic_class,
            vlan: frame.vlan.identifiers().collect(),
            payload: frame.transport.payload(),
            transport: match frame.transport.kind {
                Kind::Tcp => Transport::Tcp {
                    ports: [segment.source_port, segment.destination_port],
                    flags: segment.flags.0,
                    timestamps: segment.timestamps(),
                },
                Kind::Echo => {
                    Transport::Echo { id: echo.id, sequence: echo.sequence, is_reply: echo.is_reply }
                }
            },
        }
    }
}
