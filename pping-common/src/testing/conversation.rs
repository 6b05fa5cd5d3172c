//! Two hosts that talk, and the flow that follows them.

use std::{format, string::String, vec::Vec};

use super::{ACK, PSH};
use crate::{
    flow::{Changes, Endpoint, Facts, Flow, Outcome},
    method::{Method, Methods},
    parse::{Echo, Kind, TcpFlags, Timestamps, Transport},
    rtt::{Measured, PossibleChange, Rules},
};

/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;

/// The interface direction that packets pass in.
const DIRECTION: u8 = 1;

/// A segment with timestamps. [`Conversation::low`] and [`Conversation::high`] give it the next sequence number, unless it
/// begins with a SYN.
pub(crate) fn segment(flags: u8, payload: u32, tsval: u32, tsecr: u32) -> Transport {
    let mut transport = bare(flags, 0, payload, 0);
    transport.segment.has_timestamps = true;
    transport.segment.timestamps = Timestamps { tsval, tsecr };
    transport
}

/// A segment without timestamps.
pub(crate) fn bare(flags: u8, sequence: u32, payload: u32, acknowledgement: u32) -> Transport {
    let mut transport = Transport::EMPTY;
    let segment = &mut transport.segment;
    (segment.source_port, segment.destination_port) = (40_000, 443);
    segment.flags = TcpFlags(flags);
    (segment.sequence, segment.payload) = (sequence, payload);
    segment.acknowledgement = acknowledgement;
    transport
}

/// The same segment with a sequence number.
pub(crate) fn at(sequence: u32, mut transport: Transport) -> Transport {
    transport.segment.sequence = sequence;
    transport
}

/// A segment with payload.
pub(crate) fn data(tsval: u32, tsecr: u32) -> Transport {
    segment(ACK | PSH, 100, tsval, tsecr)
}

/// A segment without payload.
pub(crate) fn pure_ack(tsval: u32, tsecr: u32) -> Transport {
    segment(ACK, 0, tsval, tsecr)
}

/// An echo request.
pub(crate) fn request(sequence: u16) -> Transport {
    // The parser leaves an earlier packet's segment in place: it must not matter.
    let mut transport = segment(0xff, 100, 7, 7);
    transport.kind = Kind::Echo;
    transport.echo = Echo { id: 77, sequence, is_reply: false, data: 0, payload: 56 };
    transport
}

/// An echo reply.
pub(crate) fn reply(sequence: u16) -> Transport {
    let mut transport = request(sequence);
    transport.echo.is_reply = true;
    transport
}

/// The identifier that was echoed, and the RTT in ms.
pub(crate) fn rtt(outcome: Outcome) -> Option<(u32, u64)> {
    outcome.measured.sample().map(|sample| (sample.identifier, sample.rtt / MS))
}

/// The facts of a flow: bit 0 of `bits` says that the low endpoint is an address of this host, bit 1 the high one.
pub(crate) fn local(bits: u32) -> Facts {
    Facts::of_ends(bits & 1 != 0, bits & 2 != 0)
}

/// A flow as text, without its traffic counts.
pub(crate) fn snapshot(talk: &Conversation) -> String {
    let mut flow = talk.flow;
    flow.hot.traffic = [0; 2];
    format!("{flow:?}")
}

/// All samples of one packet: method, identifier that was echoed, and RTT in ms.
pub(crate) fn samples(outcome: Outcome) -> Vec<(Method, u32, u64)> {
    let samples = [outcome.measured.sample(), outcome.second.sample()];
    samples.into_iter().flatten().map(|sample| (sample.method, sample.identifier, sample.rtt / MS)).collect()
}

/// A flow and the rules it is measured by.
pub(crate) struct Conversation {
    pub(crate) flow: Flow,
    pub(crate) rules: Rules,
}

impl Conversation {
    /// Begins a conversation that is measured by TCP timestamps and ICMP echoes only.
    pub(crate) fn new() -> Self {
        Self::by(Methods::NONE.with(Method::TcpTs).with(Method::IcmpEcho))
    }

    /// Begins a conversation that is measured by these methods.
    pub(crate) fn by(methods: Methods) -> Self {
        Self { flow: Flow::EMPTY, rules: Rules { methods, ..Rules::UNLIMITED } }
    }

    /// Begins a conversation in which both ends have sent a segment before: the low one with `TSval` 100, the high one
    /// with 500.
    pub(crate) fn in_progress() -> Self {
        let mut talk = Self::new();
        talk.low(1, pure_ack(100, 0));
        talk.high(2, pure_ack(500, 0));
        talk.low(3, pure_ack(100, 0));
        talk
    }

    /// Applies a packet of the low endpoint, `ms` after the clock began.
    pub(crate) fn low(&mut self, ms: u64, transport: Transport) -> Outcome {
        self.next(Endpoint::Low, ms, transport)
    }

    /// Applies a packet of the high endpoint, `ms` after the clock began.
    pub(crate) fn high(&mut self, ms: u64, transport: Transport) -> Outcome {
        self.next(Endpoint::High, ms, transport)
    }

    fn next(&mut self, from: Endpoint, ms: u64, mut transport: Transport) -> Outcome {
        let segment = &mut transport.segment;
        if segment.has_timestamps && segment.sequence == 0 && !segment.flags.syn() {
            segment.sequence = self.flow.hot.direction(from).sequence_end;
        }
        self.packet(from, ms * MS, &transport)
    }

    /// Applies a packet. If the flow says that it has no effect, it must change nothing but the counts.
    pub(crate) fn packet(&mut self, from: Endpoint, now: u64, transport: &Transport) -> Outcome {
        let counted = self.flow.count(from, transport, 0, DIRECTION);
        let possible_change = self.flow.possible_change(from, transport, counted, &self.rules);
        let is_left_alone = match possible_change {
            PossibleChange::Nothing => self.flow.hot.contended == 0,
            PossibleChange::Tsval | PossibleChange::Sequence => {
                self.flow.hot.snapshot(from).is_rate_limited(transport, Some(now), &self.rules)
            }
            PossibleChange::Anything => false,
        };
        let mut before = self.flow;
        let outcome = self.flow.step(from, transport, counted.progress, now, &self.rules);
        if is_left_alone {
            if possible_change == PossibleChange::Tsval {
                before.hot.direction_mut(from).newest_tsval = transport.segment.timestamps.tsval;
            }
            assert_eq!(outcome.changes, Changes::NONE, "{transport:?}");
            for measured in [outcome.measured, outcome.second] {
                assert_eq!(measured, Measured::NOTHING, "{transport:?}");
            }
            assert_eq!(format!("{before:?}"), format!("{:?}", self.flow), "{transport:?}");
        }
        outcome
    }

    /// The number of pending timestamps of the low endpoint.
    pub(crate) fn pending_count(&self) -> usize {
        self.flow.pending(Endpoint::Low).count()
    }
}
