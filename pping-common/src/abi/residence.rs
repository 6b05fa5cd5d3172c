//! Times that packets spend in this host, of `--residence`. See docs/residence.md.

use crate::{hist::BINS, limits::MAX_INTERFACES, series::SeriesRef};

/// A part of the time that a packet spends in this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// From the ingress hook of one watched interface to the egress hook of another.
    Forwarding,
    /// From the root qdisc's enqueue to its dequeue.
    Queue,
}

impl Part {
    /// Both, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Forwarding, Self::Queue];

    /// The index of an interface's times among all [`Residence`]s.
    #[inline(always)]
    pub const fn index(self, interface_id: u16) -> u32 {
        self as u32 * MAX_INTERFACES + interface_id as u32
    }
}

/// The times of one part and of one interface, by which the packets leave. All counts only go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Residence {
    /// The sum of all times, ns.
    pub sum: u64,
    /// Packets that were followed. Those of the queue that have neither a time nor a loss are still queued, or were forgotten.
    pub followed: u64,
    /// Followed packets that were dropped in the queue.
    pub dropped: u64,
    /// Followed packets that were lost from sight: another one took their entry, or their memory.
    pub replaced: u64,
    /// Times by [`crate::hist::bin`].
    pub bins: [u64; BINS],
}

impl Residence {
    /// No times.
    pub const ZERO: Self = Self { sum: 0, followed: 0, dropped: 0, replaced: 0, bins: [0; BINS] };
}

/// A packet that is followed through a queue. Each word but the first is combined with the time by exclusive or. So an entry that two
/// CPUs wrote at once fits no packet, and needs no lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Followed {
    /// When it was enqueued, ns; 0 in a free entry.
    pub time: u64,
    /// The address of its `sk_buff`.
    pub skb: u64,
    /// A hash of what the queue does not change of it.
    pub content: u64,
    /// Whose the time is: an [`Owner`].
    pub owner: u64,
}

/// The interface and the series that a packet's time in the queue is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Owner(pub u64);

impl Owner {
    const HAS_SERIES: u64 = 1 << 16;
    const SERIES_SHIFT: u32 = 17;

    /// An interface, and no series.
    #[inline(always)]
    pub fn of_interface(interface_id: u16) -> Self {
        Self(interface_id.into())
    }

    /// Also the series at an index, in its `life`th use.
    #[inline(always)]
    #[must_use]
    pub fn with_series(self, index: u32, life: u32) -> Self {
        Self(self.0 | Self::HAS_SERIES | SeriesRef::without_purpose(index, life).0 << Self::SERIES_SHIFT)
    }

    /// The id of the interface.
    #[inline(always)]
    pub fn interface_id(self) -> u16 {
        self.0 as u16
    }

    /// Whether there is a series.
    #[inline(always)]
    pub fn has_series(self) -> bool {
        self.0 & Self::HAS_SERIES != 0
    }

    /// The series, where there is one. Not an `Option`, whose payload is not there for the verifier where it is none.
    #[inline(always)]
    pub fn series(self) -> SeriesRef {
        SeriesRef(self.0 >> Self::SERIES_SHIFT)
    }
}

/// A packet that came in and may leave again. Combined with the time as in [`Followed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Passing {
    /// When it came in, ns; 0 in a free entry.
    pub time: u64,
    /// A hash of what NAT leaves alone.
    pub content: u64,
    /// The id of the interface that it came in by.
    pub interface_id: u64,
}

/// Where the running kernel has the fields that are read, bytes from the start of their structures.
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
    /// No offset, but the number of the network namespace whose interfaces are watched: each counts its own from 1.
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
        let interface = Owner::of_interface(u16::MAX);
        assert_eq!((interface.interface_id(), interface.has_series()), (u16::MAX, false));
        let owner = interface.with_series(SeriesRef::MAX_SERIES - 1, u32::MAX);
        let series = owner.series();
        assert_eq!((owner.interface_id(), owner.has_series()), (u16::MAX, true));
        assert_eq!(series.index(), SeriesRef::MAX_SERIES - 1);
        assert!(series.is_alive(u32::MAX) && !series.is_alive(0));
        assert!(Owner::of_interface(3).with_series(0, 0).has_series());
    }
}
