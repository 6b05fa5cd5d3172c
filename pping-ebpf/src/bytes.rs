//! Packets as [`Bytes`]. All pointer arithmetic of the kernel programs is here.

use core::{arch::asm, mem::MaybeUninit};

use aya_ebpf::{
    bindings::{__sk_buff, xdp_md},
    helpers::bpf_skb_load_bytes,
    programs::TcContext,
};
use pping_common::bytes::Bytes;

use crate::barrier::{self, barrier_index, barrier_ptr, within};

/// The linear part of a packet, read in place. For each packet pointer the verifier remembers how many bytes were
/// checked. Of a pointer that is loaded again it knows nothing.
pub struct Linear {
    start: usize,
    end: usize,
    frame_len: usize,
}

impl Linear {
    /// The linear part of a packet at XDP.
    ///
    /// # Safety
    /// `ctx` is the context of the program.
    #[inline(always)]
    pub(crate) unsafe fn of_md(ctx: *const xdp_md) -> Self {
        // SAFETY: the context is valid, and the verifier knows these fields as readable.
        let (start, end) = unsafe { ((*ctx).data as usize, (*ctx).data_end as usize) };
        Self { start, end, frame_len: end - start }
    }

    /// The linear part of a packet at tc.
    #[inline(always)]
    pub fn of_skb(ctx: &TcContext) -> Self {
        // SAFETY: the context of the program.
        unsafe { Self::of_sk_buff(ctx.skb.skb) }
    }

    /// The linear part of the packet that a context at tc has.
    ///
    /// # Safety
    /// `skb` is the context of the program.
    #[inline(always)]
    pub(crate) unsafe fn of_sk_buff(skb: *const __sk_buff) -> Self {
        // SAFETY: the context is valid, and the verifier knows these fields as readable.
        let (start, end, len) = unsafe { ((*skb).data, (*skb).data_end, (*skb).len) };
        Self { start: start as usize, end: end as usize, frame_len: len as usize }
    }
}

impl Bytes for Linear {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let at = self.start + offset;
        // Without `barrier_index` the compiler does arithmetic on the packet's end pointer, which the verifier rejects.
        if barrier_index(at + N) > self.end {
            return None;
        }
        // SAFETY: `at` to `at + N` lies within the packet; the verifier makes sure of that comparison.
        Some(unsafe { load(at) })
    }

    #[inline(always)]
    fn bounded<const N: usize>(value: usize) -> usize {
        within::<N>(value)
    }

    #[inline(always)]
    fn barrier_var<T>(value: &mut T) {
        barrier::barrier_var(value);
    }

    #[inline(always)]
    fn frame_len(&self) -> usize {
        self.frame_len
    }
}

/// Loads bytes in as few instructions as possible. Packets may be read unaligned, but the compiler does
/// not know that, and would fetch every byte by itself and run out of registers for them.
///
/// # Safety
/// `N` bytes at `at` must be readable.
#[inline(always)]
unsafe fn load<const N: usize>(at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let mut done = 0;
    macro_rules! load {
        ($type:ty, $instruction:literal) => {
            while N - done >= size_of::<$type>() {
                let value: u64;
                // A load instruction can contain a constant offset. A loop has no constants, so each offset is written out.
                macro_rules! at {
                    ($at:expr, $offset:literal) => {
                        // SAFETY: as this function requires; the instruction changes only its register.
                        unsafe {
                            asm!(
                                $instruction,
                                out(reg) value,
                                in(reg) $at,
                                const $offset,
                                options(pure, readonly, nostack)
                            );
                        }
                    };
                }
                match done {
                    0 => at!(at, 0),
                    8 => at!(at, 8),
                    16 => at!(at, 16),
                    24 => at!(at, 24),
                    32 => at!(at, 32),
                    40 => at!(at, 40),
                    48 => at!(at, 48),
                    56 => at!(at, 56),
                    _ => at!(at + done, 0),
                }
                bytes[done..done + size_of::<$type>()].copy_from_slice(&(value as $type).to_ne_bytes());
                done += size_of::<$type>();
            }
        };
    }
    load!(u64, "{0} = *(u64 *)({1} + {2})");
    load!(u32, "{0} = *(u32 *)({1} + {2})");
    load!(u16, "{0} = *(u16 *)({1} + {2})");
    load!(u8, "{0} = *(u8 *)({1} + {2})");
    bytes
}

/// A whole packet at tc. Bytes outside the linear part are copied, which is rare and slow.
pub(crate) struct Scattered<'a>(pub(crate) &'a TcContext);

impl Scattered<'_> {
    /// The linear part, with its pointers loaded again. Otherwise the verifier checks what follows twice: for bytes
    /// read in place and for copied bytes.
    #[inline(always)]
    fn linear(&self) -> Linear {
        // SAFETY: the context of the program.
        unsafe { Linear::of_sk_buff(barrier_ptr(self.0.skb.skb)) }
    }
}

/// A buffer on the stack, where the verifier insists on alignment.
#[repr(align(8))]
struct Aligned<const N: usize>([u8; N]);

impl Bytes for Scattered<'_> {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        if let Some(bytes) = self.linear().read(offset) {
            return Some(bytes);
        }
        let mut buffer = MaybeUninit::<Aligned<N>>::uninit();
        let bytes = buffer.as_mut_ptr().cast();
        // SAFETY: the helper writes `N` bytes to the buffer, or returns an error.
        let failed = unsafe { bpf_skb_load_bytes(self.0.skb.skb.cast(), offset as u32, bytes, N as u32) };
        // SAFETY: the helper has written these bytes. They are loaded like those of the linear part, so that the
        // verifier's states are equal from here on.
        (failed == 0).then(|| unsafe { load(bytes as usize) })
    }

    #[inline(always)]
    fn bounded<const N: usize>(value: usize) -> usize {
        within::<N>(value)
    }

    #[inline(always)]
    fn barrier_var<T>(value: &mut T) {
        barrier::barrier_var(value);
    }

    #[inline(always)]
    fn frame_len(&self) -> usize {
        self.linear().frame_len
    }
}
