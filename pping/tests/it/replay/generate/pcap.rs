//! The classic capture format.

use super::Frame;

pub(super) const ETHERNET: u32 = 1;

#[derive(Clone, Copy)]
pub(super) enum Endian {
    Little,
    Big,
}

impl Endian {
    pub(super) fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    pub(super) fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    pub(super) fn u64(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// The unit of the times.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Microseconds,
    Nanoseconds,
}

/// A capture with times in ns.
pub(super) fn nanoseconds(link_type: u32, frames: &[Frame]) -> Vec<u8> {
    file(Endian::Little, Unit::Nanoseconds, link_type, frames)
}

pub(super) fn file(endian: Endian, unit: Unit, link_type: u32, frames: &[Frame]) -> Vec<u8> {
    let (magic, nanoseconds) = match unit {
        Unit::Microseconds => (0xa1b2_c3d4, 1000),
        Unit::Nanoseconds => (0xa1b2_3c4d, 1),
    };
    let mut bytes = Vec::from(endian.u32(magic));
    bytes.extend([endian.u16(2), endian.u16(4)].concat());
    bytes.extend([0, 0, 0x0004_0000, link_type].map(|number| endian.u32(number)).concat());
    for frame in frames {
        let (seconds, rest) = (frame.at / 1_000_000_000, frame.at % 1_000_000_000);
        let numbers = [seconds as u32, rest as u32 / nanoseconds, frame.bytes.len() as u32, frame.len as u32];
        bytes.extend(numbers.map(|number| endian.u32(number)).concat());
        bytes.extend(&frame.bytes);
    }
    bytes
}
