//! Captures of one short conversation, in every format.

use pping_fuzz::capture::HEADER;

use crate::{
    Seed,
    headers::{IPV4, TCP, echo, ethernet, returned, tcp, v4},
    packed::{gzip, zstd},
};

const SECOND: u64 = 1_000_000_000;
/// When the conversation begins, in ns since 1970.
const START: u64 = 1_700_000_000 * SECOND;

const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const COOKED_V2: u32 = 276;

/// The byte order of numbers.
#[derive(Clone, Copy)]
enum Order {
    Big,
    Little,
}

use Order::{Big, Little};

impl Order {
    fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Big => number.to_be_bytes(),
            Little => number.to_le_bytes(),
        }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Big => number.to_be_bytes(),
            Little => number.to_le_bytes(),
        }
    }
}

pub(crate) fn seeds() -> Vec<Seed> {
    let micro = pcap(Little, 0xa1b2_c3d4, 1_000, RAW, &conversation());
    let section = pcapng(Little);
    let mut claims = micro.clone();
    claims[32..36].fill(0xff);
    let mut all = vec![
        ("pcap-nano", pcap(Little, 0xa1b2_3c4d, 1, RAW, &conversation())),
        ("pcap-big-endian", pcap(Big, 0xa1b2_c3d4, 1_000, RAW, &conversation())),
        ("pcap-nano-big-endian", pcap(Big, 0xa1b2_3c4d, 1, RAW, &conversation())),
        ("pcap-ethernet", pcap(Little, 0xa1b2_c3d4, 1_000, ETHERNET, &on_ethernet())),
        ("pcap-cooked", pcap(Little, 0xa1b2_c3d4, 1_000, COOKED_V2, &cooked())),
        ("pcap-unsupported", pcap(Little, 0xa1b2_c3d4, 1_000, 105, &conversation())),
        ("pcap-empty", micro[..24].to_vec()),
        ("pcap-cut-short", micro[..micro.len() - 9].to_vec()),
        ("pcap-claims-4-gib", claims),
        ("pcap-gzip", gzip(&micro)),
        ("pcap-zstd", zstd(&micro)),
        ("pcapng-big-endian", pcapng(Big)),
        ("pcapng-two-sections", [pcapng(Big), section.clone()].concat()),
        ("pcapng-gzip-twice", [gzip(&section), gzip(&section)].concat()),
        ("pcapng-zstd", zstd(&section)),
        ("pcapng-odd-blocks", odd_blocks()),
        ("pcapng-clocks", clocks()),
        (
            "pcapng-claims-4-gib",
            [section_header(Little), block(Little, 6, &[])[..4].to_vec(), vec![0xfc; 8]].concat(),
        ),
        ("gzip-cut-short", gzip(&micro)[..100].to_vec()),
        ("bzip2", b"BZh91AY&SY".to_vec()),
        ("pcap", micro),
        ("pcapng", section),
    ];
    let mut seeds: Vec<Seed> = Vec::new();
    for (position, (name, bytes)) in all.drain(..).enumerate() {
        let header = [position as u8, (position / 8) as u8];
        assert_eq!(header.len(), HEADER);
        seeds.push((name.to_owned(), [&header[..], &bytes].concat()));
    }
    seeds
}

/// Returns the packets of a conversation with their times.
fn conversation() -> Vec<(u64, Vec<u8>)> {
    let segment = |flags, tsval: u32, tsecr: u32| {
        let options = [&[1, 1, 8, 10][..], &tsval.to_be_bytes(), &tsecr.to_be_bytes()].concat();
        v4(&[], TCP, &tcp(flags, &options))
    };
    let request = v4(&[], 1, &echo(8));
    let mut reply = request[..12].to_vec();
    reply.extend([&request[16..20], &request[12..16], &[0], &request[21..]].concat());
    let packets = [
        segment(0x02, 10, 0),
        returned(&segment(0x12, 70, 10)),
        segment(0x10, 11, 70),
        request,
        returned(&segment(0x18, 71, 11)),
        reply,
        segment(0x11, 12, 71),
        returned(&segment(0x11, 72, 12)),
    ];
    let times = (0..).map(|position| START + position * 20_000_000);
    times.zip(packets).collect()
}

fn on_ethernet() -> Vec<(u64, Vec<u8>)> {
    let tags = [(0x8100, 42)];
    conversation().into_iter().map(|(time, packet)| (time, ethernet(&tags, IPV4, &packet))).collect()
}

/// Puts the conversation on two interfaces in turn, in both directions.
fn cooked() -> Vec<(u64, Vec<u8>)> {
    let header = |position: usize| {
        let (interface, packet_type) =
            ((position / 2 % 2) as u8, if position.is_multiple_of(2) { 4 } else { 0 });
        [8, 0, 0, 0, 0, 0, 0, interface, 0, 1, packet_type, 6, 2, 0, 0, 0, 0, 1, 0, 0]
    };
    let packets = conversation().into_iter().enumerate();
    packets.map(|(position, (time, packet))| (time, [&header(position)[..], &packet].concat())).collect()
}

/// Builds a pcap file whose fractions of seconds count units of `unit` ns.
fn pcap(order: Order, magic: u32, unit: u64, link_type: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = order.u32(magic).to_vec();
    file.extend([order.u16(2), order.u16(4)].concat());
    file.extend([0, 0, 65_535, link_type].map(|number| order.u32(number)).concat());
    for (time, packet) in packets {
        let len = packet.len() as u32;
        let words = [(time / SECOND) as u32, (time % SECOND / unit) as u32, len, len];
        file.extend(words.map(|number| order.u32(number)).concat());
        file.extend(packet);
    }
    file
}

fn block(order: Order, number: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let len = order.u32(12 + padded as u32);
    [&order.u32(number)[..], &len, body, &vec![0; padded - body.len()], &len].concat()
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    [&order.u16(code)[..], &order.u16(value.len() as u16), value, &padding].concat()
}

fn section_header(order: Order) -> Vec<u8> {
    let version = [order.u16(1), order.u16(0)].concat();
    block(order, 0x0a0d_0d0a, &[&order.u32(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat())
}

fn interface(order: Order, link_type: u32, options: &[u8]) -> Vec<u8> {
    block(order, 1, &[&order.u16(link_type as u16)[..], &[0; 2], &order.u32(0), options, &[0; 4]].concat())
}

/// Builds an enhanced packet block, or with `number` 2 the obsolete packet block from before 2004.
fn packet(order: Order, number: u32, interface: u32, time: u64, bytes: &[u8], options: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u32;
    let interface = if number == 2 {
        [order.u16(interface as u16), order.u16(0)].concat()
    } else {
        order.u32(interface).to_vec()
    };
    let words = [(time >> 32) as u32, time as u32, len, len].map(|number| order.u32(number)).concat();
    let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
    block(order, number, &[&interface[..], &words, bytes, &padding, options].concat())
}

/// Builds the conversation on an interface with a name, nanoseconds and directions.
fn pcapng(order: Order) -> Vec<u8> {
    let described = [option(order, 2, b"wan0"), option(order, 9, &[9])].concat();
    let mut file = [section_header(order), interface(order, RAW, &described)].concat();
    for (position, (time, bytes)) in conversation().into_iter().enumerate() {
        let flags = option(order, 2, &order.u32(1 + position as u32 % 2));
        file.extend(packet(order, 6, 0, time, &bytes, &[&flags[..], &[0; 4]].concat()));
    }
    file
}

/// Builds packets that cannot be measured, an obsolete packet block, a packet from an hour before, and blocks without
/// packets.
fn odd_blocks() -> Vec<u8> {
    let order = Little;
    let micro = START / 1_000;
    let (_, first) = &conversation()[0];
    let simple = block(order, 3, &[&order.u32(first.len() as u32)[..], first].concat());
    [
        section_header(order),
        packet(order, 6, 0, micro, first, &[]),
        interface(order, 105, &[]),
        interface(order, RAW, &[]),
        simple,
        packet(order, 6, 0, micro, first, &[]),
        packet(order, 6, 1, micro, first, &[]),
        packet(order, 2, 1, micro + 20_000, &returned(first), &[]),
        packet(order, 6, 9, micro, first, &[]),
        block(order, 4, &[0; 8]),
        block(order, 5, &[0; 12]),
        block(order, 0x0bad, b"whatever"),
        packet(order, 6, 1, micro - 3_600_000_000, first, &[]),
    ]
    .concat()
}

/// Builds one interface for each time resolution.
fn clocks() -> Vec<u8> {
    let order = Little;
    let mut file = section_header(order);
    let offset = option(order, 14, &5_i64.to_le_bytes());
    for resolution in [0, 3, 6, 9, 12, 127, 0x80, 0x94, 0xff] {
        let options = [option(order, 9, &[resolution]), offset.clone()].concat();
        file.extend(interface(order, RAW, &options));
    }
    for (position, (time, bytes)) in conversation().into_iter().enumerate() {
        file.extend(packet(order, 6, position as u32, time, &bytes, &[]));
    }
    file
}
