//! Counters per monitored interface, one copy per CPU.

use crate::{
    flow::Reason,
    layout::layout,
    method::Method,
    parse::{Direction, Protocol, Untracked},
};

/// The kinds of events that the ring can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lost {
    /// RTT events.
    Rtt,
    /// Flow events.
    Flow,
    /// Events at the end of flows.
    End,
}

layout!(
    enum Lost {
        Rtt,
        Flow,
        End,
    }
);

impl Lost {
    /// The length of an array by kinds: how many there are, rounded up to a power of two.
    pub const COUNT: usize = 4;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Rtt, Self::Flow, Self::End];
}

/// A counter, or an array of counters.
trait Count {
    const ZERO: Self;

    fn add(&mut self, other: &Self);
}

impl Count for u64 {
    const ZERO: Self = 0;

    fn add(&mut self, other: &Self) {
        *self += other;
    }
}

impl<T: Count + Copy, const N: usize> Count for [T; N] {
    const ZERO: Self = [T::ZERO; N];

    fn add(&mut self, other: &Self) {
        for (sum, other) in self.iter_mut().zip(other) {
            sum.add(other);
        }
    }
}

/// Defines [`Counters`] by its fields.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident: $type:ty,)+) => {
        /// The counters of an interface. Arrays are indexed by the enums named beside them, and where the index is computed
        /// their length is a power of two, which keeps the verifier content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct Counters {
            $($(#[$doc])+ pub $name: $type,)+
        }

        layout!(Counters { $($name),+ });

        impl Counters {
            /// Nothing counted.
            pub const ZERO: Self = Self { $($name: Count::ZERO,)+ };

            /// Adds what another CPU or interface counted.
            pub fn add(&mut self, other: &Self) {
                $(self.$name.add(&other.$name);)+
            }
        }
    };
}

counters! {
    /// Packets by [`Direction`] and [`Protocol`].
    packets: [[u64; Protocol::COUNT]; 2],
    /// Bytes of whole frames by [`Direction`] and [`Protocol`].
    bytes: [[u64; Protocol::COUNT]; 2],
    /// IP packets by [`Direction`] and ECN codepoint (RFC 3168, 5: Not-ECT, ECT(1), ECT(0), CE).
    ecn: [[u64; 4]; 2],
    /// Packets that are not measured, by [`Untracked`].
    untracked: [u64; Untracked::COUNT],
    /// Samples by [`Direction`] that matched and [`Method`].
    samples: [[u64; Method::COUNT]; 2],
    /// Flows of which a first direction opened, by [`Reason`].
    opened: [u64; Reason::COUNT],
    /// Flows of which the last direction closed, by [`Reason`].
    closed: [u64; Reason::COUNT],
    /// Flow entries made, IPv4 and IPv6.
    entries_made: [u64; 2],
    /// Flow entries deleted, IPv4 and IPv6.
    entries_deleted: [u64; 2],
    /// Identifiers not recorded since all slots of the flow direction were taken.
    pending_full: u64,
    /// Identifiers not recorded since the pool of what is pending had no entry for their flow.
    no_pending: u64,
    /// Packets not matched since another CPU was busy with their flow.
    contended: u64,
    /// TCP segments retransmitted, of flows that are followed, by [`Direction`].
    retransmissions: [u64; 2],
    /// TCP segments that arrived reordered, of flows that are followed, by [`Direction`].
    reordered: [u64; 2],
    /// Unanswered flows that were evicted to make room for others.
    evicted: u64,
    /// DNS queries by [`Direction`].
    dns_queries: [u64; 2],
    /// DNS queries that were not answered in time.
    dns_unanswered: u64,
    /// DNS responses to pending queries, by response code.
    dns_responses: [u64; 16],
    /// Flow directions aggregated as those of another group for want of room.
    groups_refused: u64,
    /// Samples that no series had room for.
    unaggregated: u64,
    /// Events lost, by [`Lost`].
    lost: [u64; Lost::COUNT],
}

impl Counters {
    /// Counts a packet: `protocol` is the number of its [`Protocol`], below [`Protocol::COUNT`], and `len` its length.
    #[inline(always)]
    pub fn packet(&mut self, direction: Direction, protocol: usize, len: usize, traffic_class: u8) {
        let direction = direction as usize;
        self.packets[direction][protocol] += 1;
        self.bytes[direction][protocol] += len as u64;
        if protocol != Protocol::NonIp as usize {
            self.ecn[direction][usize::from(traffic_class & 3)] += 1;
        }
    }

    /// The counters of segments sent again, and of segments that others overtook.
    #[inline(always)]
    pub fn segments(&mut self, direction: Direction) -> (&mut u64, &mut u64) {
        let direction = direction as usize;
        (&mut self.retransmissions[direction], &mut self.reordered[direction])
    }
}

const _: () = {
    assert!(size_of::<Counters>() == 8 * 125);
    assert!(core::mem::offset_of!(Counters, untracked) == 8 * 40);
    assert!(core::mem::offset_of!(Counters, lost) == 8 * 121);
};

#[cfg(test)]
mod tests {
    use core::mem;

    use super::*;

    #[test]
    fn adding_adds_every_counter() {
        // SAFETY: nothing but numbers, without padding.
        let ones: Counters = unsafe { mem::transmute([1_u64; size_of::<Counters>() / 8]) };
        let mut sum = Counters::ZERO;
        sum.add(&ones);
        assert_eq!(sum, ones);
        sum.add(&ones);
        assert_ne!(sum, ones);
    }
}
