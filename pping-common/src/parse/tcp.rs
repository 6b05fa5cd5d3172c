//! TCP segments (RFC 9293) and their options: timestamps (RFC 7323, 3.2) and selective acknowledgement (RFC 2018).

use super::{Kind, Transport, Untracked};
use crate::{
    limits::MAX_TCP_OPTION_OCTETS,
    octets::Octets,
    rtt::{Method, Methods},
};

const HEADER: usize = 20;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;
/// With one block (RFC 2018, 3).
const OPTION_SACK_MIN_LEN: u8 = 10;
const OPTION_TIMESTAMPS: u8 = 8;
const OPTION_TIMESTAMPS_LEN: u8 = 10;
/// Steps after which one that matters has begun, if it is there: that has ten octets, and of those before it each two steps
/// pass over at least three.
const MOST_STEPS: usize = (MAX_TCP_OPTION_OCTETS - OPTION_TIMESTAMPS_LEN as usize) * 2 / 3 + 1;
/// Two octets of padding, so that the values behind kind and length are aligned.
const USUAL_OPTIONS: [u8; 4] = [OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, OPTION_TIMESTAMPS_LEN];

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
    /// Sequence number of the first octet, or of the SYN.
    pub sequence: u32,
    /// The next octet that the sender expects, where ACK is set.
    pub acknowledgement: u32,
    /// Octets of payload, by the IP header: padding of short frames is none.
    pub payload: u32,
    /// Whether octets beyond `acknowledgement` are acknowledged, or some for a second time (RFC 2883).
    pub has_sack: bool,
    /// Whether there is a well-formed timestamps option.
    pub has_timestamps: bool,
    /// The timestamps option, if there is one.
    pub timestamps: Timestamps,
    /// Octets of options.
    pub(super) options_len: u8,
    /// How many of those were looked at.
    pub(super) looked_at: u8,
}

impl Segment {
    pub(super) const EMPTY: Self = Self {
        source_port: 0,
        destination_port: 0,
        flags: TcpFlags(0),
        sequence: 0,
        acknowledgement: 0,
        payload: 0,
        has_sack: false,
        has_timestamps: false,
        timestamps: Timestamps { tsval: 0, tsecr: 0 },
        options_len: 0,
        looked_at: 0,
    };

    /// The IP protocol number of TCP.
    pub const NUMBER: u8 = super::ip::TCP;

    /// The timestamps option.
    #[inline(always)]
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.has_timestamps.then_some(self.timestamps)
    }

    /// The sequence number after its last (RFC 9293, 3.3.1: SEG.SEQ + SEG.LEN).
    #[inline(always)]
    pub fn sequence_end(&self) -> u32 {
        self.sequence
            .wrapping_add(self.payload)
            .wrapping_add(u32::from(self.flags.syn()))
            .wrapping_add(u32::from(self.flags.fin()))
    }

    /// Whether a flow may begin with this segment.
    #[inline(always)]
    pub(super) fn begins_flow(&self, methods: Methods) -> Result<(), Untracked> {
        let has_method = if self.has_timestamps {
            methods.has(Method::TcpTs) || methods.has_seq_always()
        } else {
            methods.has(Method::TcpSeq)
        };
        if self.flags.rst() {
            Err(Untracked::NoFlow)
        } else if has_method || self.flags.syn() && methods.has(Method::TcpHandshake) {
            Ok(())
        } else if self.has_timestamps {
            Err(Untracked::NoFlow)
        } else {
            Err(Untracked::NoTimestamp)
        }
    }

    /// Whether the other side must acknowledge this segment: it has payload, SYN or FIN.
    #[inline(always)]
    pub fn consumes_sequence_space(&self) -> bool {
        self.payload > 0 || self.flags.syn() || self.flags.fin()
    }
}

/// Parses the segment at `offset` that has `len` octets including its header.
#[inline(always)]
pub(super) fn parse<O: Octets + ?Sized>(
    octets: &O,
    offset: usize,
    len: usize,
    transport: &mut Transport,
) -> Result<(), Untracked> {
    let header: [u8; HEADER] = octets.read(offset).ok_or(Untracked::Truncated)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < HEADER || header_len > len {
        return Err(Untracked::Malformed);
    }
    transport.kind = Kind::Tcp;
    let segment = &mut transport.segment;
    segment.source_port = u16::from_be_bytes([header[0], header[1]]);
    segment.destination_port = u16::from_be_bytes([header[2], header[3]]);
    segment.flags = TcpFlags(header[13]);
    segment.sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    segment.acknowledgement = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    segment.payload = (len - header_len) as u32;
    parse_options(octets, offset + HEADER, header_len - HEADER, segment)
}

/// Finds what matters among the `len` octets of options at `offset`.
#[inline(always)]
fn parse_options<O: Octets + ?Sized>(
    octets: &O,
    offset: usize,
    len: usize,
    segment: &mut Segment,
) -> Result<(), Untracked> {
    // Nearly every segment of an established connection has just this (RFC 7323, appendix A).
    if len == USUAL_OPTIONS.len() + 8 {
        let start: [u8; 4] = octets.read(offset).ok_or(Untracked::Truncated)?;
        if start == USUAL_OPTIONS {
            return take_timestamps(octets, offset + USUAL_OPTIONS.len(), segment);
        }
    }
    segment.looked_at = 0;
    segment.options_len = len as u8;
    for _ in 0..MOST_STEPS {
        // The options are at most 40 octets. From memory, so that the verifier need not look at every way of getting here.
        O::settle(segment);
        let (at, len) = (O::below::<64>(usize::from(segment.looked_at)), usize::from(segment.options_len));
        // The last octet alone can only be padding.
        if at + 2 > len {
            return Ok(());
        }
        let Some([kind, option_len]) = octets.read(offset + at) else {
            // A capture may end here: what matters most is known.
            return if segment.has_timestamps { Ok(()) } else { Err(Untracked::Truncated) };
        };
        match kind {
            OPTION_END => return Ok(()),
            // What looks like its length is the option behind it: often the same, and then both are passed over.
            OPTION_NOP => segment.looked_at = (at + 1 + usize::from(option_len == OPTION_NOP)) as u8,
            // A length that does not even cover its own two octets, or that leaves the header: nothing
            // behind it can be trusted.
            _ if option_len < 2 || at + usize::from(option_len) > len => return Ok(()),
            OPTION_TIMESTAMPS => {
                if option_len != OPTION_TIMESTAMPS_LEN {
                    return Ok(());
                }
                take_timestamps(octets, offset + at + 2, segment)?;
                segment.looked_at = (at + usize::from(OPTION_TIMESTAMPS_LEN)) as u8;
            }
            OPTION_SACK => {
                if option_len >= OPTION_SACK_MIN_LEN {
                    segment.has_sack = true;
                }
                segment.looked_at = (at + usize::from(option_len)) as u8;
            }
            _ => segment.looked_at = (at + usize::from(option_len)) as u8,
        }
    }
    Ok(())
}

#[inline(always)]
fn take_timestamps<O: Octets + ?Sized>(
    octets: &O,
    offset: usize,
    segment: &mut Segment,
) -> Result<(), Untracked> {
    let tsval = octets.read(offset).ok_or(Untracked::Truncated)?;
    let tsecr = octets.read(offset + 4).ok_or(Untracked::Truncated)?;
    segment.timestamps = Timestamps { tsval: u32::from_be_bytes(tsval), tsecr: u32::from_be_bytes(tsecr) };
    segment.has_timestamps = true;
    Ok(())
}
