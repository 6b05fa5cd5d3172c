//! What is recorded of a packet, and what an echo matches.

mod icmp_echo;
mod rules;
mod slots;
mod tcp_ts;
#[cfg(test)]
mod tests;

pub use rules::{Basis, Rules};
pub use slots::Slots;
pub use tcp_ts::TsvalState;
pub(crate) use tcp_ts::is_newer;

use crate::{
    flow::Direction,
    parse::{Kind, Transport},
};

/// How an RTT was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Method {
    /// TCP timestamps: `TSval` and `TSecr`.
    TcpTs,
    /// Echo request and reply.
    IcmpEcho,
}

impl Method {
    /// How many methods are told apart, rounded up to a power of two.
    pub const PLACES: usize = 8;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::TcpTs, Self::IcmpEcho];
}

/// One round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How it was measured.
    pub method: Method,
    /// What was echoed: the `TSval`, or the sequence number.
    pub identifier: u32,
    /// From the recording to the echo, ns.
    pub rtt: u64,
}

/// What a packet matched and recorded. Flat, as [`crate::parse::Frame`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Whether it echoed something that waited.
    pub has_sample: bool,
    /// The sample, if it did.
    pub sample: Sample,
    /// It should have been recorded, but all slots wait.
    pub slots_full: bool,
}

impl Measured {
    /// The sample, if there is one.
    pub fn sample(&self) -> Option<Sample> {
        self.has_sample.then_some(self.sample)
    }
}

/// Whether [`step`] could change anything.
#[inline(always)]
pub(crate) fn concerns(forward: &Direction, reverse: &Direction, transport: &Transport) -> bool {
    match transport.kind {
        Kind::Tcp => tcp_ts::concerns(forward, reverse, &transport.segment),
        // Echoes are so few that looking twice costs more than it saves.
        Kind::Echo => true,
    }
}

/// Matches a packet of `forward` against what waits in `reverse`, then records it if it is to be echoed.
/// `timed` is whether the packets of `forward` are worth timing at all.
#[inline(always)]
pub(crate) fn step(
    forward: &mut Direction,
    reverse: &mut Direction,
    transport: &Transport,
    now: u64,
    timed: bool,
    rules: &Rules,
) -> Measured {
    let (segment, echo) = (&transport.segment, &transport.echo);
    let (method, echoed, since, identifier) = match transport.kind {
        Kind::Tcp => (
            Method::TcpTs,
            segment.timestamps.tsecr,
            tcp_ts::match_echo(reverse, segment),
            tcp_ts::identifier(forward, segment),
        ),
        Kind::Echo => (
            Method::IcmpEcho,
            u32::from(echo.sequence),
            icmp_echo::match_reply(reverse, echo),
            icmp_echo::identifier(forward, echo, now),
        ),
    };
    let mut measured = Measured {
        // In a capture an echo can come before what it echoes, and that is no time to tell.
        has_sample: since != 0 && since <= now,
        sample: Sample { method, identifier: echoed, rtt: now.saturating_sub(since) },
        slots_full: false,
    };
    if measured.has_sample {
        reverse.take_sample(measured.sample.rtt);
    }
    if let Some(identifier) = identifier
        && timed
        && rules.allow(forward, now)
    {
        if forward.slots.put(identifier, now) {
            forward.recorded_at = now;
        } else {
            measured.slots_full = true;
        }
    }
    measured
}
