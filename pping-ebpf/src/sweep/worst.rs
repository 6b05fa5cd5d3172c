//! Finds candidates: flow directions that exceed the threshold, which the agent sets by its present worst flows. So the agent
//! finds the worst of a million flows among some hundred candidates.

use pping_common::{
    abi::{Candidate, SweepRequest},
    flow::{Cold, Endpoint, Events, FlowKey, Totals},
    parse::Segment,
    rtt::RttSummary,
};

use crate::{
    flow,
    maps::{self, Flows, SweepScratch},
    shared::prelude::*,
};

/// Reports a flow direction to the agent, if it may be among the worst. `IS_HIGH` says which endpoint sends: an
/// argument would be spilled to the stack, where the verifier loses its range. `scratch` has what the endpoint
/// sent since the last flush, the series selector, and the RTTs. Not inlined, because its stack would not fit beside its
/// caller's. Returns 0, because the verifier wants functions to return a number.
#[inline(never)]
pub(super) fn consider<A: Flows, const IS_HIGH: bool>(
    key: &FlowKey<A>,
    cold: Shared<Cold>,
    scratch: &SweepScratch,
) -> u64 {
    let timed = if IS_HIGH { Endpoint::High } else { Endpoint::Low };
    let Some(request) = maps::request() else { return 0 };
    let threshold = request.at(field!(SweepRequest, threshold)).load();
    if threshold.packets == 0 {
        return 0;
    }
    let packets = |endpoint| cold.at(field!(Cold, totals)).of(endpoint).at(field!(Totals, packets)).read();
    let sent = packets(timed);
    if sent < threshold.packets || packets(timed.other()) < threshold.packets {
        return 0;
    }
    let events = cold.at(field!(Cold, events)).of(timed);
    // Only TCP flows count retransmissions: UDP flows have the times of the spin bit there.
    let retransmissions =
        if key.protocol == Segment::NUMBER { events.at(field!(Events, retransmissions)).read() } else { 0 };
    // The copy is made without the flow's lock. While a leg of the handshake is pending, its time is in the fields of the
    // RTTs. Once the leg is complete, the RTTs are written first and this state after them, and it was copied first.
    let rtts = if scratch.hot.state(timed).is_leg_pending() {
        (RttSummary::NO_RTT, 0)
    } else {
        scratch.locked.rtts(timed)
    };
    let since = if IS_HIGH { &scratch.high } else { &scratch.low };
    let figures = Candidate::figures(scratch.selector.method, rtts, (sent, retransmissions), since);
    if !threshold.is_exceeded(&figures) {
        return 0;
    }
    let found = request.at(field!(SweepRequest, found));
    let Some(candidate) = maps::candidate(found.read()) else { return 0 };
    let series = flow::series(cold, timed).read();
    let reported = Candidate::new((key, timed), figures, rtts.0, sent, series, &scratch.selector);
    candidate.store(&reported);
    found.write(found.read() + 1);
    0
}
