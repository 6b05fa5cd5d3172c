//! TCP options: window scale and timestamps (RFC 7323, 2.2 and 3.2), and selective acknowledgement (RFC 2018).

use crate::{bytes::Bytes, limits::MAX_TCP_OPTION_BYTES};

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_WINDOW_SCALE: u8 = 3;
const OPTION_SACK: u8 = 5;
/// The length with one block (RFC 2018, 3).
const OPTION_SACK_MIN_LEN: u8 = 10;
const OPTION_TIMESTAMPS: u8 = 8;
const OPTION_TIMESTAMPS_LEN: u8 = 10;
/// Steps within which any option that matters is reached: it has ten bytes itself, and before it any two steps pass at
/// least three bytes.
pub(super) const MAX_STEPS: usize = (MAX_TCP_OPTION_BYTES - OPTION_TIMESTAMPS_LEN as usize) * 2 / 3 + 1;
/// The classes of options.
const CLASSES: usize = 4;
pub(super) const CLASS_TIMESTAMPS: usize = 1;
pub(super) const CLASS_SACK: usize = 2;
pub(super) const CLASS_WINDOW_SCALE: usize = 3;
/// Each kind of option: its class, whether it is padding of one byte (bit 2), and whether it ends the options (bit 3).
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    kinds[OPTION_END as usize] = 1 << 3;
    kinds[OPTION_NOP as usize] = 1 << 2;
    kinds[OPTION_TIMESTAMPS as usize] = CLASS_TIMESTAMPS as u8;
    kinds[OPTION_SACK as usize] = CLASS_SACK as u8;
    kinds[OPTION_WINDOW_SCALE as usize] = CLASS_WINDOW_SCALE as u8;
    kinds
};
/// The usual options: two bytes of padding align the values after kind and length.
pub(super) const COMMON_OPTIONS: [u8; 4] = [OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, OPTION_TIMESTAMPS_LEN];

/// The options of a segment while they are parsed. They are copied to memory where any byte can be read, at an offset
/// that another byte gives. In the packet, the verifier would have to follow each possible offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(4))]
pub(super) struct Options {
    bytes: [u8; Self::ROOM + Self::LONGEST],
    /// The number of bytes.
    len: u8,
    /// The number of bytes that were copied.
    pub(super) copied: u8,
    /// The offset of the next option to read.
    next_offset: u8,
    /// The offset of the last option of each class, plus 1; 0 if there is none.
    pub(super) last: [u8; CLASSES],
    /// Not 0 if an option of the class is long enough for SACK.
    pub(super) has_long: [u8; CLASSES],
}

impl Options {
    /// Options begin below this offset. It is a power of two, by which the verifier knows the bound.
    pub(super) const ROOM: usize = MAX_TCP_OPTION_BYTES.next_power_of_two();
    /// Bytes of the longest option that is read.
    pub(super) const LONGEST: usize = OPTION_TIMESTAMPS_LEN as usize;

    /// The largest shift of a window (RFC 7323, 2.3).
    const MAX_SHIFT: u8 = 14;

    pub(super) const NONE: Self = Self {
        len: 0,
        copied: 0,
        next_offset: 0,
        last: [0; CLASSES],
        has_long: [0; CLASSES],
        bytes: [0; Self::ROOM + Self::LONGEST],
    };

    /// Copies the options at `offset`, as far as the frame has them.
    #[inline(always)]
    pub(super) fn copy<O: Bytes + ?Sized>(&mut self, bytes: &O, offset: usize, len: usize) {
        self.len = len as u8;
        self.copied = 0;
        self.next_offset = 0;
        self.last = [0; CLASSES];
        self.has_long = [0; CLASSES];
        for at in (0..MAX_TCP_OPTION_BYTES).step_by(4) {
            if at >= len {
                return;
            }
            let Some(word) = bytes.read::<4>(offset + at) else { return };
            self.bytes[at..at + 4].copy_from_slice(&word);
            self.copied = (at + 4) as u8;
        }
    }

    /// Reads the option at `next_offset`. Returns `false` if no more options can be read. It has no branch per kind: the
    /// verifier would follow each of them in each step.
    #[inline(always)]
    pub(super) fn step<O: Bytes + ?Sized>(&mut self) -> bool {
        let at = O::bounded::<{ Self::ROOM }>(usize::from(self.next_offset));
        // The last byte alone can only be padding.
        if at + 2 > usize::from(self.copied) {
            return false;
        }
        let (kind, option_len) = (self.bytes[at], u32::from(self.bytes[at + 1]));
        let traits = KINDS[usize::from(kind)];
        let class = O::bounded::<CLASSES>(usize::from(traits) % CLASSES);
        let is_nop = u32::from(traits >> 2) & 1;
        // The byte after padding is no length but the next option. It is often padding, too; then the step passes both.
        let nops = 1 + ((option_len ^ u32::from(OPTION_NOP)).wrapping_sub(1) >> 31);
        let next = at as u32 + is_nop * nops + (1 - is_nop) * option_len;
        // Each of these is negative if the length is wrong: it does not even cover its own two bytes, it leaves the
        // header, or it is not that of timestamps. Nothing after it can be trusted.
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
        self.next_offset = next as u8;
        true
    }

    /// Whether the next option lies within the header, but beyond the copied bytes.
    #[inline(always)]
    pub(super) fn is_cut(&self) -> bool {
        let next = self.next_offset + 2;
        next > self.copied && next <= self.len
    }

    /// Returns the window scale that the options offer: see [`Segment::window_scale`](super::Segment::window_scale).
    #[inline(always)]
    pub(super) fn window_scale<O: Bytes + ?Sized>(&self) -> u8 {
        let after_kind = usize::from(self.last[CLASS_WINDOW_SCALE]);
        if after_kind == 0 || after_kind + 1 >= usize::from(self.copied) {
            return 0;
        }
        let shift = self.bytes[O::bounded::<{ Self::ROOM }>(after_kind - 1) + 2];
        1 + if shift < Self::MAX_SHIFT { shift } else { Self::MAX_SHIFT }
    }

    #[inline(always)]
    pub(super) fn word(&self, at: usize) -> u32 {
        let bytes = &self.bytes;
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }
}
