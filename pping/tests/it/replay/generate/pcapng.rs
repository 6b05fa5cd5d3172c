//! Blocks of the newer capture format (draft-ietf-opsawg-pcapng).

use super::{Frame, pcap::Endian};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// A custom block, which begins with the 32-bit number of its owner.
const CUSTOM: u32 = 0x0bad;
const UNKNOWN: u32 = 0x0042_4242;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;

/// The resolution of an interface's times.
#[derive(Clone, Copy)]
pub(super) enum Resolution {
    /// The option is absent, which means microseconds.
    Default,
    /// The negative exponent of a power of 10, in seconds.
    Ten(u8),
    /// The negative exponent of a power of 2, in seconds.
    Two(u8),
}

impl Resolution {
    fn count(self, nanoseconds: u64) -> u64 {
        let per_second = match self {
            Self::Default => 1_000_000,
            Self::Ten(power) => 10_u128.pow(power.into()),
            Self::Two(power) => 1 << power,
        };
        (u128::from(nanoseconds) * per_second / 1_000_000_000) as u64
    }
}

/// An interface of a section.
#[derive(Clone, Copy)]
pub(super) struct Interface {
    pub(super) link_type: u16,
    pub(super) name: Option<&'static str>,
    pub(super) resolution: Resolution,
    /// Seconds added to its times.
    pub(super) offset: u64,
}

/// A builder of sections.
pub(super) struct Section {
    endian: Endian,
    interfaces: Vec<Interface>,
    bytes: Vec<u8>,
}

impl Section {
    pub(super) fn new(endian: Endian) -> Self {
        let mut section = Self { endian, interfaces: Vec::new(), bytes: Vec::new() };
        let mut body = Vec::from(endian.u32(0x1a2b_3c4d));
        body.extend([endian.u16(1), endian.u16(0)].concat());
        // The section length is unspecified.
        body.extend(endian.u64(u64::MAX));
        body.extend(section.option(4, b"the generator of golden captures"));
        body.extend(section.option(END_OF_OPTIONS, &[]));
        section.block(SECTION_HEADER, &body);
        section
    }

    pub(super) fn interface(&mut self, interface: Interface) {
        let mut body = [self.endian.u16(interface.link_type), [0, 0]].concat();
        body.extend(self.endian.u32(0x0004_0000));
        if let Some(name) = interface.name {
            body.extend(self.option(IF_NAME, name.as_bytes()));
        }
        match interface.resolution {
            Resolution::Default => {}
            Resolution::Ten(power) => body.extend(self.option(IF_TSRESOL, &[power])),
            Resolution::Two(power) => body.extend(self.option(IF_TSRESOL, &[0x80 | power])),
        }
        if interface.offset != 0 {
            body.extend(self.option(IF_TSOFFSET, &self.endian.u64(interface.offset)));
        }
        body.extend(self.option(END_OF_OPTIONS, &[]));
        self.interfaces.push(interface);
        self.block(INTERFACE_DESCRIPTION, &body);
    }

    /// Adds a frame on the interface with this number.
    pub(super) fn frame(&mut self, number: u32, frame: &Frame) {
        self.frame_with_flags(number, frame, None);
    }

    /// Adds a frame that came in or went out by the interface with this number.
    pub(super) fn passing(&mut self, number: u32, frame: &Frame, is_outgoing: bool) {
        self.frame_with_flags(number, frame, Some(if is_outgoing { 2 } else { 1 }));
    }

    fn frame_with_flags(&mut self, number: u32, frame: &Frame, flags: Option<u32>) {
        let Interface { resolution, offset, .. } = self.interfaces[number as usize];
        let time = resolution.count(frame.at - offset * 1_000_000_000);
        let numbers = [number, (time >> 32) as u32, time as u32, frame.bytes.len() as u32, frame.len as u32];
        let mut body = numbers.map(|number| self.endian.u32(number)).concat();
        body.extend(padded(&frame.bytes));
        if let Some(flags) = flags {
            body.extend(self.option(EPB_FLAGS, &self.endian.u32(flags)));
        }
        if frame.at % 2 == 1 {
            body.extend(self.option(COMMENT, b"odd"));
        }
        if flags.is_some() || frame.at % 2 == 1 {
            body.extend(self.option(END_OF_OPTIONS, &[]));
        }
        self.block(ENHANCED_PACKET, &body);
    }

    /// Adds a frame on the first interface, without a time.
    pub(super) fn simple(&mut self, frame: &Frame) {
        let mut body = Vec::from(self.endian.u32(frame.len as u32));
        body.extend(padded(&frame.bytes));
        self.block(SIMPLE_PACKET, &body);
    }

    /// Adds one of each block that a reader of packets skips.
    pub(super) fn others(&mut self) {
        let endian = self.endian;
        let mut names = [endian.u16(1), endian.u16(4 + 12)].concat();
        names.extend(b"\xc0\x00\x02\x01client.test\0");
        names.extend([0; 4]);
        self.block(NAME_RESOLUTION, &names);
        let statistics = [0, 0x0006_0a24, 0x1234_5678].map(|number| endian.u32(number)).concat();
        self.block(INTERFACE_STATISTICS, &statistics);
        self.block(CUSTOM, &[&endian.u32(32_473)[..], b"an example's own"].concat());
        self.block(CUSTOM | 0x4000_0000, &[&endian.u32(32_473)[..], b"and not copied.."].concat());
        self.block(UNKNOWN, b"unknown.");
        self.block(UNKNOWN | 1 << 31, &[]);
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.endian.u16(code), self.endian.u16(value.len() as u16)].concat();
        option.extend(padded(value));
        option
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let len = self.endian.u32(12 + body.len() as u32);
        self.bytes.extend(self.endian.u32(kind));
        self.bytes.extend(len);
        self.bytes.extend(body);
        self.bytes.extend(len);
    }
}

/// Pads the bytes to whole words.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(4), 0);
    padded
}
