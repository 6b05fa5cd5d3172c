//! What an agent has told in metrics so far, kept by the kernel for the agent after it. The kernel programs do not look at
//! it.

use crate::series::Traffic;

/// Buckets of a histogram of metrics: no longer than 2^0 us to 2^24 us, and everything.
pub const BUCKETS: usize = 26;

/// Bytes of a label that is kept.
pub const LABEL_BYTES: usize = 64;

/// A series of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Account {
    /// What it is of, as a fingerprint; 0 in an account that is not in use.
    pub id: [u64; 2],
    /// Not 0 if its group has a label of its own.
    pub is_labelled: u64,
    /// The label, filled up with zeroes; nothing if it is longer.
    pub label: [u8; LABEL_BYTES],
    /// The last two balances. The newer one is void if its turn has not been booked.
    pub balances: [Balance; 2],
}

/// What a series has got since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Balance {
    /// Turns of [`super::Control::phase`] that it has in it, and so is void while fewer have been booked.
    pub turn: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// Samples no longer than 1 us, by octave above that, and longer than all of them; each in one.
    pub buckets: [u64; BUCKETS],
    /// Sum of the RTTs, ns: lower and higher half.
    pub sum: [u64; 2],
    /// Sent by the hosts whose packets are timed, and by those that reply.
    pub traffic: [Traffic; 2],
}

impl Account {
    /// One that is not in use.
    pub const FREE: Self =
        Self { id: [0; 2], is_labelled: 0, label: [0; LABEL_BYTES], balances: [Balance::ZERO; 2] };
}

impl Balance {
    /// Nothing.
    pub const ZERO: Self = Self {
        turn: 0,
        reserved: 0,
        buckets: [0; BUCKETS],
        sum: [0; 2],
        traffic: [Traffic { packets: 0, bytes: 0, retransmissions: 0, ce: 0 }; 2],
    };
}

const _: () = {
    assert!(size_of::<Balance>() == 8 + 8 * BUCKETS + 16 + 64);
    assert!(size_of::<Account>() == 24 + LABEL_BYTES + 2 * size_of::<Balance>());
    assert!(core::mem::offset_of!(Account, balances) == 24 + LABEL_BYTES);
};
