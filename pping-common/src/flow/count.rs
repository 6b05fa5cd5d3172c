//! Counting a packet for its flow.

use super::{
    hot::{Glance, Latest},
    latest::Noted,
    traffic::Sent,
};
use crate::parse::Transport;

/// The counts of a flow direction. Those of the kernel programs are in maps, and other CPUs count there at the same time.
pub trait DirectionCounts {
    /// Adds a number to [`super::Hot::traffic`].
    fn add_traffic(&mut self, more: u64);

    /// Replaces [`super::Hot::latest`], if it is another.
    fn set_latest(&mut self, latest: Latest);

    /// Replaces the highest sequence number of TCP.
    fn set_sequence_end(&mut self, end: u32);

    /// Counts a retransmitted segment.
    fn add_retransmission(&mut self);

    /// Counts a reordered segment.
    fn add_reordered(&mut self);

    /// Counts a packet marked for congestion.
    fn add_ce(&mut self);
}

/// Counts a packet which passed in `direction` (as a number), and says what it is beside one more packet. `glance` is what it found.
#[inline(always)]
pub fn count(
    counts: &mut impl DirectionCounts,
    glance: &Glance,
    transport: &Transport,
    traffic_class: u8,
    direction: u8,
) -> Noted {
    let noted = glance.look(transport, traffic_class);
    let latest = Latest::new(direction, traffic_class);
    // Written only if it changes, which leaves the cache line alone.
    if glance.latest != latest {
        counts.set_latest(latest);
    }
    if let Some(end) = noted.sequence_end(&transport.segment) {
        counts.set_sequence_end(end);
    }
    counts.add_traffic(Sent::one(transport.payload()));
    if noted.is_retransmission {
        counts.add_retransmission();
    }
    if noted.is_reordered {
        counts.add_reordered();
    }
    if noted.is_ce {
        counts.add_ce();
    }
    noted
}
