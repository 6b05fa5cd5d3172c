//! The pcap format: a header, then packets.

use pcap_parser::{
    LegacyPcapBlock, PcapError, nom, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};
use pping_common::{limits::SECOND, parse::LinkType};

use super::{buffer::MAX_BLOCK, error::Error, found::Found, link};

/// The first bytes of a file: microseconds and nanoseconds in both byte orders, and the modified format of some kernels of
/// the nineties.
pub(super) const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
];

const VERSION: u16 = 2;
/// The bits of the link type; the higher ones describe frame check sequences.
const LINK_TYPE: u32 = 0x03ff_ffff;

type Parse = for<'a> fn(&'a [u8]) -> nom::IResult<&'a [u8], LegacyPcapBlock<'a>, PcapError<&'a [u8]>>;

/// The header of a file.
#[derive(Clone, Copy)]
pub(super) struct Pcap {
    parse: Parse,
    /// The unit of a timestamp's fraction, ns.
    unit: u64,
    link: LinkType,
}

impl Pcap {
    /// Parses the header. Returns its length as well; `None` until it has arrived.
    pub(super) fn header(data: &[u8]) -> Result<Option<(usize, Self)>, Error> {
        let header = match parse_pcap_header(data) {
            Ok((_, header)) => header,
            Err(nom::Err::Incomplete(_)) => return Ok(None),
            Err(_) => return Err(Error::Malformed("invalid file header")),
        };
        if header.version_major != VERSION {
            return Err(Error::UnsupportedVersion(header.version_major));
        }
        let number = header.network.0 as u32 & LINK_TYPE;
        let pcap = Self {
            parse: match (header.is_modified_format(), header.is_bigendian()) {
                (true, _) => parse_pcap_frame_modified,
                (false, true) => parse_pcap_frame_be,
                (false, false) => parse_pcap_frame,
            },
            unit: if header.is_nanosecond_precision() { 1 } else { 1000 },
            link: link::of_number(number).ok_or(Error::UnsupportedLinkType { number })?,
        };
        Ok(Some((header.size(), pcap)))
    }

    /// Finds the next packet; `None` until it has arrived.
    #[inline]
    pub(super) fn next(&self, data: &[u8]) -> Result<Option<Found>, Error> {
        match (self.parse)(data) {
            Ok((rest, packet)) => {
                let block = data.len() - rest.len();
                Ok(Some(Found {
                    time: u64::from(packet.ts_sec) * SECOND + u64::from(packet.ts_usec) * self.unit,
                    interface: 0,
                    link: self.link,
                    direction: None,
                    header: block - packet.data.len(),
                    captured: packet.data.len(),
                    block,
                    frame_len: packet.origlen as usize,
                }))
            }
            Err(nom::Err::Incomplete(nom::Needed::Size(missing))) => match data.len() + missing.get() {
                claimed if claimed > MAX_BLOCK => Err(Error::TooLong(claimed as u64)),
                _ => Ok(None),
            },
            Err(nom::Err::Incomplete(nom::Needed::Unknown)) => Ok(None),
            Err(_) => Err(Error::Malformed("invalid packet header")),
        }
    }
}
