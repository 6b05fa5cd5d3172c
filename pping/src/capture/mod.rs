//! Capture files, packet by packet: pcap and pcapng, as they are or compressed by gzip or zstd.
//!
//! Whatever a file claims, memory stays bounded: a block is held only as far as it has come in and up to 1 MiB, and
//! interfaces up to 65,536, each with 64 bytes of its name. What cannot be is a [`Fault`]; packets that cannot be
//! looked into are left out and counted ([`Skipped`]).

mod buffer;
mod compression;
mod error;
mod fault;
mod interface_ids;
mod link;
mod pcap;
mod pcapng;
mod time;

use std::{io::Read, sync::Arc};

pub use compression::undone;
pub use error::FileError;
pub use fault::Fault;
use pping_common::{abi::Direction, bytes::Captured, parse::LinkType};

use self::{
    buffer::Buffer,
    interface_ids::InterfaceIds,
    pcap::Pcap,
    pcapng::{Block, Next, Pcapng, Skip},
};

/// Bytes that a file begins with which tell its format.
const MAGIC: usize = 4;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When it was captured, ns since 1970.
    pub time: u64,
    /// The place of its interface among those of the capture.
    pub interface: u16,
    /// What it begins with.
    pub link: LinkType,
    /// Whether it was coming in or going out, where the capture says so.
    pub direction: Option<Direction>,
    /// What was captured of it.
    pub bytes: Captured<'a>,
}

/// Packets that were left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The link type of their interface is not supported.
    pub link_type: u64,
    /// Their interface is one of too many.
    pub interfaces: u64,
    /// Their interface was not described.
    pub undescribed: u64,
    /// The file does not say when they were captured (simple packet blocks of pcapng).
    pub timeless: u64,
}

impl Skipped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.link_type + self.interfaces + self.undescribed + self.timeless
    }
}

/// A capture that is being read.
///
/// Packets come out of what was read before, and only [`Capture::fill`] reads: whoever has something to do before
/// a read that may take long knows when to do it.
pub struct Capture<R> {
    buffer: Buffer<R>,
    format: Format,
    interface_ids: InterfaceIds,
    packets: u64,
    skipped: Skipped,
}

enum Format {
    /// Nothing was read yet.
    Unknown,
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A packet that is there as a whole, and where in its block.
struct Found {
    time: u64,
    interface: u16,
    link: LinkType,
    direction: Option<Direction>,
    /// Bytes of the block before the packet, those of the packet that were captured, and all of the block.
    header: usize,
    captured: usize,
    block: usize,
    frame_len: usize,
}

impl Found {
    /// The packet in its block.
    #[inline]
    fn bytes<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        block.get(self.header..self.header + self.captured).unwrap_or_default()
    }
}

impl<R: Read> Capture<R> {
    /// A capture in `source`, with nothing read yet. It is not to be compressed: see [`undone`].
    pub fn new(source: R) -> Self {
        Self {
            buffer: Buffer::new(source),
            format: Format::Unknown,
            interface_ids: InterfaceIds::default(),
            packets: 0,
            skipped: Skipped::default(),
        }
    }

    /// The next packet of what was read; `None` when [`Capture::fill`] is due.
    ///
    /// # Errors
    /// What is wrong with the capture. Nothing can be read of it beyond that.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Fault> {
        let found = loop {
            let Some(mut found) = self.find()? else { return Ok(None) };
            if found.link != LinkType::CookedV2 || self.resolve(&mut found) {
                break found;
            }
            self.leave_out(Skip::Interfaces);
            self.buffer.take(found.block);
        };
        self.packets += 1;
        let bytes = found.bytes(self.buffer.take(found.block));
        Ok(Some(Packet {
            time: found.time,
            interface: found.interface,
            link: found.link,
            direction: found.link.direction(bytes).or(found.direction),
            bytes: Captured { bytes, frame_len: found.frame_len.max(bytes.len()) },
        }))
    }

    /// Reads more, waiting for it if need be; `false` at the end of the capture.
    ///
    /// # Errors
    /// What the source says, and [`Fault::CutShort`] when it ends in the middle of something.
    pub fn fill(&mut self) -> Result<bool, Fault> {
        if self.buffer.fill().map_err(compression::fault)? {
            return Ok(true);
        }
        match &self.format {
            Format::Unknown if self.buffer.is_empty() => Err(Fault::Empty),
            Format::Unknown if self.buffer.data().len() < MAGIC => Err(foreign(self.buffer.data())),
            _ if !self.buffer.is_empty() => Err(Fault::CutShort),
            Format::Pcapng(Pcapng { has_usable: false, unusable: Some(number), .. }) => {
                Err(Fault::LinkType { number: *number })
            }
            _ => Ok(false),
        }
    }

    /// Packets read so far, with those that were left out.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets left out so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The name of an interface: that of the file, else its number there. A pcap file has neither.
    pub fn interface_name(&self, id: u16) -> Option<Arc<str>> {
        self.interface_ids.name(id).cloned()
    }

    #[inline]
    fn find(&mut self) -> Result<Option<Found>, Fault> {
        loop {
            match &mut self.format {
                Format::Pcap(pcap) => {
                    let Some(record) = pcap.record(self.buffer.data())? else { return Ok(None) };
                    return Ok(Some(Found {
                        time: record.time,
                        interface: 0,
                        link: pcap.link,
                        direction: None,
                        header: record.header,
                        captured: record.captured,
                        block: record.header + record.captured,
                        frame_len: record.frame_len,
                    }));
                }
                Format::Pcapng(pcapng) => {
                    let data = self.buffer.data();
                    let len = match pcapng.next(data)? {
                        Next::Incomplete => return Ok(None),
                        Next::Skip(len) => {
                            self.buffer.skip(len);
                            continue;
                        }
                        Next::Read(len) => len,
                    };
                    match pcapng.read(data.get(..len).unwrap_or_default(), &mut self.interface_ids)? {
                        Block::Packet(record) => {
                            return Ok(Some(Found {
                                time: record.time,
                                interface: record.interface_id,
                                link: record.link,
                                direction: record.direction,
                                header: record.header,
                                captured: record.captured,
                                block: len,
                                frame_len: record.frame_len,
                            }));
                        }
                        Block::Skipped(reason) => self.leave_out(reason),
                        Block::Other => {}
                    }
                    self.buffer.take(len);
                }
                Format::Unknown => {
                    if !self.begin()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Finds the place of the interface that a packet of a cooked capture passed; `false` when there are too many.
    fn resolve(&mut self, found: &mut Found) -> bool {
        let bytes = found.bytes(self.buffer.data());
        let Some(ifindex) = found.link.interface(bytes) else { return true };
        let id = self.interface_ids.of_cooked(found.interface, ifindex);
        found.interface = id.unwrap_or(found.interface);
        id.is_some()
    }

    /// Finds out what the file is; `false` when it is too early to tell.
    fn begin(&mut self) -> Result<bool, Fault> {
        let data = self.buffer.data();
        let Some(magic) = data.first_chunk::<MAGIC>() else { return Ok(false) };
        if *magic == pcapng::MAGIC {
            self.format = Format::Pcapng(Pcapng::default());
        } else if pcap::MAGICS.contains(magic) {
            let Some((len, pcap)) = Pcap::header(data)? else { return Ok(false) };
            self.buffer.take(len);
            self.interface_ids.of_only();
            self.format = Format::Pcap(pcap);
        } else {
            return Err(foreign(data));
        }
        Ok(true)
    }

    fn leave_out(&mut self, reason: Skip) {
        self.packets += 1;
        let skipped = &mut self.skipped;
        let (count, what) = match reason {
            Skip::LinkType(number) => {
                if skipped.link_type == 0 {
                    let name = link::name(number);
                    tracing::warn!("packets of link type {number}{name} are left out; {}", link::SUPPORTED);
                }
                skipped.link_type += 1;
                return;
            }
            Skip::Interfaces => (&mut skipped.interfaces, "of interfaces beyond the first 65536"),
            Skip::Undescribed => (&mut skipped.undescribed, "of interfaces that are not described"),
            Skip::Timeless => {
                (&mut skipped.timeless, "of which the file does not say when they were captured")
            }
        };
        if *count == 0 {
            tracing::warn!("packets {what} are left out");
        }
        *count += 1;
    }
}

/// What a file begins with that is no capture.
fn foreign(data: &[u8]) -> Fault {
    let start: Vec<String> = data.iter().take(MAGIC).map(|byte| format!("{byte:02x}")).collect();
    Fault::Foreign(start.join(" "))
}
