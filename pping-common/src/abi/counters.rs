//! Counters per watched interface, one copy per CPU.

use super::timed::{PacketProgram, Timed};
use crate::{
    flow::Reason,
    layout::{layout, numbered},
    method::Method,
    parse::{Direction, Protocol, Untracked},
};

numbered! {
    /// The kinds of events that the ring can lose.
    pub enum Lost {
        /// RTT events.
        Rtt,
        /// Flow events.
        Flow,
        /// Events at the end of flows.
        End,
    }
}

/// A counter, or an array of counters.
trait Count {
    const ZERO: Self;

    fn add(&mut self, other: &Self);

    fn subtract(&mut self, earlier: &Self);
}

impl Count for u64 {
    const ZERO: Self = 0;

    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn subtract(&mut self, earlier: &Self) {
        *self = self.saturating_sub(*earlier);
    }
}

impl<T: Count + Copy, const N: usize> Count for [T; N] {
    const ZERO: Self = [T::ZERO; N];

    fn add(&mut self, other: &Self) {
        for (sum, other) in self.iter_mut().zip(other) {
            sum.add(other);
        }
    }

    fn subtract(&mut self, earlier: &Self) {
        for (count, earlier) in self.iter_mut().zip(earlier) {
            count.subtract(earlier);
        }
    }
}

/// Defines counters by their fields.
macro_rules! counters {
    ($(#[$doc:meta])+ $counters:ident { $($(#[$field:meta])+ $name:ident: $type:ty,)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C, align(64))]
        pub struct $counters {
            $($(#[$field])+ pub $name: $type,)+
        }

        layout!($counters { $($name),+ });

        impl $counters {
            /// Nothing counted.
            pub const ZERO: Self = Self { $($name: Count::ZERO,)+ };

            /// Adds the counts of another CPU or interface.
            pub fn add(&mut self, other: &Self) {
                $(self.$name.add(&other.$name);)+
            }

            /// Takes away what was counted earlier.
            pub fn subtract(&mut self, earlier: &Self) {
                $(self.$name.subtract(&earlier.$name);)+
            }
        }

        impl Count for $counters {
            const ZERO: Self = Self::ZERO;

            fn add(&mut self, other: &Self) {
                self.add(other);
            }

            fn subtract(&mut self, earlier: &Self) {
                self.subtract(earlier);
            }
        }
    };
}

counters! {
    /// The packets of one direction and protocol. It is one cache line, and the only one of the counters that most
    /// packets touch.
    PacketCounters {
        /// Packets by ECN codepoint (RFC 3168, 5: Not-ECT, ECT(1), ECT(0), CE); packets that are not IP count under the
        /// first.
        by_ecn: [u64; 4],
        /// Bytes of whole frames.
        bytes: u64,
        /// Fills up the cache line.
        reserved: [u64; 3],
    }
}

counters! {
    /// The counters of an interface. Arrays are indexed by the enums named beside them. If the index is computed, the
    /// array's length is a power of two, by which the verifier knows that the index is in range.
    Counters {
        /// Packets by [`Direction`] and [`Protocol`].
        traffic: [[PacketCounters; Protocol::COUNT]; 2],
        /// Packets that are not measured, by the reason [`Untracked`].
        untracked: [u64; Untracked::COUNT],
        /// Samples by [`Direction`] that matched and [`Method`].
        samples: [[u64; Method::COUNT]; 2],
        /// Flows that opened, by the [`Reason`] of their first direction.
        opened: [u64; Reason::COUNT],
        /// Flows that closed, by the [`Reason`] of their last direction.
        closed: [u64; Reason::COUNT],
        /// Flow entries inserted, IPv4 and IPv6.
        entries_made: [u64; 2],
        /// Flow entries removed, IPv4 and IPv6.
        entries_deleted: [u64; 2],
        /// Identifiers not recorded, or given up, because all slots of the flow direction were taken.
        pending_full: u64,
        /// Identifiers not recorded because the pool had no entry left for their flow.
        no_pending: u64,
        /// Identifiers given up for a newer one: a later one had been echoed, or they had waited for long.
        gave_way: u64,
        /// Packets not matched because another CPU had the lock of their flow.
        contended: u64,
        /// TCP segments retransmitted in flows that are tracked, by [`Direction`].
        retransmissions: [u64; 2],
        /// TCP segments that arrived reordered in flows that are tracked, by [`Direction`].
        reordered: [u64; 2],
        /// Flows that were evicted, before they were proved, to make room for others.
        evicted: u64,
        /// DNS queries by [`Direction`].
        dns_queries: [u64; 2],
        /// DNS queries that were not answered in time.
        dns_unanswered: u64,
        /// DNS queries that were pending when newer ones took their place, or that found no place.
        dns_given_up: u64,
        /// DNS responses to pending queries, by response code.
        dns_responses: [u64; 16],
        /// Flow directions that count in the group `other` because their own group found no room.
        groups_refused: u64,
        /// Samples that found no room in any series.
        unaggregated: u64,
        /// Events lost, by [`Lost`].
        lost: [u64; Lost::COUNT],
        /// Packets that were timed, by [`PacketProgram`].
        timed_packets: [u64; PacketProgram::COUNT],
        /// The time that these packets took, ns.
        timed_ns: [u64; PacketProgram::COUNT],
        /// TCP flows that ended with segments of one endpoint only, and more than a SYN.
        one_way_flows: u64,
        /// Echo requests recorded; one that is sent again while it is pending is none.
        echo_requests: u64,
        /// Replies to pending echo requests, whether or not a limit forbade the sample.
        echo_replies: u64,
        /// Echo requests given up although a reply could still come: too many were under way.
        echo_not_awaited: u64,
        /// Packets not recorded because they go to an address of this host, without `--include-local`.
        to_this_host: u64,
        /// TCP flows that ended before the timestamps of an end that sent many segments had moved.
        still_timestamps: u64,
        /// Fills up the last cache line.
        reserved: [u64; 3],
    }
}

impl PacketCounters {
    /// The index in [`PacketCounters::by_ecn`] for the traffic class of an IP header.
    #[inline(always)]
    pub const fn codepoint(traffic_class: u8) -> usize {
        (traffic_class & 3) as usize
    }

    /// The number of packets.
    pub fn packets(&self) -> u64 {
        self.by_ecn.iter().sum()
    }
}

impl Counters {
    /// Counts a packet of `len` bytes. `protocol` is the number of its [`Protocol`], below [`Protocol::COUNT`].
    #[inline(always)]
    pub fn packet(&mut self, direction: Direction, protocol: usize, len: usize, traffic_class: u8) {
        let line = &mut self.traffic[direction as usize][protocol];
        line.by_ecn[PacketCounters::codepoint(traffic_class)] += 1;
        line.bytes += len as u64;
    }

    /// The packets of a direction and a protocol.
    pub fn of(&self, direction: Direction, protocol: Protocol) -> &PacketCounters {
        &self.traffic[direction as usize][protocol as usize]
    }

    /// The packets of a direction.
    pub fn packets(&self, direction: Direction) -> u64 {
        self.traffic[direction as usize].iter().map(PacketCounters::packets).sum()
    }

    /// The packets of both directions.
    pub fn all_packets(&self) -> u64 {
        Direction::ALL.map(|direction| self.packets(direction)).iter().sum()
    }

    /// The IP packets of a direction by ECN codepoint.
    pub fn ecn(&self, direction: Direction) -> [u64; 4] {
        let mut sum = [0; 4];
        for (protocol, line) in self.traffic[direction as usize].iter().enumerate() {
            if protocol != Protocol::NonIp as usize {
                sum.add(&line.by_ecn);
            }
        }
        sum
    }
}

const _: () = {
    assert!(size_of::<PacketCounters>() == 64);
    assert!(core::mem::offset_of!(Counters, traffic) == 0);
    // Counters that few packets touch lie after the lines that most packets touch.
    assert!(core::mem::offset_of!(Counters, untracked) == 64 * 2 * Protocol::COUNT);
    assert!(core::mem::offset_of!(Counters, lost) == 64 * 2 * Protocol::COUNT + 8 * 83);
    assert!(size_of::<Counters>() == 64 * 2 * Protocol::COUNT + 8 * 104);
};

impl Counters {
    /// The timed packets of a program.
    pub fn timed_by(&self, program: PacketProgram) -> Timed {
        Timed { packets: self.timed_packets[program as usize], ns: self.timed_ns[program as usize] }
    }

    /// The timed packets of all programs.
    pub fn timed(&self) -> Timed {
        Timed { packets: self.timed_packets.iter().sum(), ns: self.timed_ns.iter().sum() }
    }
}

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
        sum.subtract(&ones);
        assert_eq!(sum, ones);
        sum.subtract(&ones);
        sum.subtract(&ones);
        assert_eq!(sum, Counters::ZERO);
    }

    #[test]
    fn packets_are_counted_by_direction_protocol_and_codepoint() {
        let mut counters = Counters::ZERO;
        counters.packet(Direction::Egress, Protocol::Tcp as usize, 1500, 0xb8 | 3);
        counters.packet(Direction::Egress, Protocol::Udp as usize, 100, 0);
        counters.packet(Direction::Egress, Protocol::Tcp as usize, 60, 0);
        counters.packet(Direction::Egress, Protocol::NonIp as usize, 42, 0);
        counters.packet(Direction::Ingress, Protocol::Icmp as usize, 84, 1);
        let tcp = counters.of(Direction::Egress, Protocol::Tcp);
        assert_eq!((tcp.packets(), tcp.bytes), (2, 1560));
        assert_eq!(counters.of(Direction::Egress, Protocol::NonIp).packets(), 1);
        assert_eq!(Direction::ALL.map(|direction| counters.packets(direction)), [1, 4]);
        assert_eq!(counters.ecn(Direction::Egress), [2, 0, 0, 1], "without what is not IP");
        assert_eq!(counters.ecn(Direction::Ingress), [0, 1, 0, 0]);
    }
}
