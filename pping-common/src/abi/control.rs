//! The agent's control of the kernel programs while they run.

use crate::{hash::SipKey, layout::layout};

/// The values by which the agent controls the programs while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// The number of rotations so far. Its lowest bit is the buffer: which of a series' two sets of sums the programs
    /// write to.
    pub rotations: u32,
    /// The number of the set of prefixes that is current.
    pub generation: u32,
    /// Changes to make each flow look up its series again.
    pub epoch: u32,
    /// The lowest index of a series that was never used. The programs count it up.
    pub unused: u32,
    /// [`Control::NO_MORE_PACKETS`] or [`Control::PACKETS_MISSED`] to have the next sweep report and delete all flows;
    /// else 0.
    pub cut_off: u32,
    /// The number of rotations committed to the persistent counts: all, or all but the last.
    pub committed: u32,
    /// The tick (`jiffies`) at which the lease of the programs ends, if they have one; 0 before the first. Packets are checked
    /// against the copy in [`super::Interface`].
    pub lease_end: u64,
    /// A secret for [`SeriesKey::hash`](crate::series::SeriesKey::hash) and [`host_bit`](crate::series::host_bit), so that no sender can choose two keys with the
    /// same hash. The agent writes it once.
    pub secret: SipKey,
    /// Not 0 once a renewal has found that the lease had run out.
    pub lapsed: u32,
    /// The number of committed rotations that the agent has since removed from the series: all, or all but the last.
    pub emptied: u32,
    /// The number of the present sweep. Each sweep increments it at its start, then copies it and `lease_end` to the
    /// interfaces.
    pub sweep: u32,
    /// Fills up to a multiple of 8.
    pub reserved: u32,
}

layout!(Control {
    rotations,
    generation,
    epoch,
    unused,
    cut_off,
    committed,
    lease_end,
    secret,
    lapsed,
    emptied,
    sweep,
    reserved
});

impl Control {
    /// Ends all flows because no more packets will come. Flows that the ring has no room for wait for the next sweep.
    pub const NO_MORE_PACKETS: u32 = 1;

    /// Ends all flows because packets were missed, whether or not the ring has room.
    pub const PACKETS_MISSED: u32 = 2;

    /// The `lease_end` of a lease that has run out: a time long ago.
    pub const LAPSED: u64 = 1;
}

const _: () = assert!(size_of::<Control>() == 64);
