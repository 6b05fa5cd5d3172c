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
/// What options are told apart as.
const CLASSES: usize = 4;
const CLASS_TIMESTAMPS: usize = 1;
const CLASS_SACK: usize = 2;
/// Of each kind of option its class, whether it is padding of one octet (bit 2), and whether it is the end (bit 3).
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    kinds[OPTION_END as usize] = 1 << 3;
    kinds[OPTION_NOP as usize] = 1 << 2;
    kinds[OPTION_TIMESTAMPS as usize] = CLASS_TIMESTAMPS as u8;
    kinds[OPTION_SACK as usize] = CLASS_SACK as u8;
    kinds
};
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
    /// The options, unless they are just timestamps.
    pub(super) options: Options,
}

/// The options of a segment, while they are looked at. In memory of its own one octet can be read after the other, wherever
/// the one before says that the next is: in a packet the verifier would have to follow each place there could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(4))]
pub(super) struct Options {
    octets: [u8; Self::ROOM + Self::LONGEST],
    /// How many octets there are.
    len: u8,
    /// How many of those were copied.
    copied: u8,
    /// And looked at.
    looked_at: u8,
    /// Where the last of a class is, plus one; 0 where there is none.
    last: [u8; CLASSES],
    /// Whether one of a class is long enough for SACK.
    has_long: [u8; CLASSES],
}

impl Options {
    /// Where an option may begin: up to the next power of two, as the verifier is told.
    const ROOM: usize = MAX_TCP_OPTION_OCTETS.next_power_of_two();
    /// Octets of the longest that is read.
    const LONGEST: usize = OPTION_TIMESTAMPS_LEN as usize;

    const NONE: Self = Self {
        len: 0,
        copied: 0,
        looked_at: 0,
        last: [0; CLASSES],
        has_long: [0; CLASSES],
        octets: [0; Self::ROOM + Self::LONGEST],
    };

    /// Copies the options at `offset` as far as they are there.
    #[inline(always)]
    fn copy<O: Octets + ?Sized>(&mut self, octets: &O, offset: usize, len: usize) {
        self.len = len as u8;
        self.copied = 0;
        self.looked_at = 0;
        self.last = [0; CLASSES];
        self.has_long = [0; CLASSES];
        for at in (0..MAX_TCP_OPTION_OCTETS).step_by(4) {
            if at >= len {
                return;
            }
            let Some(word) = octets.read::<4>(offset + at) else { return };
            self.octets[at..at + 4].copy_from_slice(&word);
            self.copied = (at + 4) as u8;
        }
    }

    /// Looks at the option at `looked_at`; `false` when there is no more to look at. Without a branch for each kind: the verifier
    /// would follow each in each step.
    #[inline(always)]
    fn step<O: Octets + ?Sized>(&mut self) -> bool {
        let at = O::below::<{ Self::ROOM }>(usize::from(self.looked_at));
        // The last octet alone can only be padding.
        if at + 2 > usize::from(self.copied) {
            return false;
        }
        let (kind, option_len) = (self.octets[at], u32::from(self.octets[at + 1]));
        let traits = KINDS[usize::from(kind)];
        let class = O::below::<CLASSES>(usize::from(traits) % CLASSES);
        let is_nop = u32::from(traits >> 2) & 1;
        // What looks like the length of padding is the option behind it: often the same, and then both are passed over.
        let nops = 1 + ((option_len ^ u32::from(OPTION_NOP)).wrapping_sub(1) >> 31);
        let next = at as u32 + is_nop * nops + (1 - is_nop) * option_len;
        // Each is negative where a length does not even cover its own two octets, where it leaves the header, where it is not
        // that of timestamps: nothing behind it can be trusted.
        let is_short = option_len.wrapping_sub(2);
        let is_long = u32::from(self.len).wrapping_sub(next);
        let is_timestamps = (class as u32 ^ CLASS_TIMESTAMPS as u32).wrapping_sub(1);
        let is_wrong = is_timestamps & (option_len ^ u32::from(OPTION_TIMESTAMPS_LEN)).wrapping_neg();
        let is_bad = (is_short | is_long | is_wrong) & is_nop.wrapping_sub(1);
        let is_end = u32::from(traits >> 3).wrapping_neg();
        if ((is_bad | is_end) as i32) < 0 {
            return false;
        }
        self.last[class] = at as u8 + 1;
        self.has_long[class] |= (option_len.wrapping_sub(u32::from(OPTION_SACK_MIN_LEN)) >> 31) as u8 ^ 1;
        self.looked_at = next as u8;
        true
    }

    /// Whether there are more than were copied.
    #[inline(always)]
    fn is_cut(&self) -> bool {
        let next = self.looked_at + 2;
        next > self.copied && next <= self.len
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u32 {
        let octets = &self.octets;
        u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
    }
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
        options: Options::NONE,
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
    segment.options.copy(octets, offset, len);
    for _ in 0..MOST_STEPS {
        // From memory, so that the verifier need not look at every way of getting here.
        O::settle(segment);
        if !segment.options.step::<O>() {
            break;
        }
    }
    O::settle(segment);
    let options = &segment.options;
    segment.has_sack = options.has_long[CLASS_SACK] != 0;
    let after_kind = usize::from(options.last[CLASS_TIMESTAMPS]);
    if after_kind != 0 {
        let at = O::below::<{ Options::ROOM }>(after_kind - 1);
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
