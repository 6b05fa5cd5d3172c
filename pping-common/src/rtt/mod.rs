//! What is recorded of a packet, and what an echo matches.
//!
//! A packet is measured in three steps. The first knows the methods: it [plans](Flow::plan) what to look for among what
//! waits, and what is to wait itself. The others do as planned: [finding](Flow::find) frees what is echoed and takes the sample,
//! [recording](Flow::record) frees what the packet made ambiguous and has it wait. The kernel programs write the plan to memory in
//! between, so that the verifier follows each step once, and not once for each way through the one before.

mod icmp_echo;
mod leg;
mod pending;
mod quic;
mod rules;
mod tcp;
mod tcp_handshake;
mod tcp_seq;
mod tcp_ts;
#[cfg(test)]
mod tests;

pub use leg::Leg;
pub use pending::{Part, Pending};
pub use quic::{Connection, Spin};
pub use rules::{Basis, Rules};
pub use tcp_seq::Options;
pub use tcp_ts::{TsvalState, is_newer};

pub use crate::method::{Method, Methods};
use crate::{
    flow::{Endpoint, Flow, FlowDirection, Noted},
    parse::{Kind, Transport},
};

/// One round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How it was measured.
    pub method: Method,
    /// What was echoed: the `TSval`, or a sequence number.
    pub identifier: u32,
    /// From the recording to the echo, ns.
    pub rtt: u64,
    /// The part of it beyond the host that replied, ns, where the method tells; else 0.
    pub side_rtt: u64,
}

/// What a packet matched and recorded. Flat, as [`crate::parse::Frame`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Whether it echoed something that waited.
    pub has_sample: bool,
    /// The sample, if it did.
    pub sample: Sample,
    /// It should have been recorded, but all slots wait.
    pub pending_full: bool,
}

impl Measured {
    /// Neither.
    pub const NOTHING: Self = Self {
        has_sample: false,
        sample: Sample { method: Method::TcpTs, identifier: 0, rtt: 0, side_rtt: 0 },
        pending_full: false,
    };

    /// The sample, if there is one.
    pub fn sample(&self) -> Option<Sample> {
        self.has_sample.then_some(self.sample)
    }
}

/// A segment is measured by timestamps and by sequence numbers one after the other where both are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All that is wanted but for the second.
    First,
    /// Sequence numbers, where timestamps had the first.
    Second,
}

/// What is to be done about a packet, and then what was found. Flat, as [`crate::parse::Frame`] is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Work {
    /// Since when that waited which the packet echoes, ns; 0 when it echoes nothing.
    since: u64,
    /// When what it echoes was seen on its way to the host that replied, ns; 0 when nobody knows.
    turned: u64,
    /// What of the sender's own may be ambiguous now: from `pivot` on to so much above it.
    span: u64,
    /// What was found: the identifier of the sample.
    found: u32,
    /// What the packet echoes.
    echoed: u32,
    /// What waits for so much less than `echoed`, modulo 2^32, is freed: 0 for nothing, 1 for what is equal.
    reach: u32,
    /// The nearest of what waits for so much less gives a sample.
    gives: u32,
    /// See `span`.
    pivot: u32,
    /// What is to wait for its echo,
    identifier: u32,
    /// if this is not 0.
    records: u32,
    /// Whether the packet replied to a leg of a handshake: not 0 if it did.
    replied: u32,
    /// How a sample is measured.
    method: Method,
    /// Fills up to a multiple of 8.
    reserved: [u8; 3],
}

impl Work {
    /// Nothing.
    pub const NOTHING: Self = Self {
        since: 0,
        turned: 0,
        span: 0,
        found: 0,
        echoed: 0,
        reach: 0,
        gives: 0,
        pivot: 0,
        identifier: 0,
        records: 0,
        replied: 0,
        method: Method::TcpTs,
        reserved: [0; 3],
    };
}

/// What the steps could change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// The newest `TSval`, and that something waits for its echo, unless no recording is allowed.
    Tsval,
    /// That something waits for its acknowledgement, unless no recording is allowed.
    Sequence,
    /// More than that.
    Anything,
}

/// What the steps could change.
#[inline(always)]
pub(crate) fn effect(
    flow: &Flow,
    from: Endpoint,
    transport: &Transport,
    noted: &Noted,
    rules: &Rules,
) -> Effect {
    let (forward, reverse) = flow.both(from);
    let is_any = match transport.kind {
        Kind::Tcp => {
            let segment = &transport.segment;
            return tcp::effect(flow.options, forward, reverse, segment, noted.progress, rules);
        }
        // Echoes are so few that looking twice costs more than it saves.
        Kind::Echo => true,
        Kind::Quic => quic::has_effect(flow, from, &transport.datagram.quic, rules),
        Kind::Dns => false,
    };
    if is_any { Effect::Anything } else { Effect::Nothing }
}

/// The first step: decides what to do about a packet that `from` sent.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are in one place, and what a packet is measured by")]
pub(crate) fn plan(
    flow: &mut Flow,
    from: Endpoint,
    transport: &Transport,
    noted: &Noted,
    now: u64,
    rules: &Rules,
    pass: Pass,
    work: &mut Work,
) {
    let replied = if pass == Pass::First { 0 } else { work.replied };
    *work = Work { replied, ..Work::NOTHING };
    let timed = flow.is_timed(from, rules.include_local);
    match transport.kind {
        Kind::Tcp => {
            let segment = &transport.segment;
            if pass == Pass::First {
                tcp::note_options(flow, segment, rules);
            }
            let options = flow.options;
            let (forward, reverse) = flow.both_mut(from);
            tcp::plan(options, forward, reverse, segment, noted.progress, now, timed, rules, pass, work);
        }
        Kind::Echo => icmp_echo::plan(&transport.echo, work),
        Kind::Quic => quic::plan(flow, from, &transport.datagram.quic, now, rules, work),
        Kind::Dns => {}
    }
    if !timed {
        work.records = 0;
    }
}

/// The second step: frees what the packet echoes, and takes the sample.
#[inline(always)]
pub(crate) fn find(
    reverse: &mut FlowDirection,
    now: u64,
    part: Part,
    work: &mut Work,
    measured: &mut Measured,
) {
    if work.reach != 0 {
        reverse.pending.take(part, work);
    }
    let since = work.since;
    // In a capture an echo can come before what it echoes, and that is no time to tell.
    measured.has_sample = since != 0 && since <= now;
    measured.pending_full = false;
    if measured.has_sample {
        let rtt = now - since;
        let turned = work.turned;
        measured.sample = Sample {
            method: work.method,
            identifier: work.found,
            rtt,
            side_rtt: if turned >= since && turned <= now { now - turned } else { 0 },
        };
        reverse.take_sample(rtt);
    }
}

/// The third step: frees what the packet makes ambiguous, and has it wait for its echo.
#[inline(always)]
pub(crate) fn record(
    forward: &mut FlowDirection,
    now: u64,
    part: Part,
    rules: &Rules,
    work: &Work,
    measured: &mut Measured,
) {
    let is_renewed = work.span != 0 && forward.pending.free(part, work.pivot, work.span);
    if work.records == 0 {
        return;
    }
    // What is sent again with the same identifier takes the place of what waits: nothing is recorded beside.
    let is_renewal = is_renewed && work.span == 1;
    if !is_renewal && !rules.allow(forward, now) {
        return;
    }
    if !forward.pending.put(part, work.identifier, now) {
        measured.pending_full = true;
    } else if !is_renewal {
        forward.recorded_at = now;
    }
}
