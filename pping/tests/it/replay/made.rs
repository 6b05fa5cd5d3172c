//! Captures built byte by byte.

/// When the captures begin, in ns since 1970; not a whole second.
pub(crate) const START: u64 = 1_700_000_007_123_456_789;
pub(super) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;

pub(super) const ETHERNET: u32 = 1;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// The server of a connection, unless a test says otherwise.
const SERVER: [u8; 4] = [198, 51, 100, 2];
/// The payload of each data segment, in bytes.
const PAYLOAD: u16 = 100;

/// A packet, and when it was captured in ns since 1970.
#[derive(Clone)]
pub(crate) struct Packet {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A connection with timestamps: a SYN at `start`, then a data segment each second, each answered after `rtt`. It gives
/// `segments` samples of `rtt`, and one of the SYN-ACK.
pub(crate) fn connection(client_port: u16, start: u64, segments: u32, rtt: u64) -> Vec<Packet> {
    connection_to(SERVER, client_port, (start, SECOND), segments, rtt)
}

/// Like [`connection`], with any server and any time between segments.
pub(super) fn connection_to(
    server: [u8; 4],
    client_port: u16,
    (start, gap): (u64, u64),
    segments: u32,
    rtt: u64,
) -> Vec<Packet> {
    let segment = |from_client, flags, numbers, stamps, payload| {
        segment((client_port, server), from_client, flags, numbers, stamps, payload)
    };
    let mut packets = Vec::new();
    for number in 0..segments {
        let at = start + u64::from(number) * gap;
        let (flags, payload) = if number == 0 { (SYN, 0) } else { (ACK, PAYLOAD) };
        let tick = 100 + number;
        // The sequence numbers that client and server have used before, apart from the SYN.
        let sent = 1_001 + u32::from(PAYLOAD) * number.saturating_sub(1);
        let [request, reply] = if number == 0 {
            [(1_000, 0), (5_000, 1_001)]
        } else {
            [(sent, 5_001), (5_001, sent + u32::from(PAYLOAD))]
        };
        let stamps = (tick, 900 + number - number.min(1));
        packets.push(Packet { at, bytes: segment(true, flags, request, stamps, payload) });
        let bytes = segment(false, flags | ACK, reply, (900 + number, tick), 0);
        packets.push(Packet { at: at + rtt, bytes });
    }
    packets.sort_by_key(|packet| packet.at);
    packets
}

/// A TCP segment with timestamps between 192.0.2.1 and a server, in an Ethernet frame.
fn segment(
    (client_port, server): (u16, [u8; 4]),
    from_client: bool,
    flags: u8,
    (sequence, acknowledgement): (u32, u32),
    (tsval, tsecr): (u32, u32),
    payload: u16,
) -> Vec<u8> {
    let ends = [([192, 0, 2, 1], client_port), (server, 443)];
    let [from, to] = if from_client { ends } else { [ends[1], ends[0]] };
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0x00]);
    frame.extend((52 + payload).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.0);
    frame.extend(to.0);
    frame.extend(from.1.to_be_bytes());
    frame.extend(to.1.to_be_bytes());
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledgement.to_be_bytes());
    frame.extend([0x80, flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
    frame.extend(tsval.to_be_bytes());
    frame.extend(tsecr.to_be_bytes());
    frame.resize(frame.len() + usize::from(payload), 0);
    frame
}

/// The header of a pcap file with times in ns.
pub(super) fn pcap_header(link_type: u32) -> Vec<u8> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    // A snap length of 0 means no limit.
    file.extend([0; 4]);
    file.extend(link_type.to_le_bytes());
    file
}

/// A packet in a pcap file.
pub(super) fn pcap_packet(packet: &Packet) -> Vec<u8> {
    let len = packet.bytes.len() as u32;
    let times = [(packet.at / SECOND) as u32, (packet.at % SECOND) as u32];
    let words = [times[0], times[1], len, len];
    words.into_iter().flat_map(u32::to_le_bytes).chain(packet.bytes.iter().copied()).collect()
}

/// A pcap file.
pub(super) fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file = pcap_header(ETHERNET);
    file.extend(packets.iter().flat_map(pcap_packet));
    file
}

/// A block of a pcapng file.
pub(super) fn block(number: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let len = (12 + body.len() + padding) as u32;
    let mut block = [number.to_le_bytes(), len.to_le_bytes()].concat();
    block.extend(body);
    block.extend(&[0; 3][..padding]);
    block.extend(len.to_le_bytes());
    block
}

/// The first block of a pcapng section.
pub(super) fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])
}

/// An interface description with times in ns, and with a name unless `name` is empty.
pub(super) fn interface(link_type: u16, name: &str) -> Vec<u8> {
    let mut body = link_type.to_le_bytes().to_vec();
    body.extend([0; 6]);
    if !name.is_empty() {
        body.extend([2, 0, name.len() as u8, 0]);
        body.extend(name.as_bytes());
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    block(1, &body)
}

/// A packet in a pcapng file, with the flags option unless `flags` is 0.
pub(super) fn enhanced_packet(interface: u32, packet: &Packet, flags: u32) -> Vec<u8> {
    let len = packet.bytes.len() as u32;
    let words = [interface, (packet.at >> 32) as u32, packet.at as u32, len, len];
    let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    body.extend(&packet.bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    if flags != 0 {
        body.extend([2, 0, 4, 0]);
        body.extend(flags.to_le_bytes());
        body.extend([0; 4]);
    }
    block(6, &body)
}
