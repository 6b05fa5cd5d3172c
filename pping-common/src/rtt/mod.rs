//! What is recorded of a packet, and what an echo matches.

mod icmp_echo;
mod rules;
mod slots;
mod tcp_ts;

pub use rules::{Basis, Rules};
pub use slots::Slots;
pub use tcp_ts::TsvalState;

use crate::{flow::Direction, parse::Transport};

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

/// What a packet matched and recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// It echoed something that waited.
    pub sample: Option<Sample>,
    /// It should have been recorded, but all slots wait.
    pub slots_full: bool,
}

/// Whether [`step`] could change anything.
#[inline(always)]
pub(crate) fn concerns(forward: &Direction, reverse: &Direction, transport: &Transport) -> bool {
    match transport {
        Transport::Tcp(segment) => tcp_ts::concerns(forward, reverse, segment),
        // Echoes are so few that looking twice costs more than it saves.
        Transport::Echo(_) => true,
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
    let (method, matched, record) = match transport {
        Transport::Tcp(segment) => (
            Method::TcpTs,
            tcp_ts::match_echo(reverse, segment),
            tcp_ts::identifier(forward, segment).map(|tsval| (tsval, false)),
        ),
        Transport::Echo(echo) => {
            (Method::IcmpEcho, icmp_echo::match_reply(reverse, echo), icmp_echo::identifier(forward, echo))
        }
    };
    let mut measured = Measured::default();
    if let Some((identifier, recorded_at)) = matched {
        let rtt = now.saturating_sub(recorded_at);
        reverse.take_sample(rtt);
        measured.sample = Some(Sample { method, identifier, rtt });
    }
    if let Some((identifier, is_repeated)) = record
        && timed
    {
        if is_repeated {
            forward.slots.replace(identifier, now);
        } else if rules.allow(forward, now) {
            if forward.slots.put(identifier, now) {
                forward.recorded_at = now;
            } else {
                measured.slots_full = true;
            }
        }
    }
    measured
}
