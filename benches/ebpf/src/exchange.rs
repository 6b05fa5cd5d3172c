//! The packets that the bench programs make for `cargo xtask bench`.

/// The bytes of a packet that the program writes. Bytes behind them stay as they are.
pub const TEMPLATE_LEN: usize = 96;

/// A number in a packet that changes each time: `base + (number of the exchange * step & mask)`, in network byte
/// order.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Field {
    /// Its offset.
    pub at: u32,
    /// Its first value.
    pub base: u32,
    /// The increment.
    pub step: u32,
    /// The bits that change.
    pub mask: u32,
}

impl Field {
    /// Writes zero to the first bytes of the destination MAC address, which nothing reads here.
    pub const NONE: Self = Self { at: 0, base: 0, step: 0, mask: 0 };

    /// Its value in an exchange.
    #[inline(always)]
    pub fn value(&self, exchange: u32) -> u32 {
        self.base.wrapping_add(exchange.wrapping_mul(self.step) & self.mask)
    }
}

/// A generated packet.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PacketTemplate {
    /// Its first bytes.
    pub start: [u8; TEMPLATE_LEN],
    /// The numbers that change.
    pub fields: [Field; 2],
}

/// A packet that goes out, and one that comes in.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Exchange {
    /// The outgoing packet, then the incoming one.
    pub packets: [PacketTemplate; 2],
}

/// Connections through a router: a segment of each in turn, and after every second segment an acknowledgement, which is of a
/// connection that had its turn long before. While they open, each segment is acknowledged at once: many connections without a
/// reply look like a SYN flood, and pping would evict them.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Traffic {
    /// The first bytes of a segment and of an acknowledgement.
    pub packets: [[u8; TEMPLATE_LEN]; 2],
    /// The interfaces by which they reach the router.
    pub interfaces: [u32; 2],
    /// The number of connections, a power of two.
    pub flows: u32,
    /// The number of the first connection.
    pub first: u32,
    /// The last two bytes of the first client's address, as a number.
    pub clients: u16,
    /// 1 for IPv6.
    pub is_v6: u8,
    /// 1 if timestamps follow the clock, 0 if they follow the number of packets.
    pub is_by_clock: u8,
    /// 1 while the connections open.
    pub is_opening: u8,
    /// Fills up to a multiple of 4.
    pub reserved: u8,
}

/// What a connection has sent.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Connection {
    /// The latest `TSval`.
    pub tsval: u32,
    /// Bytes so far, modulo 2^32.
    pub sent: u32,
}

impl Traffic {
    /// The highest number of connections.
    pub const MAX_FLOWS: u32 = 1 << 18;

    /// Connections of an address, which has as many ports.
    pub const FLOWS_PER_ADDRESS: u32 = 1 << 16;

    /// How far the addresses of clients are apart.
    pub const ADDRESS_STEP: u16 = 16;

    /// Bytes of each segment.
    pub const PAYLOAD: u32 = 100;

    /// The number of packets in a tick of the timestamps' clock: about a millisecond on a fast machine.
    pub const TICK: u32 = 1024;

    /// The identification of all IPv4 packets to and from the first address (RFC 791). That of others is less by as much as
    /// their address is more, so that the checksum is the same.
    pub const IDENTIFICATION: u16 = 0x8000;
}

// SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
#[cfg(feature = "compiled")]
unsafe impl aya::Pod for Exchange {}

// SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
#[cfg(feature = "compiled")]
unsafe impl aya::Pod for Traffic {}
