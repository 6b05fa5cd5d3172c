//! A dialogue between two hosts.

use std::mem::swap;

use super::Frame;
use crate::frames::{ACK, AUTHENTICATION, FIN, ICMP, Ip, PSH, SYN, TCP, Tcp, ethernet, icmp};

const MILLISECOND: u64 = 1_000_000;
/// When the first dialogue of a capture begins, in ns since 1970.
const BEGIN: u64 = 1_700_000_000_123_456_789;
/// The initial sequence numbers of client and server.
const FIRST: [u32; 2] = [100_000, 500_000];
/// The time between the beginnings of two dialogues, in ms.
const APART: u64 = 100;

/// An IP packet and its time.
#[derive(Clone)]
pub(super) struct TimedPacket {
    pub(super) at: u64,
    /// Whether the client sent it.
    pub(super) is_outward: bool,
    pub(super) ethertype: u16,
    pub(super) bytes: Vec<u8>,
}

impl TimedPacket {
    /// Returns the packet in a frame, with the link header that `link` builds.
    pub(super) fn frame(&self, link: impl Fn(&Self) -> Vec<u8>) -> Frame {
        let bytes = link(self);
        Frame { at: self.at, len: bytes.len(), bytes }
    }

    pub(super) fn on_ethernet(&self) -> Frame {
        self.frame(|packet| ethernet(&[], packet.ethertype, &packet.bytes))
    }
}

/// Puts all packets on Ethernet.
pub(super) fn on_ethernet(packets: impl IntoIterator<Item = TimedPacket>) -> Vec<Frame> {
    packets.into_iter().map(|packet| packet.on_ethernet()).collect()
}

/// A builder of dialogues: its methods add packets, with times in ms since the beginning.
#[derive(Clone)]
pub(super) struct Dialogue {
    ip: Ip,
    /// The client port and echo identifier, which separate it from other dialogues in a capture.
    number: u16,
    begin: u64,
    /// Builds a segment with these timestamps.
    stamped: fn(u32, u32) -> Tcp,
    has_authentication: bool,
    /// The next sequence numbers of client and server.
    next: [u32; 2],
    packets: Vec<TimedPacket>,
}

impl Dialogue {
    /// A dialogue between the hosts of an IP header. Dialogues with smaller numbers begin earlier.
    pub(super) fn new(ip: Ip, number: u16) -> Self {
        let begin = BEGIN + u64::from(number) * APART * MILLISECOND;
        Self {
            ip,
            number,
            begin,
            stamped: Tcp::stamped,
            has_authentication: false,
            next: FIRST,
            packets: Vec::new(),
        }
    }

    /// Sets the function that builds segments from TSval and TSecr.
    pub(super) fn with_segments(mut self, stamped: fn(u32, u32) -> Tcp) -> Self {
        self.stamped = stamped;
        self
    }

    /// Adds an authentication header behind each IP header.
    pub(super) fn with_authentication(mut self) -> Self {
        self.has_authentication = true;
        self
    }

    /// Adds a handshake, data and its acknowledgement: three samples.
    pub(super) fn basic(self) -> Self {
        self.client_sends(0, SYN, 0, 1000, 0)
            .server_sends(20, SYN | ACK, 0, 5000, 1000)
            .client_sends(21, ACK | PSH, 4, 1021, 5000)
            .server_sends(42, ACK, 0, 5022, 1021)
    }

    /// Adds data in the other direction, after [`Self::basic`].
    pub(super) fn answer(self) -> Self {
        self.server_sends(45, ACK | PSH, 4, 5025, 1021)
            .client_sends(46, ACK, 0, 1046, 5025)
            .client_sends(47, ACK | PSH, 4, 1047, 5025)
            .server_sends(68, ACK, 0, 5048, 1047)
    }

    /// Adds an echo request and its reply.
    pub(super) fn ping(self) -> Self {
        self.request(70, 1).reply(91, 1)
    }

    /// Adds a segment to the server with `payload` bytes.
    pub(super) fn client_sends(self, at: u64, flags: u8, payload: usize, tsval: u32, tsecr: u32) -> Self {
        self.say(at, true, flags, payload, (tsval, tsecr))
    }

    /// Adds a segment to the client with `payload` bytes.
    pub(super) fn server_sends(self, at: u64, flags: u8, payload: usize, tsval: u32, tsecr: u32) -> Self {
        self.say(at, false, flags, payload, (tsval, tsecr))
    }

    /// Adds a segment with its sender's next sequence number. It acknowledges everything that the other end sent.
    fn say(mut self, at: u64, is_outward: bool, flags: u8, payload: usize, stamps: (u32, u32)) -> Self {
        let (own, other) = if is_outward { (0, 1) } else { (1, 0) };
        let (sequence, acknowledged) = (self.next[own], self.next[other]);
        self.next[own] =
            sequence + payload as u32 + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let acknowledgement = if flags & ACK == 0 { 0 } else { acknowledged };
        let segment = Tcp { flags, sequence, acknowledgement, payload, ..(self.stamped)(stamps.0, stamps.1) };
        self.segment(at, is_outward, segment)
    }

    /// Adds any segment, with its ports replaced.
    pub(super) fn segment(self, at: u64, is_outward: bool, mut segment: Tcp) -> Self {
        segment.ports = (40_000 + self.number, 443);
        if !is_outward {
            swap(&mut segment.ports.0, &mut segment.ports.1);
        }
        self.pass(at, is_outward, TCP, &segment.bytes())
    }

    pub(super) fn request(self, at: u64, sequence: u16) -> Self {
        self.echo(at, true, sequence)
    }

    pub(super) fn reply(self, at: u64, sequence: u16) -> Self {
        self.echo(at, false, sequence)
    }

    fn echo(self, at: u64, is_request: bool, sequence: u16) -> Self {
        let (protocol, id) = (self.ip.icmp(), 100 + self.number);
        let kind = match (protocol, is_request) {
            (ICMP, true) => 8,
            (ICMP, false) => 0,
            (_, true) => 128,
            (_, false) => 129,
        };
        self.pass(at, is_request, protocol, &icmp(kind, 0, id, sequence, 8))
    }

    pub(super) fn pass(mut self, at: u64, is_outward: bool, protocol: u8, transport: &[u8]) -> Self {
        let mut ip = self.ip.clone();
        if !is_outward {
            swap(&mut ip.source, &mut ip.destination);
        }
        // Each packet adds some nanoseconds, so that a reader that drops nanoseconds fails.
        let at = self.begin + at * MILLISECOND + 137 * self.packets.len() as u64;
        let bytes = if self.has_authentication {
            ip.packet(AUTHENTICATION, &authenticated(protocol, transport))
        } else {
            ip.packet(protocol, transport)
        };
        self.packets.push(TimedPacket { at, is_outward, ethertype: ip.ethertype(), bytes });
        self
    }

    pub(super) fn packets(self) -> Vec<TimedPacket> {
        self.packets
    }

    pub(super) fn on_ethernet(self) -> Vec<Frame> {
        on_ethernet(self.packets)
    }
}

/// An authentication header with 12 bytes of integrity check (RFC 4302).
fn authenticated(protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut bytes = vec![protocol, 4, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3];
    bytes.resize(24, 0xa5);
    bytes.extend(transport);
    bytes
}
