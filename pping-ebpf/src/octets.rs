//! Packets as [`Octets`]. All pointer arithmetic of the kernel programs is here.

use core::arch::asm;

use aya_ebpf::{
    helpers::bpf_skb_load_bytes,
    programs::{TcContext, XdpContext},
};
use pping_common::octets::Octets;

use crate::{
    bounds::{opaque, within},
    maps,
};

/// The part of a packet that lies in one piece in memory, read in place.
pub(crate) struct Linear {
    start: usize,
    end: usize,
    frame_len: usize,
}

impl Linear {
    /// Of a packet at XDP.
    #[inline(always)]
    pub(crate) fn of_xdp(ctx: &XdpContext) -> Self {
        let (start, end) = (ctx.data(), ctx.data_end());
        Self { start, end, frame_len: end - start }
    }

    /// Of a packet at tc.
    #[inline(always)]
    pub(crate) fn of_skb(ctx: &TcContext) -> Self {
        Self { start: ctx.data(), end: ctx.data_end(), frame_len: ctx.len() as usize }
    }

    /// Whether the packet goes on elsewhere in memory.
    #[inline(always)]
    pub(crate) fn is_partial(&self) -> bool {
        self.frame_len > self.end - self.start
    }
}

impl Octets for Linear {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let at = self.start + offset;
        // Else the compiler would compute with the end of the packet, which the verifier does not let it.
        if opaque(at + N) > self.end {
            return None;
        }
        // SAFETY: `at` to `at + N` lies within the packet; the verifier makes sure of that comparison.
        Some(unsafe { load(at) })
    }

    #[inline(always)]
    fn below<const N: usize>(value: usize) -> usize {
        within::<N>(value)
    }

    #[inline(always)]
    fn settle<T>(value: &mut T) {
        maps::settle(value);
    }

    #[inline(always)]
    fn frame_len(&self) -> usize {
        self.frame_len
    }
}

/// Loads octets in as few instructions as possible. Packets may be read unaligned, but the compiler does
/// not know that, and would fetch every octet by itself and run out of registers for them.
///
/// # Safety
/// `N` octets at `at` must be readable.
#[inline(always)]
unsafe fn load<const N: usize>(at: usize) -> [u8; N] {
    let mut octets = [0; N];
    let mut done = 0;
    macro_rules! load {
        ($type:ty, $instruction:literal) => {
            while N - done >= size_of::<$type>() {
                let value: u64;
                // SAFETY: as of this function; it changes nothing but the register.
                unsafe {
                    asm!($instruction, out(reg) value, in(reg) at + done, options(pure, readonly, nostack));
                }
                octets[done..done + size_of::<$type>()].copy_from_slice(&(value as $type).to_ne_bytes());
                done += size_of::<$type>();
            }
        };
    }
    load!(u64, "{0} = *(u64 *)({1} + 0)");
    load!(u32, "{0} = *(u32 *)({1} + 0)");
    load!(u16, "{0} = *(u16 *)({1} + 0)");
    load!(u8, "{0} = *(u8 *)({1} + 0)");
    octets
}

/// Any part of a packet at tc, copied out of it octet by octet.
pub(crate) struct Scattered<'a>(pub(crate) &'a TcContext);

/// A buffer on the stack, where the verifier insists on alignment.
#[repr(align(8))]
struct Aligned<const N: usize>([u8; N]);

impl Octets for Scattered<'_> {
    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut buffer = Aligned([0; N]);
        // SAFETY: the helper writes `N` octets to the buffer, or none and says so.
        let failed = unsafe {
            bpf_skb_load_bytes(self.0.skb.skb.cast(), offset as u32, (&raw mut buffer.0).cast(), N as u32)
        };
        (failed == 0).then_some(buffer.0)
    }

    #[inline(always)]
    fn below<const N: usize>(value: usize) -> usize {
        within::<N>(value)
    }

    #[inline(always)]
    fn settle<T>(value: &mut T) {
        maps::settle(value);
    }

    #[inline(always)]
    fn frame_len(&self) -> usize {
        self.0.len() as usize
    }
}
