//! Reading a frame without ever leaving it.

/// The bytes of a frame, wherever they are: a slice, or a packet in the kernel.
pub trait Bytes {
    /// The `N` bytes at `offset`, or `None` where they are not all there.
    ///
    /// Ask for at least two bytes where the offset varies: the BPF verifier loses track of the
    /// bound when a single byte is read there.
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// `value` modulo `N`, a power of two. Where `value` is below `N` anyway, this is how the BPF verifier
    /// comes to know it: it does not see through comparisons as the compiler arranges them.
    #[inline(always)]
    fn below<const N: usize>(value: usize) -> usize {
        value % N
    }

    /// Launders a value: leaves it in memory as it is, but has the BPF verifier forget what it knew of it. So the verifier follows the
    /// code behind it once, and not for each value it has met.
    #[inline(always)]
    fn launder<T>(_value: &mut T) {}

    /// The length of the whole frame, including what cannot be read here.
    fn frame_len(&self) -> usize;
}

/// `N` of some bytes, from `at` on.
#[inline(always)]
pub(crate) fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

impl Bytes for [u8] {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset..)?.first_chunk().copied()
    }

    #[inline(always)]
    fn frame_len(&self) -> usize {
        self.len()
    }
}

/// A frame of a capture: what was kept of it, and how long it was.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Its length when it passed; not less than what was kept.
    pub frame_len: usize,
}

impl Bytes for Captured<'_> {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.bytes.read(offset)
    }

    #[inline(always)]
    fn frame_len(&self) -> usize {
        self.frame_len
    }
}

/// A word of memory with these numbers in it, one behind the other, each of so many bits.
#[inline(always)]
pub(crate) fn in_memory(numbers: &[(u64, u32)]) -> u64 {
    let (mut word, mut at) = (0, 0);
    for &(number, bits) in numbers {
        word |= number << if cfg!(target_endian = "big") { u64::BITS - at - bits } else { at };
        at += bits;
    }
    word
}

/// Takes 64 bits into a hash: a product, whose high half is its best, folded back.
#[inline(always)]
pub(crate) fn mix(hash: u64, bits: u64) -> u64 {
    /// An odd number without a pattern: 2^64 over the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = (hash ^ bits).wrapping_mul(FACTOR);
    product ^ product >> 32
}
