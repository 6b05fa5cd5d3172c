//! Capture files, packet by packet: pcap and pcapng, plain or compressed by gzip or zstd.
//!
//! Memory is bounded whatever a file claims: blocks of up to 1 MiB, and up to 65,536 interfaces with names of up to 64
//! bytes. An invalid file is an [`Error`]; packets that cannot be used are skipped and counted ([`Skipped`]).

mod buffer;
mod compression;
mod error;
mod found;
mod interface_ids;
mod link;
mod pcap;
mod pcapng;
mod sorted;
mod time;

use std::{io::Read, sync::Arc};

pub use compression::decompress;
pub use error::{Error, FileError};
pub use pping_common::matcher::Packet;
use pping_common::{bytes::Captured, parse::LinkType};

use self::{
    buffer::Buffer,
    found::Found,
    interface_ids::InterfaceIds,
    pcap::Pcap,
    pcapng::{Block, Next, Pcapng, Skip},
    sorted::Sorter,
};

/// The length of the magic of a format, bytes.
const MAGIC: usize = 4;

/// Numbers of packets that were skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The link type of the interface is not supported.
    pub link_type: u64,
    /// There are too many interfaces.
    pub interfaces: u64,
    /// The interface has no description.
    pub undescribed: u64,
    /// The packet has no time (simple packet blocks of pcapng).
    pub timeless: u64,
}

impl Skipped {
    /// The number of packets skipped for any reason.
    pub fn total(&self) -> u64 {
        self.link_type + self.interfaces + self.undescribed + self.timeless
    }
}

/// A capture that is being read.
///
/// Only [`Capture::fill`] reads, so that the caller can flush its output before it waits for input.
pub struct Capture<R> {
    buffer: Buffer<R>,
    format: Format,
    interface_ids: InterfaceIds,
    /// Sorts the packets of all interfaces, if they count as one.
    sorter: Option<Sorter>,
    packets: u64,
    skipped: Skipped,
}

enum Format {
    /// Not enough bytes have arrived.
    Unknown,
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl<R: Read> Capture<R> {
    /// A capture in `source`, which must not be compressed: see [`decompress`].
    pub fn new(source: R) -> Self {
        Self {
            buffer: Buffer::new(source),
            format: Format::Unknown,
            interface_ids: InterfaceIds::default(),
            sorter: None,
            packets: 0,
            skipped: Skipped::default(),
        }
    }

    /// Takes all interfaces for one without a name: each direction of a flow may be at another. In which direction a packet passed
    /// one of them then says nothing. Packets are sorted by time, as far as three seconds.
    #[must_use]
    pub fn with_interfaces_joined(mut self, is_joined: bool) -> Self {
        self.sorter = is_joined.then(Sorter::default);
        self
    }

    /// The next packet among the bytes read so far; `None` if [`Capture::fill`] is needed.
    ///
    /// # Errors
    /// If the capture is invalid. It cannot be read any further.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let Some(mut sorter) = self.sorter.take() else { return self.read_packet() };
        while sorter.needs_more() {
            match self.read_packet() {
                Ok(Some(packet)) => sorter.add(&packet),
                Ok(None) => break,
                Err(error) => {
                    sorter.end(Some(error));
                }
            }
        }
        self.sorter.insert(sorter).next()
    }

    /// The next packet, in the order of the file.
    #[inline]
    fn read_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let found = loop {
            let Some(mut found) = self.find()? else { return Ok(None) };
            if found.link != LinkType::CookedV2 || self.resolve(&mut found) {
                break found;
            }
            self.skip(Skip::Interfaces);
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

    /// Reads more bytes, and waits for them. Returns false at the end of the capture.
    ///
    /// # Errors
    /// If reading fails, or the capture is empty, is truncated, or has no interface of a supported link type.
    pub fn fill(&mut self) -> Result<bool, Error> {
        let filled = self.read_more();
        let Some(sorter) = &mut self.sorter else { return filled };
        match filled {
            Ok(true) => Ok(true),
            // What waits comes before the end.
            Ok(false) => Ok(sorter.end(None)),
            Err(error) => {
                sorter.end(Some(error));
                Ok(true)
            }
        }
    }

    fn read_more(&mut self) -> Result<bool, Error> {
        if self.buffer.fill().map_err(compression::error)? {
            return Ok(true);
        }
        match &self.format {
            Format::Unknown if self.buffer.is_empty() => Err(Error::Empty),
            Format::Unknown if self.buffer.data().len() < MAGIC => Err(unknown(self.buffer.data())),
            _ if !self.buffer.is_empty() => Err(Error::Truncated),
            Format::Pcapng(Pcapng { has_supported: false, unsupported: Some(number), .. }) => {
                Err(Error::UnsupportedLinkType { number: *number })
            }
            _ => Ok(false),
        }
    }

    /// The number of packets read so far, skipped ones included.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The numbers of packets skipped so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The name of an interface, or its number in the file; `None` in a pcap file.
    pub fn interface_name(&self, id: u16) -> Option<Arc<str>> {
        if self.sorter.is_some() { None } else { self.interface_ids.name(id).cloned() }
    }

    #[inline]
    fn find(&mut self) -> Result<Option<Found>, Error> {
        loop {
            match &mut self.format {
                Format::Pcap(pcap) => return pcap.next(self.buffer.data()),
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
                        Block::Packet(found) => return Ok(Some(Found { block: len, ..found })),
                        Block::Skipped(reason) => self.skip(reason),
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

    /// Finds the id of the interface that a packet of a cooked capture passed. Returns false if there are too many.
    fn resolve(&mut self, found: &mut Found) -> bool {
        let bytes = found.bytes(self.buffer.data());
        let Some(ifindex) = found.link.interface(bytes) else { return true };
        let id = self.interface_ids.of_cooked(found.interface, ifindex);
        found.interface = id.unwrap_or(found.interface);
        id.is_some()
    }

    /// Finds out the format. Returns false until enough bytes have arrived.
    fn begin(&mut self) -> Result<bool, Error> {
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
            return Err(unknown(data));
        }
        Ok(true)
    }

    fn skip(&mut self, reason: Skip) {
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
            Skip::Undescribed => (&mut skipped.undescribed, "of interfaces without a description"),
            Skip::Timeless => (&mut skipped.timeless, "without a time"),
        };
        if *count == 0 {
            tracing::warn!("packets {what} are left out");
        }
        *count += 1;
    }
}

/// The error of a file that is no capture.
fn unknown(data: &[u8]) -> Error {
    let start: Vec<String> = data.iter().take(MAGIC).map(|byte| format!("{byte:02x}")).collect();
    Error::UnknownFormat(start.join(" "))
}
