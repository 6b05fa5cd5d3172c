//! What `cargo xtask bench` has its own program in the kernel send back and forth.

/// Octets of a packet that the program writes. What is behind them stays what it was.
pub const MADE: usize = 96;

/// A number in a packet that is another one each time: `base + (number of the exchange * step & mask)`, in network byte
/// order.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Field {
    /// Octets before it.
    pub at: u32,
    /// What it begins with.
    pub base: u32,
    /// What it grows by.
    pub step: u32,
    /// The bits that change.
    pub mask: u32,
}

impl Field {
    /// The destination's address on the link, which nothing here looks at.
    pub const NONE: Self = Self { at: 0, base: 0, step: 0, mask: 0 };

    /// Its value in an exchange.
    #[inline(always)]
    pub fn value(&self, exchange: u32) -> u32 {
        self.base.wrapping_add(exchange.wrapping_mul(self.step) & self.mask)
    }
}

/// A packet that is made.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Made {
    /// How it begins.
    pub start: [u8; MADE],
    /// What is not the same each time.
    pub fields: [Field; 2],
}

/// A packet that goes out, and one that comes in.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Exchange {
    /// Both.
    pub packets: [Made; 2],
}

// SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
#[cfg(feature = "aya")]
unsafe impl aya::Pod for Exchange {}
