//! Packets of one flow, as Linux sends them.

use std::ops::Range;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
const PORTS: (u16, u16) = (40_000, 443);

const CLIENT_V6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const SERVER_V6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;

/// A segment from client to server with timestamps and `payload` bytes.
pub(crate) fn tcp(tsval: u32, tsecr: u32, payload: usize) -> Vec<u8> {
    segment((CLIENT, SERVER), PORTS, Some((tsval, tsecr)), payload)
}

/// The same over IPv6.
pub(crate) fn tcp_v6(tsval: u32, tsecr: u32, payload: usize) -> Vec<u8> {
    ip_v6(TCP, &tcp_segment(PORTS, Some((tsval, tsecr)), payload))
}

/// Packet `number` of connection `flow`: in turn, two segments of the server and the client's two ACKs for them. Each
/// round is a tick of the timestamps' clocks.
pub(crate) fn of_connection(flow: u16, number: u32) -> Vec<u8> {
    const PAYLOAD: u32 = 100;
    /// The sequence number and the acknowledgment number.
    const NUMBERS: Range<usize> = 38..46;
    let (pair, tick, sent) = (number / 2, number / 4 + 1, number / 4 * 2 + number % 2);
    let [high, low] = flow.to_be_bytes();
    let client = [10, 1, high, low];
    let (mut frame, numbers) = if pair % 2 == 0 {
        let timestamps = Some((tick, 1000 + tick - 1));
        let ports = (PORTS.1, PORTS.0);
        (segment((SERVER, client), ports, timestamps, PAYLOAD as usize), [1 + sent * PAYLOAD, 1])
    } else {
        (segment((client, SERVER), PORTS, Some((1000 + tick, tick)), 0), [1, 1 + (sent + 1) * PAYLOAD])
    };
    frame[NUMBERS].copy_from_slice(&numbers.map(u32::to_be_bytes).concat());
    frame
}

/// A segment of a connection in each direction, which [`stamp`] makes echo one another.
pub(crate) fn volley(connection: u16) -> [Vec<u8>; 2] {
    let [high, low] = connection.to_be_bytes();
    let client = [10, 1, high, low];
    [
        segment((client, SERVER), PORTS, Some((1, 1)), 100),
        segment((SERVER, client), (PORTS.1, PORTS.0), Some((1, 1)), 100),
    ]
}

/// Writes a segment's timestamps.
pub(crate) fn stamp(segment: &mut [u8], tsval: u32, tsecr: u32) {
    const TIMESTAMPS: usize = 14 + 20 + 20 + 4;
    segment[TIMESTAMPS..][..4].copy_from_slice(&tsval.to_be_bytes());
    segment[TIMESTAMPS + 4..][..4].copy_from_slice(&tsecr.to_be_bytes());
}

/// A segment without timestamps.
pub(crate) fn tcp_without_timestamps() -> Vec<u8> {
    segment((CLIENT, SERVER), PORTS, None, 1400)
}

/// A UDP datagram.
pub(crate) fn udp() -> Vec<u8> {
    let mut datagram = vec![0; 8 + 1200];
    datagram[..4].copy_from_slice(&[0x9c, 0x40, 0x01, 0xbb]);
    datagram[4..6].copy_from_slice(&1208_u16.to_be_bytes());
    ip((CLIENT, SERVER), UDP, &datagram)
}

/// A frame in a VXLAN tunnel.
pub(crate) fn in_vxlan(frame: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0xc0, 0, 0x12, 0xb5];
    datagram.extend((16 + frame.len() as u16).to_be_bytes());
    datagram.extend([0, 0, 0x08, 0, 0, 0, 0, 0, 42, 0]);
    datagram.extend(frame);
    ip((SERVER, CLIENT), UDP, &datagram)
}

/// An ICMP echo request.
pub(crate) fn echo_request() -> Vec<u8> {
    echo((CLIENT, SERVER), 8)
}

/// An ICMP echo reply.
pub(crate) fn echo_reply() -> Vec<u8> {
    echo((SERVER, CLIENT), 0)
}

fn echo(addresses: ([u8; 4], [u8; 4]), kind: u8) -> Vec<u8> {
    let mut echo = vec![kind, 0, 0, 0, 0x12, 0x34, 0, 1];
    echo.extend([0; 56]);
    ip(addresses, ICMP, &echo)
}

/// A client's SYN, without timestamps.
pub(crate) fn syn() -> Vec<u8> {
    flagged(segment((CLIENT, SERVER), PORTS, None, 0), 0x02)
}

/// A segment of the server with these flags, without payload.
pub(crate) fn tcp_answer(has_timestamps: bool, flags: u8) -> Vec<u8> {
    let timestamps = has_timestamps.then_some((7, 1));
    flagged(segment((SERVER, CLIENT), (PORTS.1, PORTS.0), timestamps, 0), flags)
}

/// An ACK of the server with timestamps over IPv6, without payload.
pub(crate) fn tcp_answer_v6() -> Vec<u8> {
    let mut frame = ip_v6(TCP, &tcp_segment((PORTS.1, PORTS.0), Some((7, 1)), 0));
    let (client, server) = (14 + 8..14 + 24, 14 + 24..14 + 40);
    frame[client].copy_from_slice(&SERVER_V6);
    frame[server].copy_from_slice(&CLIENT_V6);
    frame
}

fn flagged(mut frame: Vec<u8>, flags: u8) -> Vec<u8> {
    frame[14 + 20 + 13] = flags;
    frame
}

/// A query for the addresses of a name, or the response to it.
pub(crate) fn dns(is_response: bool) -> Vec<u8> {
    let mut message = vec![0, 0, if is_response { 0x81 } else { 0x01 }, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend(b"\x03www\x07example\x03net\0\0\x01\0\x01");
    datagram(!is_response, 53, &message)
}

/// An Initial of a QUIC client, or of the server.
pub(crate) fn quic_initial(is_of_client: bool) -> Vec<u8> {
    let (destination, source) =
        if is_of_client { (b"8 bytes.", b"client's") } else { (b"client's", b"server's") };
    let mut packet = vec![0xc3, 0, 0, 0, 1, 8];
    packet.extend(destination);
    packet.push(8);
    packet.extend(source);
    packet.resize(1200, 0);
    datagram(is_of_client, PORTS.1, &packet)
}

/// A QUIC packet with a short header.
pub(crate) fn quic_short(is_of_client: bool) -> Vec<u8> {
    let mut packet = vec![0x40];
    packet.resize(1200, 0);
    datagram(is_of_client, PORTS.1, &packet)
}

fn datagram(is_of_client: bool, port: u16, payload: &[u8]) -> Vec<u8> {
    let (addresses, ports) =
        if is_of_client { ((CLIENT, SERVER), [PORTS.0, port]) } else { ((SERVER, CLIENT), [port, PORTS.0]) };
    let mut datagram = ports.map(u16::to_be_bytes).concat();
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    ip(addresses, UDP, &datagram)
}

/// Writes the checksum of the IPv4 header, which routers check (RFC 791, section 3.1).
pub(crate) fn fill_in_checksum(frame: &mut [u8]) {
    const HEADER: Range<usize> = 14..34;
    const CHECKSUM: Range<usize> = 24..26;
    frame[CHECKSUM].fill(0);
    let words = frame[HEADER].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    frame[CHECKSUM].copy_from_slice(&(!(folded + (folded >> 16)) as u16).to_be_bytes());
}

fn segment(
    addresses: ([u8; 4], [u8; 4]),
    ports: (u16, u16),
    timestamps: Option<(u32, u32)>,
    payload: usize,
) -> Vec<u8> {
    ip(addresses, TCP, &tcp_segment(ports, timestamps, payload))
}

fn tcp_segment(ports: (u16, u16), timestamps: Option<(u32, u32)>, payload: usize) -> Vec<u8> {
    let words = if timestamps.is_some() { 8 } else { 5 };
    let mut segment = Vec::new();
    segment.extend(ports.0.to_be_bytes());
    segment.extend(ports.1.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0, 0, 0, 1, words << 4, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    if let Some((tsval, tsecr)) = timestamps {
        segment.extend([1, 1, 8, 10]);
        segment.extend(tsval.to_be_bytes());
        segment.extend(tsecr.to_be_bytes());
    }
    segment.resize(segment.len() + payload, 0);
    segment
}

fn ip(addresses: ([u8; 4], [u8; 4]), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((20 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend(addresses.0);
    frame.extend(addresses.1);
    frame.extend(payload);
    frame
}

fn ip_v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend([protocol, 64]);
    frame.extend(CLIENT_V6);
    frame.extend(SERVER_V6);
    frame.extend(payload);
    frame
}
