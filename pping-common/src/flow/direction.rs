//! The state of one flow direction.

use super::{
    latest::{Latest, Noted},
    lifecycle::{Lifecycle, Reason},
};
use crate::{
    layout::layout,
    parse::{Kind, Transport},
    rtt::{Leg, Pending, Progress, RttSummary, Spin, TsvalState, is_newer},
    series::{SeriesRef, Traffic},
};

/// ECN codepoint of a packet that met congestion (RFC 3168, 5).
const CE: u8 = 3;

/// The state of one flow direction. The fields that most packets touch come first, in one cache line: up to whether anything
/// waits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FlowDirection {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent above the transport header.
    pub bytes: u64,
    /// Segments retransmitted.
    pub retransmissions: u32,
    /// Packets marked for congestion (RFC 3168, 5: CE).
    pub ce_packets: u32,
    /// The state that the latest packets left.
    pub latest: Latest,
    /// The newest `TSval` seen, where `tsval_state` says that there is one.
    pub newest_tsval: u32,
    /// The state of `newest_tsval`.
    pub tsval_state: TsvalState,
    /// Whether this direction is open.
    pub lifecycle: Lifecycle,
    /// The reason why this direction counts as opened.
    pub opened_by: Reason,
    /// Whether a segment other than SYN was sent: from then on a SYN begins another connection.
    pub established: bool,
    /// Its leg of a handshake.
    pub leg: Leg,
    /// The identifiers that this endpoint sent and that are not echoed yet.
    pub pending: Pending,
    /// When the first packet was sent, ns.
    pub opened_at: u64,
    /// The RTTs of what this endpoint sent.
    pub rtt: RttSummary,
    /// The series for samples of this endpoint's packets.
    pub series: SeriesRef,
    /// As much of `bytes` as is part of a series.
    pub folded_bytes: u64,
    /// As much of `packets`, modulo 2^32.
    pub folded_packets: u32,
    /// As much of `retransmissions`.
    pub folded_retransmissions: u32,
    /// As much of `ce_packets`.
    pub folded_ce_packets: u32,
    /// Segments that arrived reordered.
    pub reordered: u32,
    /// The spin bit of QUIC.
    pub spin: Spin,
}

layout!(FlowDirection {
    packets,
    bytes,
    retransmissions,
    ce_packets,
    latest,
    newest_tsval,
    tsval_state,
    lifecycle,
    opened_by,
    established,
    leg,
    pending,
    opened_at,
    rtt,
    series,
    folded_bytes,
    folded_packets,
    folded_retransmissions,
    folded_ce_packets,
    reordered,
    spin
});

impl FlowDirection {
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
        rtt: RttSummary::EMPTY,
        series: SeriesRef::NONE,
        folded_bytes: 0,
        folded_packets: 0,
        folded_retransmissions: 0,
        folded_ce_packets: 0,
        reordered: 0,
        spin: Spin::UNSEEN,
    };

    /// The traffic since the last call; fewer than 2^32 packets, since they are counted modulo 2^32.
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

    /// Compares a packet of this direction with those before it, and notes it. To be called before [`super::Flow::effect`].
    #[inline(always)]
    pub fn note(&mut self, transport: &Transport, traffic_class: u8, direction: u8) -> Noted {
        let noted = self.look(transport, traffic_class);
        self.put_down(transport, traffic_class, direction, &noted);
        noted
    }

    /// The first half of [`FlowDirection::note`]: what a packet means.
    ///
    /// A segment is a retransmission if all its bytes were sent before, unless it is
    /// - a keep-alive: at most one byte, the one before the next to be sent (RFC 9293, 3.8.4);
    /// - reordered: its timestamp is older than the newest one. Within one tick of the sender's clock, and without timestamps, it
    ///   counts as a retransmission.
    #[inline(always)]
    pub fn look(&self, transport: &Transport, traffic_class: u8) -> Noted {
        let (mut progress, mut is_retransmission, mut is_reordered) = (Progress::None, false, false);
        if transport.kind == Kind::Tcp {
            let segment = &transport.segment;
            progress = self.latest.progress(segment);
            if progress == Progress::Behind {
                let is_late = segment.has_timestamps
                    && self.tsval_state != TsvalState::Unknown
                    && is_newer(self.newest_tsval, segment.timestamps.tsval);
                let is_keep_alive = segment.payload <= 1
                    && segment.sequence_end() == self.latest.sequence_end
                    && !segment.flags.syn()
                    && !segment.flags.fin();
                is_reordered = is_late && !is_keep_alive;
                is_retransmission = !is_late && !is_keep_alive;
            }
        }
        Noted { progress, is_retransmission, is_reordered, is_ce: traffic_class & 3 == CE }
    }

    /// The second half: notes the packet, for the next one to be compared with.
    #[inline(always)]
    pub fn put_down(&mut self, transport: &Transport, traffic_class: u8, direction: u8, noted: &Noted) {
        let latest = &mut self.latest;
        let dscp = traffic_class >> 2;
        // Written only when they change, which leaves the cache line alone.
        if latest.direction != direction {
            latest.direction = direction;
        }
        if latest.dscp != dscp {
            latest.dscp = dscp;
        }
        if matches!(noted.progress, Progress::First | Progress::Advance | Progress::Overlap) {
            latest.sequence_end = transport.segment.sequence_end();
            latest.has_sequence = true;
        }
    }
}

const _: () = {
    assert!(size_of::<FlowDirection>() == 240);
    assert!(core::mem::offset_of!(FlowDirection, pending) == 56);
    assert!(core::mem::offset_of!(FlowDirection, rtt) == 168);
    assert!(core::mem::offset_of!(FlowDirection, series) == 192);
};
