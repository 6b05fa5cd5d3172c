//! What the programs send back and forth for `cargo xtask bench`.

/// Bytes of a packet that the program writes. What is behind them stays what it was.
pub const MADE: usize = 96;

/// A number in a packet that is another one each time: `base + (number of the exchange * step & mask)`, in network byte
/// order.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Field {
    /// Bytes before it.
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

/// Connections through a router: segments of all in turn, and after every other one an acknowledgement.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Traffic {
    /// How a segment begins, and an acknowledgement.
    pub packets: [[u8; MADE]; 2],
    /// By which interfaces they go to the router.
    pub interfaces: [u32; 2],
    /// How many connections, a power of two.
    pub flows: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
}

impl Traffic {
    /// Connections, at most.
    pub const MAX_FLOWS: u32 = 1024;

    /// Packets after which the clock of the timestamps counts one up: about a millisecond on a fast machine.
    pub const TICK: u32 = 1024;
}

// SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
#[cfg(feature = "compiled")]
unsafe impl aya::Pod for Exchange {}

// SAFETY: as above.
#[cfg(feature = "compiled")]
unsafe impl aya::Pod for Traffic {}
