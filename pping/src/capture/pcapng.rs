//! The pcapng format (draft-ietf-opsawg-pcapng): sections of blocks.
//!
//! pcap-parser gets a block once all of it has arrived; given less, it cannot tell an incomplete block from one whose inner
//! lengths are wrong. It gets some things wrong, which are parsed here: resolutions by powers of 2, time offsets and flags
//! in big-endian files, and the obsolete packet block.

use std::borrow::Cow;

use pcap_parser::{
    InterfaceDescriptionBlock, OptionCode, PcapNGOption, nom, parse_enhancedpacketblock_be,
    parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, traits::PcapNGPacketBlock as _,
};
use pping_common::{
    bytes::Bytes as _,
    parse::{Direction, LinkType},
};

use super::{buffer::MAX_BLOCK, error::Error, found::Found, interface_ids::InterfaceIds, link, time::Clock};

/// The first bytes of each section: the type of a section header, which is the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const VERSION: u16 = 1;
/// The bytes of a block around its body: type, length, and length again at the end.
const FRAME: usize = 12;
/// The highest number of interfaces in a section; packets of others are skipped.
const MAX_INTERFACES: usize = 65_536;

/// `epb_flags`: bits 0 and 1 are the direction.
const FLAGS: OptionCode = OptionCode(2);
const NAME: OptionCode = OptionCode(2);
const RESOLUTION: OptionCode = OptionCode(9);
const OFFSET: OptionCode = OptionCode(14);

/// The section that is being read.
#[derive(Default)]
pub(super) struct Pcapng {
    is_big_endian: bool,
    interfaces: Vec<Interface>,
    /// Whether any interface of any section has a supported link type.
    pub(super) has_supported: bool,
    /// The first link type that is not supported.
    pub(super) unsupported: Option<u32>,
}

/// An interface of the section.
#[derive(Clone, Copy)]
struct Interface {
    /// `None` if there are too many interfaces.
    id: Option<u16>,
    /// The number of the link type if it is not supported.
    link: Result<LinkType, u32>,
    clock: Clock,
}

/// Why a packet is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    /// The link type of this number is not supported.
    LinkType(u32),
    /// There are too many interfaces.
    Interfaces,
    /// Its interface was not described.
    Undescribed,
    /// It has no time.
    Timeless,
}

/// A block that was read.
pub(super) enum Block {
    /// It has no packet.
    Other,
    /// Its packet is skipped.
    Skipped(Skip),
    /// A packet.
    Packet(Found),
}

/// The next block.
pub(super) enum Next {
    /// It has not arrived yet.
    Incomplete,
    /// It is not needed. Its length, bytes.
    Skip(u64),
    /// It has arrived. Its length, bytes.
    Read(usize),
}

impl Pcapng {
    /// Parses the type and length of a block.
    #[inline]
    pub(super) fn next(&mut self, data: &[u8]) -> Result<Next, Error> {
        let Some(mut number) = data.read(0).map(|bytes| self.u32(bytes)) else {
            return Ok(Next::Incomplete);
        };
        if data.starts_with(&MAGIC) {
            // The length below is in the byte order of the new section.
            match data.read(8) {
                None => return Ok(Next::Incomplete),
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => self.is_big_endian = true,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => self.is_big_endian = false,
                Some(_) => return Err(Error::Malformed("a section has an unknown byte order")),
            }
            number = SECTION_HEADER;
        }
        let Some(len) = data.read(4).map(|bytes| self.u32(bytes)) else { return Ok(Next::Incomplete) };
        if (len as usize) < FRAME || !len.is_multiple_of(4) {
            return Err(Error::Malformed("a block has an invalid length"));
        }
        match number {
            SECTION_HEADER | INTERFACE_DESCRIPTION | OBSOLETE_PACKET | ENHANCED_PACKET | SIMPLE_PACKET => {
                match len as usize {
                    len if len > MAX_BLOCK => Err(Error::TooLong(len as u64)),
                    len if len > data.len() => Ok(Next::Incomplete),
                    len => Ok(Next::Read(len)),
                }
            }
            // Name resolution, statistics, secrets, journals, custom blocks.
            _ => Ok(Next::Skip(u64::from(len))),
        }
    }

    /// Parses a block that has arrived.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8], interface_ids: &mut InterfaceIds) -> Result<Block, Error> {
        match block.read(0).map(|bytes| self.u32(bytes)) {
            Some(ENHANCED_PACKET) => self.enhanced_packet(block),
            Some(OBSOLETE_PACKET) => self.obsolete_packet(block),
            // It has neither a time nor an interface.
            Some(SIMPLE_PACKET) => Ok(Block::Skipped(Skip::Timeless)),
            Some(INTERFACE_DESCRIPTION) => self.describe(block, interface_ids),
            _ => self.begin_section(block),
        }
    }

    fn begin_section(&mut self, block: &[u8]) -> Result<Block, Error> {
        let header = whole(parse_sectionheaderblock(block), "invalid section header")?;
        if header.major_version != VERSION {
            return Err(Error::UnsupportedVersion(header.major_version));
        }
        self.interfaces.clear();
        Ok(Block::Other)
    }

    fn describe(&mut self, block: &[u8], interface_ids: &mut InterfaceIds) -> Result<Block, Error> {
        let parsed = if self.is_big_endian {
            parse_interfacedescriptionblock_be(block)
        } else {
            parse_interfacedescriptionblock_le(block)
        };
        let description: InterfaceDescriptionBlock<'_> = whole(parsed, "invalid interface description")?;
        let number = description.linktype.0 as u32;
        let link = link::of_number(number).ok_or(number);
        self.has_supported |= link.is_ok();
        if link.is_err() && self.unsupported.is_none() {
            self.unsupported = Some(number);
        }
        if self.interfaces.len() < MAX_INTERFACES {
            let option = |code| option(&description.options, code);
            let name = option(NAME).map(|bytes| String::from_utf8_lossy(bytes));
            let clock = match option(RESOLUTION).and_then(|bytes| bytes.first()) {
                Some(&resolution) => Clock::MICROSECONDS.with_resolution(resolution),
                None => Clock::MICROSECONDS,
            };
            let offset = option(OFFSET).and_then(|bytes| bytes.read(0)).map(|bytes| self.i64(bytes));
            let position = self.interfaces.len() as u32;
            let name = name.as_deref().filter(|name: &&str| !name.is_empty());
            let id = link.ok().and_then(|_| interface_ids.of_described(position, name, number));
            self.interfaces.push(Interface { id, link, clock: clock.with_offset(offset.unwrap_or(0)) });
        }
        Ok(Block::Other)
    }

    fn enhanced_packet(&self, block: &[u8]) -> Result<Block, Error> {
        const HEADER: usize = 28;
        let parsed = if self.is_big_endian {
            parse_enhancedpacketblock_be(block)
        } else {
            parse_enhancedpacketblock_le(block)
        };
        let packet = whole(parsed, "invalid packet lengths")?;
        let flags = option(&packet.options, FLAGS).and_then(|bytes| bytes.read(0)).map(|it| self.u32(it));
        let direction = match flags.unwrap_or(0) & 3 {
            1 => Some(Direction::Ingress),
            2 => Some(Direction::Egress),
            _ => None,
        };
        let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        let captured = packet.packet_data().len();
        Ok(self.packet(packet.if_id, time, (HEADER, captured, packet.origlen as usize), direction))
    }

    /// Parses the packet block from before 2004. It differs from the enhanced one in its first word.
    fn obsolete_packet(&self, block: &[u8]) -> Result<Block, Error> {
        const HEADER: usize = 28;
        const LENGTHS: Error = Error::Malformed("invalid packet lengths");
        let interface = block.read(8).ok_or(LENGTHS)?;
        let interface =
            if self.is_big_endian { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
        let word = |at| block.read(at).map(|bytes| self.u32(bytes)).ok_or(LENGTHS);
        let time = u64::from(word(12)?) << 32 | u64::from(word(16)?);
        let (captured, frame_len) = (word(20)? as usize, word(24)? as usize);
        if captured > block.len().saturating_sub(HEADER + 4) {
            return Err(LENGTHS);
        }
        Ok(self.packet(interface.into(), time, (HEADER, captured, frame_len), None))
    }

    #[inline]
    fn packet(
        &self,
        interface: u32,
        time: u64,
        (header, captured, frame_len): (usize, usize, usize),
        direction: Option<Direction>,
    ) -> Block {
        let Some(interface) = self.interfaces.get(interface as usize) else {
            let is_beyond = self.interfaces.len() == MAX_INTERFACES;
            return Block::Skipped(if is_beyond { Skip::Interfaces } else { Skip::Undescribed });
        };
        let link = match interface.link {
            Ok(link) => link,
            Err(number) => return Block::Skipped(Skip::LinkType(number)),
        };
        let Some(id) = interface.id else { return Block::Skipped(Skip::Interfaces) };
        let Some(time) = interface.clock.nanoseconds(time) else { return Block::Skipped(Skip::Timeless) };
        let block = header + captured;
        Block::Packet(Found { time, interface: id, link, direction, header, captured, block, frame_len })
    }

    #[inline]
    fn u32(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn i64(&self, bytes: [u8; 8]) -> i64 {
        if self.is_big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) }
    }
}

/// The result of parsing a whole block; `what` names it in errors.
fn whole<T, E>(parsed: nom::IResult<&[u8], T, E>, what: &'static str) -> Result<T, Error> {
    parsed.map(|(_, block)| block).map_err(|_| Error::Malformed(what))
}

/// The value of an option before the end mark.
fn option<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    let option =
        options.iter().take_while(|it| it.code != OptionCode::EndOfOpt).find(|it| it.code == code)?;
    let value: &Cow<'_, [u8]> = &option.value;
    value.get(..usize::from(option.len))
}
