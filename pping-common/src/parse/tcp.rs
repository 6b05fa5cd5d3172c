//! TCP segments (RFC 9293).

use super::{
    options::{CLASS_SACK, CLASS_TIMESTAMPS, COMMON_OPTIONS, MAX_STEPS, Options},
    protocol::TCP,
    untracked::Untracked,
};
use crate::{
    bytes::Bytes,
    method::{Method, Methods},
};

const HEADER: usize = 20;

/// The control bits of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// True if the sender has no more data.
    #[inline(always)]
    pub fn fin(self) -> bool {
        self.0 & 0x01 != 0
    }

    /// True if the segment begins a connection.
    #[inline(always)]
    pub fn syn(self) -> bool {
        self.0 & 0x02 != 0
    }

    /// True if the segment ends a connection at once.
    #[inline(always)]
    pub fn rst(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// True if the acknowledgement number is valid, and with it `TSecr`.
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
    /// The other end's clock, echoed.
    pub tsecr: u32,
}

impl Timestamps {
    /// Both are 0.
    pub const ZERO: Self = Self { tsval: 0, tsecr: 0 };
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
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// The next byte that the sender expects, if ACK is set.
    pub acknowledgement: u32,
    /// Bytes of payload, by the IP header: padding of short frames does not count.
    pub payload: u32,
    /// Whether bytes beyond `acknowledgement` are acknowledged, or some for a second time (RFC 2883).
    pub has_sack: bool,
    /// In a SYN: by how many bits windows are shifted, plus 1; 0 if windows are not scaled (RFC 7323, 2).
    pub window_scale: u8,
    /// Whether there is a well-formed timestamps option.
    pub has_timestamps: bool,
    /// The timestamps option, if `has_timestamps`.
    pub timestamps: Timestamps,
    /// The options, unless they are the usual ones.
    pub(super) options: Options,
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
        window_scale: 0,
        has_timestamps: false,
        timestamps: Timestamps::ZERO,
        options: Options::NONE,
    };

    /// The IP protocol number of TCP.
    pub const NUMBER: u8 = TCP;

    /// The timestamps option.
    #[inline(always)]
    pub fn timestamps(&self) -> Option<Timestamps> {
        self.has_timestamps.then_some(self.timestamps)
    }

    /// The sequence number after the segment's last one (RFC 9293, 3.3.1: SEG.SEQ + SEG.LEN).
    #[inline(always)]
    pub fn sequence_end(&self) -> u32 {
        self.sequence
            .wrapping_add(self.payload)
            .wrapping_add(u32::from(self.flags.syn()))
            .wrapping_add(u32::from(self.flags.fin()))
    }

    /// Checks that a flow may begin with this segment.
    #[inline(always)]
    pub(super) fn begins_flow(&self, methods: Methods) -> Result<(), Untracked> {
        let has_method = if self.has_timestamps {
            methods.has(Method::TcpTs) || methods.has_seq_always()
        } else {
            methods.has(Method::TcpSeq)
        };
        if self.flags.rst() || self.is_of_no_connection() {
            Err(Untracked::NoFlow)
        } else if has_method || self.flags.syn() && methods.has(Method::TcpHandshake) {
            Ok(())
        } else if self.has_timestamps {
            Err(Untracked::NoFlow)
        } else {
            Err(Untracked::NoTimestamp)
        }
    }

    /// Whether every end drops this segment: without SYN and RST it must have ACK (RFC 9293, 3.10.7).
    #[inline(always)]
    pub fn is_of_no_connection(&self) -> bool {
        const SYN_RST_ACK: u8 = 0x02 | 0x04 | 0x10;
        self.flags.0 & SYN_RST_ACK == 0
    }

    /// Whether the other end must acknowledge this segment: it has payload, SYN or FIN.
    #[inline(always)]
    pub fn consumes_sequence_space(&self) -> bool {
        self.payload > 0 || self.flags.syn() || self.flags.fin()
    }
}

/// Parses the segment at `offset` that has `len` bytes including its header.
#[inline(always)]
pub(super) fn parse<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    segment: &mut Segment,
) -> Result<(), Untracked> {
    let header: [u8; HEADER] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < HEADER || header_len > len {
        return Err(Untracked::Malformed);
    }
    segment.source_port = u16::from_be_bytes([header[0], header[1]]);
    segment.destination_port = u16::from_be_bytes([header[2], header[3]]);
    segment.flags = TcpFlags(header[13]);
    segment.sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    segment.acknowledgement = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    segment.payload = (len - header_len) as u32;
    parse_options(bytes, offset + HEADER, header_len - HEADER, segment)
}

/// Finds timestamps, SACK and the window scale in the `len` bytes of options at `offset`.
#[inline(always)]
fn parse_options<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    segment: &mut Segment,
) -> Result<(), Untracked> {
    // Nearly every segment of an established connection has exactly these options (RFC 7323, appendix A).
    if len == COMMON_OPTIONS.len() + 8 {
        let start: [u8; 4] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        if start == COMMON_OPTIONS {
            return take_timestamps(bytes, offset + COMMON_OPTIONS.len(), segment);
        }
    }
    segment.options.copy(bytes, offset, len);
    // The steps are written out: in a loop the verifier of Linux 6.18 compares states more strictly, and so follows more
    // paths.
    'walk: {
        const { assert!(MAX_STEPS == 21) };
        macro_rules! steps {
            ($($step:literal)*) => {$(
                let _ = $step;
                // A barrier, so that the verifier does not follow each path to this point separately.
                O::barrier_var(segment);
                if !segment.options.step::<O>() {
                    break 'walk;
                }
            )*};
        }
        steps!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21);
    }
    O::barrier_var(segment);
    let options = &segment.options;
    segment.has_sack = options.has_long[CLASS_SACK] != 0;
    segment.window_scale = options.window_scale::<O>();
    let after_kind = usize::from(options.last[CLASS_TIMESTAMPS]);
    if after_kind != 0 {
        let at = O::bounded::<{ Options::ROOM }>(after_kind - 1);
        if at + Options::LONGEST > usize::from(options.copied) {
            return Err(Untracked::Truncated);
        }
        segment.timestamps = Timestamps { tsval: options.word(at + 2), tsecr: options.word(at + 6) };
        segment.has_timestamps = true;
    } else if options.is_cut() {
        return Err(Untracked::Truncated);
    }
    Ok(())
}

#[inline(always)]
fn take_timestamps<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    segment: &mut Segment,
) -> Result<(), Untracked> {
    let tsval = bytes.read(offset).ok_or(Untracked::Truncated)?;
    let tsecr = bytes.read(offset + 4).ok_or(Untracked::Truncated)?;
    segment.timestamps = Timestamps { tsval: u32::from_be_bytes(tsval), tsecr: u32::from_be_bytes(tsecr) };
    segment.has_timestamps = true;
    Ok(())
}
