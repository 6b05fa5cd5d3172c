//! The part of a flow that most packets touch. In an IPv4 flow it fits into one cache line, together with the key.

use crate::{
    flow::{
        key::{Endpoint, FlowKey},
        memory::{
            direction_state::DirectionState, latest::Latest, lifecycle::Lifecycle,
            protocol_state::ProtocolState,
        },
    },
    layout::layout,
    parse::{Direction, Segment},
};

/// What a packet reads without the lock. Each field was current at some time since the packet came.
#[derive(Clone, Copy, Debug)]
pub struct FlowSnapshot {
    /// The flow direction of the packet.
    pub forward: HotDirection,
    /// The state of the other direction.
    pub reverse: DirectionState,
    /// The highest sequence number of the other direction.
    pub reverse_end: u32,
    /// The latest packet of the packet's direction.
    pub latest: Latest,
    /// The latest packet of the other direction.
    pub reverse_latest: Latest,
    /// Not 0 if a packet was missed.
    pub contended: u8,
    /// What is known of TCP or UDP.
    pub protocol_state: ProtocolState,
}

/// The part of a flow direction that most packets read.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HotDirection {
    /// The newest `TSval` seen, if the state says that there is one. In a QUIC flow, the lower half of the time of the
    /// last recording.
    pub newest_tsval: u32,
    /// The highest [`Segment::sequence_end`](crate::parse::Segment::sequence_end) seen, if the state says that there is
    /// one. Written without the lock. In a QUIC flow, the higher half of the time of the last recording.
    pub sequence_end: u32,
    /// The state.
    pub state: DirectionState,
}

layout!(HotDirection { newest_tsval, sequence_end, state });

impl HotDirection {
    /// Nothing was sent yet.
    pub const EMPTY: Self = Self { newest_tsval: 0, sequence_end: 0, state: DirectionState::EMPTY };
}

/// The part of a flow that most packets read.
///
/// Several CPUs may use it at once. `latest`, `contended`, `traffic`, TCP's `sequence_end`, and (by compare-and-exchange)
/// `newest_tsval` change without the lock. All else changes only under it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Hot {
    /// The lock of the flow. Only the kernel programs use it.
    pub busy: u32,
    /// The latest packets, by [`Endpoint`].
    pub latest: [Latest; 2],
    /// Not 0 if a packet was missed because another CPU had the lock.
    pub contended: u8,
    /// What is known of TCP or UDP.
    pub protocol_state: ProtocolState,
    /// What each endpoint sent, in the units of [`crate::flow::Sent`].
    pub traffic: [u64; 2],
    /// Both directions, by [`Endpoint`].
    pub directions: [HotDirection; 2],
}

layout!(Hot { busy, latest, contended, protocol_state, traffic, directions });

impl Hot {
    /// A flow that has had no packet.
    pub const EMPTY: Self = Self {
        busy: 0,
        latest: [Latest::NONE; 2],
        contended: 0,
        protocol_state: ProtocolState::UNKNOWN,
        traffic: [0; 2],
        directions: [HotDirection::EMPTY; 2],
    };

    /// The direction in which an endpoint sends.
    #[inline(always)]
    pub fn direction(&self, endpoint: Endpoint) -> &HotDirection {
        endpoint.of(&self.directions)
    }

    /// The same, mutable.
    #[inline(always)]
    pub fn direction_mut(&mut self, endpoint: Endpoint) -> &mut HotDirection {
        endpoint.of_mut(&mut self.directions)
    }

    /// The state of a direction.
    #[inline(always)]
    pub fn state(&self, endpoint: Endpoint) -> DirectionState {
        self.direction(endpoint).state
    }

    /// The latest packet of an endpoint.
    #[inline(always)]
    pub fn latest(&self, endpoint: Endpoint) -> Latest {
        *endpoint.of(&self.latest)
    }

    /// Returns what a packet of `from` reads.
    #[inline(always)]
    pub fn snapshot(&self, from: Endpoint) -> FlowSnapshot {
        FlowSnapshot {
            forward: *self.direction(from),
            reverse: self.state(from.other()),
            reverse_end: self.direction(from.other()).sequence_end,
            latest: self.latest(from),
            reverse_latest: self.latest(from.other()),
            contended: self.contended,
            protocol_state: self.protocol_state,
        }
    }

    /// Whether any direction is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.directions.iter().any(|direction| direction.state.lifecycle() == Lifecycle::OPEN)
    }

    /// Calls [`is_proved`] with the states of this flow.
    #[inline(always)]
    pub fn is_proved(&self, number: u8) -> bool {
        is_proved(self.state(Endpoint::Low), self.state(Endpoint::High), number)
    }

    /// Whether only one endpoint of a TCP flow sent segments, and more than a SYN: the other direction passes elsewhere.
    /// `number` is the flow's IP protocol number, `have_sent` says which endpoints have sent.
    #[inline(always)]
    pub fn is_one_way(&self, number: u8, have_sent: [bool; 2]) -> bool {
        let [low, high] = have_sent;
        let is_established = self.directions.iter().any(|direction| direction.state.is_established());
        number == Segment::NUMBER && low != high && is_established
    }

    /// Notes a sweep of a flow, which is of TCP if it `has_segments`. `have_counted` says of which endpoints packets counted since
    /// the one before.
    pub fn sweep_hooks(&mut self, has_segments: bool, have_counted: [bool; 2]) {
        let moves;
        (self.latest, moves) =
            Latest::sweep(self.latest, have_counted, self.traffic.map(|traffic| traffic != 0));
        if moves {
            // Packets that would have counted were left out before, and those that counted may be forged.
            self.contended = 1;
            if has_segments {
                self.directions.iter_mut().for_each(|direction| direction.state.forget_numbers());
            }
        }
    }

    /// Returns the number of the [`Direction`] in which samples of `timed` match: the direction in which packets of the
    /// other endpoint pass. If that has sent none yet (`has_reply` is false), they will pass in the direction opposite to
    /// `timed`'s packets.
    #[inline(always)]
    pub fn matching_direction(&self, timed: Endpoint, has_reply: bool) -> u8 {
        if has_reply {
            return self.latest(timed.other()).direction();
        }
        if self.latest(timed).direction() == Direction::Ingress as u8 {
            Direction::Egress as u8
        } else {
            Direction::Ingress as u8
        }
    }
}

/// Whether a flow with these directions is proved. Flows that are not are evicted if there are too many. `number` is the IP
/// protocol number.
///
/// A TCP flow is proved once both ends have sent a segment after their SYN, so it does not matter whether the handshake was
/// seen. An answered SYN is not enough: a SYN and a SYN-ACK take no more to forge than a SYN. Other protocols have nothing
/// that tells more than an answer.
#[inline(always)]
pub fn is_proved(low: DirectionState, high: DirectionState, number: u8) -> bool {
    if number == Segment::NUMBER {
        low.is_established() && high.is_established()
    } else {
        low.is_begun() || high.is_begun()
    }
}

/// An entry of the table: the key, and the part that most packets read. It is aligned so that an IPv4 entry fits into one
/// cache line and an IPv6 entry into two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct HotEntry<A> {
    /// The key of the flow.
    pub key: FlowKey<A>,
    /// The part that most packets read.
    pub hot: Hot,
}

layout!(HotEntry<A> { key, hot });

const _: () = {
    assert!(size_of::<Hot>() == 48);
    assert!(core::mem::offset_of!(Hot, traffic) == 8);
    assert!(core::mem::offset_of!(Hot, directions) == 24);
    assert!(size_of::<HotEntry<crate::parse::Ipv4>>() == 64);
    assert!(size_of::<HotEntry<crate::parse::Ipv6>>() == 96);
};
