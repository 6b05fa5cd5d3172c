//! The flow directions that may be among the worst: those that exceed what the agent's worst have at present. So the agent has the
//! worst of a million flows from some hundred contenders.

use pping_common::{
    abi::Contender,
    flow::{Cold, Endpoint, Events, FlowKey, Totals},
    parse::Segment,
};

use crate::{
    flow,
    maps::{self, Flows},
    shared::{Shared, field},
};

/// Reports a flow direction to the agent, if it may be among the worst: that of what the high endpoint sends, or the low one. That is no
/// argument, which would be put aside on the stack, where the verifier loses its range. What it sent since the last sweep, its selector and its RTTs are in
/// the scratch space. Not inlined: what it has on the stack would not fit beside what its caller has. Returns 0, as the verifier wants the
/// result of a function to be a number.
#[inline(never)]
pub(super) fn consider<A: Flows, const IS_HIGH: bool>(key: &FlowKey<A>, cold: Shared<Cold>) -> u64 {
    let timed = if IS_HIGH { Endpoint::High } else { Endpoint::Low };
    let (Some(request), Some(scratch)) = (maps::request(), maps::sweep_scratch()) else { return 0 };
    // SAFETY: a map value, valid for the program's run. The agent writes to it between two runs, and nothing else does.
    let bar = unsafe { &(*request).bar };
    if bar.packets == 0 {
        return 0;
    }
    let packets = |endpoint| cold.at(field!(Cold, totals)).of(endpoint).at(field!(Totals, packets)).read();
    let sent = packets(timed);
    if sent < bar.packets || packets(timed.other()) < bar.packets {
        return 0;
    }
    let events = cold.at(field!(Cold, events)).of(timed);
    // A flow without segments has something else there.
    let retransmissions =
        if key.protocol == Segment::NUMBER { events.at(field!(Events, retransmissions)).read() } else { 0 };
    let rtts = scratch.locked.rtts(timed);
    let since = if IS_HIGH { &scratch.high } else { &scratch.low };
    let figures = Contender::figures(scratch.selector.method, rtts, (sent, retransmissions), since);
    if !bar.is_exceeded(&figures) {
        return 0;
    }
    // SAFETY: as above.
    let found = unsafe { (&raw const (*request).found).read_volatile() };
    let Some(contender) = maps::contender(found) else { return 0 };
    let series = flow::series(cold, timed).read();
    let reported = Contender::new((key, timed), figures, rtts.0, sent, series, &scratch.selector);
    // SAFETY: map values, valid for the program's run, and only the agent's one sweep at a time writes to them.
    unsafe {
        contender.write(reported);
        (&raw mut (*request).found).write_volatile(found + 1);
    }
    0
}
