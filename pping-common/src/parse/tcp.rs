//! TCP segments (RFC 9293) and their timestamps option (RFC 7323, 3.2).

use super::Untracked;
use crate::{limits::MAX_TCP_OPTION_OCTETS, octets::Octets};

const HEADER: usize = 20;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_TIMESTAMPS: u8 = 8;
const OPTION_TIMESTAMPS_LEN: usize = 10;

/// The control bits of a segment that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    #[inline(always)]
    pub fn fin(self) -> bool {
        self.0 & 0x01 != 0
    }

    /// Begins a connection.
    #[inline(always)]
    pub fn syn(self) -> bool {
        self.0 & 0x02 != 0
    }

    /// Ends a connection at once.
    #[inline(always)]
    pub fn rst(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// The acknowledgement number, and with it `TSecr`, means something.
    #[inline(always)]
    pub fn ack(self) -> bool {
        self.0 & 0x10 != 0
    }
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's clock.
    pub tsval: u32,
    /// The other side's clock, echoed.
    pub tsecr: u32,
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Control bits.
    pub flags: TcpFlags,
    /// Octets of payload, by the IP header: padding of short frames is none.
    pub payload: u32,
    /// The timestamps option, if there is a well-formed one.
    pub timestamps: Option<Timestamps>,
}

impl Segment {
    /// The IP protocol number of TCP.
    pub const NUMBER: u8 = super::ip::TCP;

    /// Whether the other side must acknowledge this segment: it has payload, SYN or FIN.
    #[inline(always)]
    pub fn consumes_sequence_space(&self) -> bool {
        self.payload > 0 || self.flags.syn() || self.flags.fin()
    }
}

/// Parses the segment at `offset` that has `len` octets including its header.
#[inline(always)]
pub(super) fn parse<O: Octets + ?Sized>(octets: &O, offset: usize, len: usize) -> Result<Segment, Untracked> {
    let header: [u8; HEADER] = octets.read(offset).ok_or(Untracked::Truncated)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < HEADER || header_len > len {
        return Err(Untracked::Malformed);
    }
    Ok(Segment {
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port: u16::from_be_bytes([header[2], header[3]]),
        flags: TcpFlags(header[13]),
        payload: (len - header_len) as u32,
        timestamps: timestamps(octets, offset + HEADER, header_len - HEADER)?,
    })
}

/// Finds the timestamps option among the `len` octets of options at `offset`.
#[inline(always)]
fn timestamps<O: Octets + ?Sized>(
    octets: &O,
    offset: usize,
    len: usize,
) -> Result<Option<Timestamps>, Untracked> {
    // Nearly every segment of an established connection has just this (RFC 7323, appendix A).
    if len == 2 + OPTION_TIMESTAMPS_LEN {
        let [a, b, kind, option_len, rest @ ..] =
            octets.read::<{ 2 + OPTION_TIMESTAMPS_LEN }>(offset).ok_or(Untracked::Truncated)?;
        if [a, b, kind, option_len]
            == [OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, OPTION_TIMESTAMPS_LEN as u8]
        {
            return Ok(Some(decode(rest)));
        }
    }
    let end = offset + len;
    let mut at = offset;
    for _ in 0..MAX_TCP_OPTION_OCTETS {
        // The last octet alone can only be padding.
        if at + 2 > end {
            return Ok(None);
        }
        let [kind, option_len] = octets.read(at).ok_or(Untracked::Truncated)?;
        match kind {
            OPTION_END => return Ok(None),
            OPTION_NOP => at += 1,
            OPTION_TIMESTAMPS => {
                if usize::from(option_len) != OPTION_TIMESTAMPS_LEN || at + OPTION_TIMESTAMPS_LEN > end {
                    return Ok(None);
                }
                return octets.read(at + 2).map(|value| Some(decode(value))).ok_or(Untracked::Truncated);
            }
            // A length that does not even cover its own two octets: nothing behind it can be trusted.
            _ if option_len < 2 => return Ok(None),
            _ => at += usize::from(option_len),
        }
    }
    Ok(None)
}

#[inline(always)]
fn decode([a, b, c, d, e, f, g, h]: [u8; 8]) -> Timestamps {
    Timestamps { tsval: u32::from_be_bytes([a, b, c, d]), tsecr: u32::from_be_bytes([e, f, g, h]) }
}
