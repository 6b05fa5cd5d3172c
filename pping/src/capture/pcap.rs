//! The pcap format: a header, then packets.

use pcap_parser::{
    LegacyPcapBlock, PcapError, nom, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};
use pping_common::parse::LinkType;

use super::{Fault, buffer::LONGEST_BLOCK, link};

/// The first bytes of a file: micro- and nanoseconds in either byte order, and what some kernels of the last
/// century wrote.
pub(super) const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
];

const VERSION: u16 = 2;
/// The link type, without what is said of frame check sequences above it.
const LINK_TYPE: u32 = 0x03ff_ffff;
const SECOND: u64 = 1_000_000_000;

type Parse = for<'a> fn(&'a [u8]) -> nom::IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

/// How a file is to be read.
#[derive(Clone, Copy)]
pub(super) struct Pcap {
    parse: Parse,
    /// Nanoseconds in a unit of the fraction.
    unit: u64,
    /// What frames begin with.
    pub(super) link: LinkType,
}

/// A packet: where it is, when it was, and how long.
pub(super) struct Record {
    /// Bytes from the start of the record to the packet.
    pub(super) header: usize,
    /// Bytes of it that are there.
    pub(super) captured: usize,
    /// Bytes it had.
    pub(super) frame_len: usize,
    /// Nanoseconds since 1970.
    pub(super) time: u64,
}

impl Pcap {
    /// Reads the header: its length and what it says, or `None` when it is not all there yet.
    pub(super) fn header(data: &[u8]) -> Result<Option<(usize, Self)>, Fault> {
        let header = match parse_pcap_header(data) {
            Ok((_, header)) => header,
            Err(nom::Err::Incomplete(_)) => return Ok(None),
            Err(_) => return Err(Fault::Malformed("its header")),
        };
        if header.version_major != VERSION {
            return Err(Fault::Version(header.version_major));
        }
        let number = header.network.0 as u32 & LINK_TYPE;
        let pcap = Self {
            parse: match (header.is_modified_format(), header.is_bigendian()) {
                (true, _) => parse_pcap_frame_modified,
                (false, true) => parse_pcap_frame_be,
                (false, false) => parse_pcap_frame,
            },
            unit: if header.is_nanosecond_precision() { 1 } else { 1000 },
            link: link::of_number(number).ok_or(Fault::LinkType { number })?,
        };
        Ok(Some((header.size(), pcap)))
    }

    /// Reads a packet, or `None` when it is not all there yet.
    #[inline]
    pub(super) fn record(&self, data: &[u8]) -> Result<Option<Record>, Fault> {
        match (self.parse)(data) {
            Ok((rest, block)) => Ok(Some(Record {
                header: data.len() - rest.len() - block.data.len(),
                captured: block.data.len(),
                frame_len: block.origlen as usize,
                time: u64::from(block.ts_sec) * SECOND + u64::from(block.ts_usec) * self.unit,
            })),
            Err(nom::Err::Incomplete(nom::Needed::Size(missing))) => match data.len() + missing.get() {
                claimed if claimed > LONGEST_BLOCK => Err(Fault::TooLong(claimed as u64)),
                _ => Ok(None),
            },
            Err(nom::Err::Incomplete(nom::Needed::Unknown)) => Ok(None),
            Err(_) => Err(Fault::Malformed("a packet's header")),
        }
    }
}
