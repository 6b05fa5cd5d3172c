//! What is kept of one direction of a flow.

use super::{Latest, Lifecycle, Reason};
use crate::{
    rtt::{Leg, Pending, Spin, TsvalState},
    series::{SeriesRef, Traffic},
};

/// What is kept of the packets that one endpoint sends. What most packets touch is first, in a cache line: up to whether anything
/// waits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FlowDirection {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent above the transport header.
    pub bytes: u64,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Packets marked for congestion (RFC 3168, 5: CE).
    pub ce_packets: u32,
    /// What the latest packets were like.
    pub latest: Latest,
    /// The newest `TSval` seen, where `tsval_state` says that there is one.
    pub newest_tsval: u32,
    /// What is known of `newest_tsval`.
    pub tsval_state: TsvalState,
    /// How far the life of this direction is.
    pub lifecycle: Lifecycle,
    /// Why this direction counts as opened.
    pub opened_by: Reason,
    /// Whether a segment other than SYN was sent: from then on a SYN begins another connection.
    pub established: bool,
    /// What it began a handshake with.
    pub leg: Leg,
    /// What this endpoint sent and still waits for its echo.
    pub pending: Pending,
    /// When the first packet was sent, ns.
    pub opened_at: u64,
    /// When the last timestamp was recorded, ns; 0 before the first.
    pub recorded_at: u64,
    /// The lowest RTT of what this endpoint sent, ns; [`FlowDirection::NO_RTT`] before the first.
    pub min_rtt: u64,
    /// The smoothed RTT (RFC 6298, 2) of what this endpoint sent, ns; 0 before the first.
    pub smoothed_rtt: u64,
    /// Where the samples of what this endpoint sent are aggregated.
    pub series: SeriesRef,
    /// As much of `bytes` as is part of a series.
    pub folded_bytes: u64,
    /// As much of `packets`, modulo 2^32.
    pub folded_packets: u32,
    /// As much of `retransmissions`.
    pub folded_retransmissions: u32,
    /// As much of `ce_packets`.
    pub folded_ce_packets: u32,
    /// Segments that others overtook on the way.
    pub reordered: u32,
    /// What its spin bit is like.
    pub spin: Spin,
}

impl FlowDirection {
    /// The lowest RTT while there is none. Not 0, which is an RTT where a capture's clock is coarse.
    pub const NO_RTT: u64 = u64::MAX;

    /// A direction in which nothing was seen yet.
    pub const EMPTY: Self = Self {
        packets: 0,
        bytes: 0,
        retransmissions: 0,
        ce_packets: 0,
        latest: Latest::EMPTY,
        newest_tsval: 0,
        tsval_state: TsvalState::Unknown,
        lifecycle: Lifecycle::Unseen,
        opened_by: Reason::FirstObserved,
        established: false,
        leg: Leg::UNSEEN,
        pending: Pending::EMPTY,
        opened_at: 0,
        recorded_at: 0,
        min_rtt: Self::NO_RTT,
        smoothed_rtt: 0,
        series: SeriesRef::NONE,
        folded_bytes: 0,
        folded_packets: 0,
        folded_retransmissions: 0,
        folded_ce_packets: 0,
        reordered: 0,
        spin: Spin::UNSEEN,
    };

    /// What was sent since this was last asked for, and for one asker only. Less than 2^32 packets, since those are
    /// counted modulo that.
    #[inline(always)]
    pub fn fold(&mut self) -> Traffic {
        let (packets, bytes) = (self.packets as u32, self.bytes);
        let (retransmissions, ce_packets) = (self.retransmissions, self.ce_packets);
        let traffic = Traffic {
            packets: u64::from(packets.wrapping_sub(self.folded_packets)),
            bytes: bytes.wrapping_sub(self.folded_bytes),
            retransmissions: u64::from(retransmissions.wrapping_sub(self.folded_retransmissions)),
            ce: u64::from(ce_packets.wrapping_sub(self.folded_ce_packets)),
        };
        self.folded_packets = packets;
        self.folded_bytes = bytes;
        self.folded_retransmissions = retransmissions;
        self.folded_ce_packets = ce_packets;
        traffic
    }

    /// Takes a sample into the lowest and the smoothed RTT.
    #[inline(always)]
    pub(crate) fn take_sample(&mut self, rtt: u64) {
        // RFC 6298, 2: the first sample is taken as it is, each later one moves by 1/8 of the difference.
        self.smoothed_rtt = match self.min_rtt {
            Self::NO_RTT => rtt,
            _ => self.smoothed_rtt - self.smoothed_rtt / 8 + rtt / 8,
        };
        if rtt < self.min_rtt {
            self.min_rtt = rtt;
        }
    }
}

const _: () = {
    assert!(size_of::<FlowDirection>() == 240);
    assert!(core::mem::offset_of!(FlowDirection, pending) == 56);
    assert!(core::mem::offset_of!(FlowDirection, series) == 192);
};
