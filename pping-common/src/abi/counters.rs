//! Counters per monitored interface, one copy per CPU.

use crate::{
    flow::Reason,
    layout::layout,
    method::Method,
    parse::{Direction, Protocol, Untracked},
};

/// What the ring buffer had no room for.
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

/// What is counted of an interface. Arrays are indexed by the enums named beside them, and where the
/// index is computed their length is a power of two, which keeps the verifier content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Packets by [`Direction`] and [`Protocol`].
    pub packets: [[u64; Protocol::COUNT]; 2],
    /// Bytes of whole frames by [`Direction`] and [`Protocol`].
    pub bytes: [[u64; Protocol::COUNT]; 2],
    /// IP packets by [`Direction`] and ECN codepoint (RFC 3168, 5: Not-ECT, ECT(1), ECT(0), CE).
    pub ecn: [[u64; 4]; 2],
    /// Packets that are not measured, by [`Untracked`].
    pub untracked: [u64; Untracked::COUNT],
    /// Samples by [`Direction`] that matched and [`Method`].
    pub samples: [[u64; Method::COUNT]; 2],
    /// Flows of which a first direction opened, by [`Reason`].
    pub opened: [u64; Reason::COUNT],
    /// Flows of which the last direction closed, by [`Reason`].
    pub closed: [u64; Reason::COUNT],
    /// Flow entries made, IPv4 and IPv6.
    pub entries_made: [u64; 2],
    /// Flow entries deleted, IPv4 and IPv6.
    pub entries_deleted: [u64; 2],
    /// Identifiers not recorded since all slots of the flow direction were taken.
    pub pending_full: u64,
    /// Packets not matched since another CPU was busy with their flow.
    pub contended: u64,
    /// TCP segments retransmitted, of flows that are followed, by [`Direction`].
    pub retransmissions: [u64; 2],
    /// TCP segments that arrived reordered, of flows that are followed, by [`Direction`].
    pub reordered: [u64; 2],
    /// Unanswered flows that were evicted to make room for others.
    pub evicted: u64,
    /// DNS queries by [`Direction`].
    pub dns_queries: [u64; 2],
    /// DNS queries that were not answered in time.
    pub dns_unanswered: u64,
    /// DNS responses to pending queries, by response code.
    pub dns_responses: [u64; 16],
    /// Flow directions aggregated as those of another group for want of room.
    pub groups_refused: u64,
    /// Samples that no series had room for.
    pub unaggregated: u64,
    /// Events lost, by [`Lost`].
    pub lost: [u64; Lost::COUNT],
}

layout!(Counters {
    packets,
    bytes,
    ecn,
    untracked,
    samples,
    opened,
    closed,
    entries_made,
    entries_deleted,
    pending_full,
    contended,
    retransmissions,
    reordered,
    evicted,
    dns_queries,
    dns_unanswered,
    dns_responses,
    groups_refused,
    unaggregated,
    lost
});

impl Counters {
    /// Nothing counted.
    pub const ZERO: Self = Self {
        packets: [[0; Protocol::COUNT]; 2],
        bytes: [[0; Protocol::COUNT]; 2],
        ecn: [[0; 4]; 2],
        untracked: [0; Untracked::COUNT],
        samples: [[0; Method::COUNT]; 2],
        opened: [0; Reason::COUNT],
        closed: [0; Reason::COUNT],
        entries_made: [0; 2],
        entries_deleted: [0; 2],
        pending_full: 0,
        contended: 0,
        retransmissions: [0; 2],
        reordered: [0; 2],
        evicted: 0,
        dns_queries: [0; 2],
        dns_unanswered: 0,
        dns_responses: [0; 16],
        groups_refused: 0,
        unaggregated: 0,
        lost: [0; Lost::COUNT],
    };

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

    /// Adds what another CPU or interface counted.
    pub fn add(&mut self, other: &Self) {
        for direction in 0..2 {
            add(&mut self.packets[direction], &other.packets[direction]);
            add(&mut self.bytes[direction], &other.bytes[direction]);
            add(&mut self.ecn[direction], &other.ecn[direction]);
            add(&mut self.samples[direction], &other.samples[direction]);
        }
        add(&mut self.untracked, &other.untracked);
        add(&mut self.opened, &other.opened);
        add(&mut self.closed, &other.closed);
        add(&mut self.entries_made, &other.entries_made);
        add(&mut self.entries_deleted, &other.entries_deleted);
        self.pending_full += other.pending_full;
        self.contended += other.contended;
        add(&mut self.retransmissions, &other.retransmissions);
        add(&mut self.reordered, &other.reordered);
        self.evicted += other.evicted;
        add(&mut self.dns_queries, &other.dns_queries);
        self.dns_unanswered += other.dns_unanswered;
        add(&mut self.dns_responses, &other.dns_responses);
        self.groups_refused += other.groups_refused;
        self.unaggregated += other.unaggregated;
        add(&mut self.lost, &other.lost);
    }
}

fn add<const N: usize>(sum: &mut [u64; N], other: &[u64; N]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum += other;
    }
}

const _: () = {
    assert!(
        size_of::<Counters>()
            == 8 * (2 * 8
                + 2 * 8
                + 2 * 4
                + 16
                + 2 * 8
                + 8
                + 8
                + 2
                + 2
                + 1
                + 1
                + 2
                + (2 + 1 + 2 + 1 + 16)
                + 2
                + 4)
    );
    assert!(core::mem::offset_of!(Counters, untracked) == 8 * 40);
    assert!(core::mem::offset_of!(Counters, lost) == 8 * 120);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_adds_every_counter() {
        let mut ones = Counters::ZERO;
        ones.packets = [[1; 8]; 2];
        ones.bytes = [[1; 8]; 2];
        ones.ecn = [[1; 4]; 2];
        ones.untracked = [1; 16];
        ones.samples = [[1; 8]; 2];
        ones.opened = [1; 8];
        ones.closed = [1; 8];
        ones.entries_made = [1; 2];
        ones.entries_deleted = [1; 2];
        ones.pending_full = 1;
        ones.contended = 1;
        ones.retransmissions = [1; 2];
        ones.reordered = [1; 2];
        ones.evicted = 1;
        ones.dns_queries = [1; 2];
        ones.dns_unanswered = 1;
        ones.dns_responses = [1; 16];
        ones.groups_refused = 1;
        ones.unaggregated = 1;
        ones.lost = [1; 4];
        let mut sum = Counters::ZERO;
        sum.add(&ones);
        assert_eq!(sum, ones);
        sum.add(&ones);
        assert_ne!(sum, ones);
    }
}
