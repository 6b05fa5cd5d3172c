//! Prints the round-trip times in a capture: `cargo run --features std --example read_capture -- FILE`.
//!
//! The file is a classic pcap file (draft-ietf-opsawg-pcap): a header of 24 bytes, then packets, each after a header of 16.

use std::{
    env,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
};

use pping_common::{
    bytes::Captured,
    matcher::{Matcher, Packet},
    parse::LinkType,
    rtt::Rules,
};

/// No packet has more bytes than this in a file that is a capture.
const MAX_LEN: usize = 1 << 18;

fn main() -> io::Result<()> {
    let path = env::args_os().nth(1).ok_or_else(|| io::Error::other("the name of a capture is missing"))?;
    let mut file = BufReader::new(File::open(path)?);
    let mut header = [0; 24];
    file.read_exact(&mut header)?;
    // The magic number has the byte order of the machine that captured, and says whether times are in ns or in us.
    let (is_big, tick) = match header[..4] {
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1_000),
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1_000),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
        _ => return Err(io::Error::other("this is no classic pcap file")),
    };
    let number = |bytes: [u8; 4]| if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let [.., a, b, c, d] = header;
    let link = match number([a, b, c, d]) & 0xffff {
        0 | 108 => LinkType::Loopback,
        1 => LinkType::Ethernet,
        9 => LinkType::Ppp,
        101 | 228 | 229 => LinkType::Ip,
        113 => LinkType::Cooked,
        276 => LinkType::CookedV2,
        other => return Err(io::Error::other(format!("link type {other} is not read"))),
    };
    let mut matcher = Matcher::new(Rules { include_local: true, ..Rules::UNLIMITED });
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut record, mut bytes) = ([0; 16], Vec::new());
    // The last packet may be cut off, if the capture has not been ended in order.
    while file.read_exact(&mut record).is_ok() {
        let [seconds, ticks, kept, len] =
            [0, 4, 8, 12].map(|at| number([record[at], record[at + 1], record[at + 2], record[at + 3]]));
        if kept as usize > MAX_LEN {
            return Err(io::Error::other(format!("a packet has {kept} bytes")));
        }
        bytes.resize(kept as usize, 0);
        if file.read_exact(&mut bytes).is_err() {
            break;
        }
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * tick;
        let captured = Captured { bytes: &bytes, frame_len: len.max(kept) as usize };
        let direction = link.direction(&captured);
        for rtt in matcher.packet_with(&Packet { time, interface: 0, link, direction, bytes: captured }) {
            let ms = rtt.sample.rtt as f64 / 1e6;
            writeln!(out, "{time} {:?} {ms} ms {} to {}", rtt.sample.method, rtt.source, rtt.destination)?;
        }
    }
    out.flush()
}
