//! Reads of a frame that stay within its bounds.

/// The bytes of a frame: a slice, or a packet in the kernel.
pub trait Bytes {
    /// Returns the `N` bytes at `offset`, or `None` if the frame does not have all of them.
    ///
    /// If the offset varies, read at least two bytes: the BPF verifier loses track of the bound of a single byte.
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// Returns `value` modulo `N`, a power of two. It tells the BPF verifier that `value` is below `N`, even if that is
    /// already true: the verifier does not recognise comparisons as the compiler arranges them.
    #[inline(always)]
    fn bounded<const N: usize>(value: usize) -> usize {
        value % N
    }

    /// Puts a barrier before a value: keeps it in memory, but makes the BPF verifier forget what it knows of it. The verifier then
    /// follows the code after it once, and not once per known value.
    #[inline(always)]
    fn barrier_var<T>(_value: &mut T) {}

    /// The length of the whole frame, including bytes that cannot be read here.
    fn frame_len(&self) -> usize;
}

/// Returns how many of `len` bytes at `offset` the whole frame has: a header may claim more.
#[inline(always)]
pub(crate) fn present<O: Bytes + ?Sized>(bytes: &O, offset: usize, len: usize) -> u32 {
    let missing = (offset + len).saturating_sub(bytes.frame_len());
    len.saturating_sub(missing) as u32
}

/// Returns the `N` bytes of `bytes` that start at `at`.
#[inline(always)]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
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

/// A captured frame: the bytes that the capture kept, and the frame's length.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The first bytes of the frame.
    pub bytes: &'a [u8],
    /// The length of the frame on the wire; at least that of `bytes`.
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

/// Returns a word that has these numbers in memory, one after the other. Each number comes with its width in bits.
#[inline(always)]
pub(crate) fn pack(numbers: &[(u64, u32)]) -> u64 {
    let (mut word, mut at) = (0, 0);
    for &(number, bits) in numbers {
        word |= number << at;
        at += bits;
    }
    word
}
