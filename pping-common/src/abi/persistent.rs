//! Persistent counts: those that metrics have shown so far, kept in a pinned map for the next agent. The kernel programs do
//! not use it.

use crate::{hist::OCTAVES, layout::layout, series::Traffic};

/// Buckets of a histogram in metrics: one below the lowest octave, one per octave, and one above the highest.
pub const BUCKETS: usize = OCTAVES + 2;

/// The longest label that is kept, in bytes.
pub const LABEL_BYTES: usize = 64;

/// A fingerprint of a series in metrics, by which its entry is found.
pub type PersistentKey = [u64; 2];

/// An entry of the persistent counts: a series in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PersistentEntry {
    /// Not 0 if its group has its own label.
    pub is_labelled: u64,
    /// The label, padded with zeros; empty if it is longer than [`LABEL_BYTES`].
    pub label: [u8; LABEL_BYTES],
    /// The last two totals. The newer one is void until its rotation is committed.
    pub totals: [PersistentTotals; 2],
}

layout!(PersistentEntry { is_labelled, label, totals });

/// The sums of a series since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PersistentTotals {
    /// The number of rotations ([`super::Control::rotations`]) that are included. The totals are void while fewer are
    /// committed.
    pub epoch: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
    /// Samples below the lowest octave, by octave, and above the highest. Each sample counts in one bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of the RTTs, ns: lower and higher half.
    pub sum: [u64; 2],
    /// Sent by the hosts whose packets are timed, and by those that reply.
    pub traffic: [Traffic; 2],
}

layout!(PersistentTotals { epoch, reserved, buckets, sum, traffic });

impl PersistentTotals {
    /// No samples and no traffic.
    pub const ZERO: Self = Self {
        epoch: 0,
        reserved: 0,
        buckets: [0; BUCKETS],
        sum: [0; 2],
        traffic: [Traffic { packets: 0, bytes: 0, retransmissions: 0, ce: 0 }; 2],
    };
}

const _: () = {
    assert!(size_of::<PersistentTotals>() == 8 + 8 * BUCKETS + 16 + 64);
    assert!(size_of::<PersistentEntry>() == 8 + LABEL_BYTES + 2 * size_of::<PersistentTotals>());
    assert!(core::mem::offset_of!(PersistentEntry, totals) == 8 + LABEL_BYTES);
};
