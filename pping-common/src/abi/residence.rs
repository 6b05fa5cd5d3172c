//! Residence times: how long packets stay in this host, for `--residence`. The word is that of
//! IEEE 1588 and RFC 8169 (2). See docs/residence.md.

use crate::{hist::BINS, layout::listed, series::SeriesRef};

listed! {
    /// A part of the time that a packet spends in this host.
    pub enum Part {
        /// From the ingress attach point of one watched interface to the egress attach point of another.
        Forwarding,
        /// From the root qdisc's enqueue to its dequeue.
        Queue,
    }
}

impl Part {
    /// Returns the index of an interface's times among all [`Residence`]s.
    #[inline(always)]
    pub const fn index(self, interface_id: u16) -> u32 {
        interface_id as u32 * Self::ALL.len() as u32 + self as u32
    }
}

/// The times of one part, of packets that leave by one interface. All counts only go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Residence {
    /// The sum of all times, ns.
    pub sum: u64,
    /// Packets that were followed. In the queue, those with neither a time nor a loss are still queued, or were
    /// forgotten.
    pub followed: u64,
    /// Followed packets that were dropped in the queue.
    pub dropped: u64,
    /// Followed packets that were lost: another packet took their entry or reused their memory.
    pub replaced: u64,
    /// Times by [`crate::hist::bin`].
    pub bins: [u64; BINS],
}

impl Residence {
    /// No times.
    pub const ZERO: Self = Self { sum: 0, followed: 0, dropped: 0, replaced: 0, bins: [0; BINS] };
}

/// A packet that is followed through a queue. Each word but the first is combined with the time by exclusive or. So an
/// entry that two CPUs wrote at once fits no packet, and entries need no lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Followed {
    /// When it was enqueued, ns; 0 in a free entry.
    pub time: u64,
    /// The address of its `sk_buff`.
    pub skb: u64,
    /// A hash of the content that the queue does not change.
    pub content: u64,
    /// The interface and series that the time belongs to: an [`ResidenceOwner`].
    pub owner: u64,
}

/// The interface and the series that a packet's time in the queue is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ResidenceOwner(pub u64);

impl ResidenceOwner {
    const HAS_SERIES: u64 = 1 << 16;
    const SERIES_SHIFT: u32 = 17;

    /// Creates an owner with an interface and no series.
    #[inline(always)]
    pub fn of_interface(interface_id: u16) -> Self {
        Self(interface_id.into())
    }

    /// Adds the series at an index, in its `generation`th use.
    #[inline(always)]
    #[must_use]
    pub fn with_series(self, index: u32, generation: u32) -> Self {
        Self(
            self.0 | Self::HAS_SERIES | SeriesRef::without_purpose(index, generation).0 << Self::SERIES_SHIFT,
        )
    }

    /// The interface id.
    #[inline(always)]
    pub fn interface_id(self) -> u16 {
        self.0 as u16
    }

    /// Whether the owner has a series.
    #[inline(always)]
    pub fn has_series(self) -> bool {
        self.0 & Self::HAS_SERIES != 0
    }

    /// The series, if there is one. Not an `Option`: the verifier rejects reading its uninitialised payload.
    #[inline(always)]
    pub fn series(self) -> SeriesRef {
        SeriesRef(self.0 >> Self::SERIES_SHIFT)
    }
}

/// A packet that came in and may leave again. Its words are combined with the time as in [`Followed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Passing {
    /// When it came in, ns; 0 in a free entry.
    pub time: u64,
    /// A hash of the content that NAT leaves alone.
    pub content: u64,
    /// The id of the interface that the packet came in by.
    pub interface_id: u64,
}

/// Offsets of the fields that the programs read, in bytes from the start of their structures in the running kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Offsets {
    /// `sk_buff.next`
    pub skb_next: u32,
    /// `sk_buff.head`
    pub skb_head: u32,
    /// `sk_buff.network_header`
    pub skb_network_header: u32,
    /// `netdev_queue.dev`
    pub queue_dev: u32,
    /// `net_device.ifindex`
    pub dev_ifindex: u32,
    /// `net_device.mtu`
    pub dev_mtu: u32,
    /// `net_device.nd_net`
    pub dev_net: u32,
    /// `net.ns.inum`
    pub net_inum: u32,
    /// The number of the network namespace whose interfaces are watched (no offset): each namespace counts its interfaces
    /// from 1.
    pub namespace: u32,
}

const _: () = {
    assert!(size_of::<Residence>() == 8 * (4 + BINS));
    assert!(size_of::<Followed>() == 32);
    assert!(size_of::<Passing>() == 24);
    assert!(size_of::<Offsets>() == 36);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_its_interface_and_the_series_that_it_was_given() {
        let interface = ResidenceOwner::of_interface(u16::MAX);
        assert_eq!((interface.interface_id(), interface.has_series()), (u16::MAX, false));
        let owner = interface.with_series(SeriesRef::MAX_SERIES - 1, u32::MAX);
        let series = owner.series();
        assert_eq!((owner.interface_id(), owner.has_series()), (u16::MAX, true));
        assert_eq!(series.index(), SeriesRef::MAX_SERIES - 1);
        assert!(series.is_alive(u32::MAX) && !series.is_alive(0));
        assert!(ResidenceOwner::of_interface(3).with_series(0, 0).has_series());
    }
}
