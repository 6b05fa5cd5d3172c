//! Counting packets for their flow.

use crate::{
    flow::{
        memory::{hot::FlowSnapshot, latest::Latest, traffic::Sent},
        packet::window::Fit,
    },
    parse::{Kind, Transport},
    rtt::Progress,
};

/// A segment that does not advance its flow direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// It was retransmitted.
    Retransmitted,
    /// It was reordered: later segments overtook it.
    Reordered,
    /// It is a keep-alive: it asks whether the other end is still there.
    KeepAlive,
}

/// The counts of a flow direction. In the kernel programs they are in maps, and other CPUs count there at the same time.
pub trait DirectionCounts {
    /// Whether any packet has counted in [`crate::flow::Hot::traffic`].
    fn has_counted(&self) -> bool;

    /// The same of the other direction.
    fn has_other_counted(&self) -> bool;

    /// Whether each host of a flow is at another side of the interface: see [`crate::abi::Interface::has_two_arms`].
    fn has_two_arms(&self) -> bool;

    /// Adds a number to [`crate::flow::Hot::traffic`].
    fn add_traffic(&mut self, more: u64);

    /// Replaces [`crate::flow::Hot::latest`].
    fn set_latest(&mut self, latest: Latest);

    /// Replaces the highest TCP sequence number.
    fn set_sequence_end(&mut self, end: u32);

    /// Counts a segment that does not advance the direction.
    fn add_behind(&mut self, behind: Behind);

    /// Counts a packet marked for congestion.
    fn add_ce(&mut self);

    /// Replaces [`crate::flow::Events::outside_end`].
    fn set_outside_end(&mut self, end: u32);

    /// The same number of the other direction.
    fn other_outside_end(&self) -> u32;
}

/// Counts a packet that passed in `direction` (as a number), and returns how it advances its flow direction. `snapshot` is
/// the flow's state before the packet, and `is_expected` what [`FlowSnapshot::is_expected`] says of a segment, or false.
// Each rare case is handled within one branch: the verifier would follow the code between two branches for each outcome
// of the first.
#[inline(always)]
pub fn count(
    counts: &mut impl DirectionCounts,
    snapshot: &FlowSnapshot,
    transport: &Transport,
    traffic_class: u8,
    direction: u8,
    is_expected: bool,
) -> Progress {
    let packet = Latest::new(direction, traffic_class);
    let latest = snapshot.latest.followed_by(packet);
    // The first packet binds the endpoint to its hook.
    if snapshot.latest.is_elsewhere(packet) && counts.has_counted() {
        let passed = snapshot.latest.passed_elsewhere();
        if snapshot.latest != passed {
            counts.set_latest(passed);
        }
        return Progress::Elsewhere;
    }
    let segment = &transport.segment;
    let fit = match transport.kind {
        Kind::Tcp if !is_expected => snapshot.fit(segment, || counts.other_outside_end()),
        Kind::Tcp | Kind::Echo | Kind::Dns | Kind::Quic => Fit::Taken,
    };
    if fit == Fit::Refused {
        counts.set_outside_end(segment.sequence_end());
        return Progress::Refused;
    }
    // Written only if it changes: most packets repeat it.
    if snapshot.latest != latest {
        counts.set_latest(latest);
    }
    if !snapshot.reverse_latest.is_elsewhere(packet)
        && counts.has_two_arms()
        && counts.has_other_counted()
        && !(snapshot.forward.state.is_forwarded() && snapshot.reverse.is_forwarded())
    {
        // The packet counts, so that the endpoint stays bound to this hook although copies pass the other one.
        counts.add_traffic(Sent::one(0));
        return Progress::SameHook;
    }
    counts.add_traffic(Sent::one(transport.payload()));
    if is_marked(traffic_class) {
        counts.add_ce();
    }
    if transport.kind != Kind::Tcp {
        return Progress::None;
    }
    if fit == Fit::Replaces {
        counts.set_sequence_end(segment.sequence_end());
        return Progress::Replaces;
    }
    let progress = snapshot.forward.progress(segment);
    match progress {
        // A SYN may be a copy of an earlier one: the step decides.
        Progress::First if snapshot.forward.state.has_sequence() => {}
        Progress::First | Progress::Advance | Progress::Overlap => {
            counts.set_sequence_end(segment.sequence_end());
        }
        Progress::Behind => counts.add_behind(snapshot.forward.behind(segment)),
        Progress::None
        | Progress::Replaces
        | Progress::Elsewhere
        | Progress::Refused
        | Progress::SameHook => {}
    }
    progress
}

/// Whether a packet with this traffic class met congestion (RFC 3168, 5).
#[inline(always)]
fn is_marked(traffic_class: u8) -> bool {
    const CE: u8 = 3;
    traffic_class & CE == CE
}
