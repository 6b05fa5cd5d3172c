//! A second implementation of the matching rules, written for clarity instead of speed, and for times in any order.
//!
//! Unit tests and the fuzz target `matching` send the same packets to a [`Flow`](crate::flow::Flow) and a [`Model`]. The
//! two must agree on all samples and on the state that both keep. The model has no QUIC.

mod connection;
mod echoes;
mod end;

use core::ops::Range;
use std::vec::Vec;

use self::end::{consumes, is_covered, is_newer};
use crate::{
    flow::{Endpoint, Flow, Outcome},
    limits::PENDING_PER_DIRECTION,
    method::Method,
    parse::{Kind, Segment, Transport},
    rtt::{Measured, RttSummary, Rules, TsvalState},
};

/// A sample: its method, the identifier that was echoed, and the RTT in ns.
pub type Sample = (Method, u32, u64);

/// A pending identifier, and when it was recorded, ns.
type Recorded = (u32, u64);

/// The outcome of a packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The samples, in the order of the passes.
    pub samples: Vec<Sample>,
    /// Identifiers not recorded, or given up, because all slots were taken.
    pub pending_full: usize,
    /// Identifiers given up for a newer one, because a later one was echoed or they had waited for long.
    pub gave_way: usize,
    /// Echo requests recorded that were not pending.
    pub asked: usize,
    /// Replies to pending echo requests.
    pub answered: usize,
    /// Echo requests given up while a reply could still come.
    pub not_awaited: usize,
    /// Identifiers not recorded because the packet goes to this host.
    pub to_this_host: usize,
}

/// The state of a flow direction, as far as the model has it too.
#[derive(Debug, PartialEq, Eq)]
pub struct State {
    pending: usize,
    newest_tsval: Option<u32>,
    is_invalidated: bool,
    recorded_at: Option<u64>,
    /// The lowest and the smoothed RTT, ns.
    rtt: Option<(u64, u64)>,
}

/// What is known of a flow's TCP timestamps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimestampUse {
    /// No segment has decided it yet; this many had none.
    Unknown(u32),
    With,
    Without,
    /// There were some, but they cannot be used.
    Unusable,
}

/// The first segment of one end.
#[derive(Clone, Copy)]
struct Leg {
    number: u32,
    payload: u32,
    /// Whether it is a SYN-ACK.
    is_answer: bool,
    /// When it was sent; `None` once no reply is expected.
    since: Option<u64>,
    /// Whether it is a SYN that an established connection does not take.
    is_proposed: bool,
}

/// How a segment stands to the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It belongs to it, or begins it.
    Taken,
    /// It is a SYN that its sender sent before.
    Repeated,
    /// The other end would not take it.
    Refused,
}

/// How a segment moves the highest sequence number of its sender.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Moved,
    MovedFromWithin,
    Set,
    Behind,
    Nothing,
}

/// One end of a flow, and what it sent.
#[derive(Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact that the rules name")]
struct End {
    is_local: bool,
    /// True once it sent anything without SYN.
    is_past_syn: bool,
    /// True once it sent a FIN, or a RST ended the connection.
    is_closed: bool,
    /// True once the other end sent anything after it.
    is_answered: bool,
    /// When it sent its first packet.
    first_at: Option<u64>,
    /// Whether its timestamps ever advanced, not counting the advance from a SYN.
    has_moved: bool,
    /// How many segments in a row had no timestamp, or new data with one from before.
    lacking: u32,
    newest: Option<u32>,
    is_invalidated: bool,
    highest: Option<u32>,
    /// By how many bits its SYN wants to shift windows.
    window_shift: Option<u32>,
    /// Where the latest of its segments ended that lies outside of the window.
    outside: Option<u32>,
    leg: Option<Leg>,
    pending: [Option<Recorded>; PENDING_PER_DIRECTION],
    recorded_at: Option<u64>,
    min_rtt: Option<u64>,
    smoothed_rtt: Option<u64>,
}

/// An echo request that is pending.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Request {
    sender: usize,
    /// Its sequence number, and the digest of its data.
    number: (u16, u16),
    since: u64,
}

/// Room for echo requests. Which of two gives way that were sent at the same time depends on where they are.
type Requests = [Option<Request>; PENDING_PER_DIRECTION];

/// A flow between two ends.
pub struct Model {
    options: TimestampUse,
    ends: [End; 2],
    /// Whether an acknowledgement has shown that the ends know each other's numbers.
    is_confirmed: bool,
    /// When the connection began, as far as it was seen.
    began_at: Option<u64>,
    /// How many connections took the place of an earlier one.
    replaced: usize,
    rules: Rules,
    /// The latest requests of both ends.
    latest: Requests,
    /// Earlier ones, for late replies.
    kept: Requests,
}

impl Found {
    /// Converts the outcome that a flow returned for a packet.
    pub fn of(outcome: &Outcome) -> Self {
        let all = [outcome.measured, outcome.second];
        let samples = all.iter().filter_map(Measured::sample);
        let count = |is_so: fn(&Measured) -> bool| all.iter().filter(|measured| is_so(measured)).count();
        Self {
            samples: samples.map(|sample| (sample.method, sample.identifier, sample.rtt)).collect(),
            pending_full: count(|measured| measured.pending_full),
            gave_way: count(|measured| measured.gave_way),
            asked: count(|measured| measured.asked),
            answered: count(|measured| measured.answered),
            not_awaited: count(|measured| measured.not_awaited),
            to_this_host: count(|measured| measured.to_this_host),
        }
    }
}

impl State {
    /// Returns the state of the direction in which `endpoint` sends.
    pub fn of(flow: &Flow, endpoint: Endpoint) -> Self {
        let direction = flow.hot.direction(endpoint);
        let (tsval_state, rtt) = (direction.state.tsval_state(), flow.rtt(endpoint));
        Self {
            pending: flow.pending(endpoint).count(),
            newest_tsval: (tsval_state != TsvalState::UNKNOWN).then_some(direction.newest_tsval),
            is_invalidated: tsval_state == TsvalState::INVALIDATED,
            recorded_at: Some(rtt.recorded_at).filter(|&time| time != 0),
            rtt: (rtt.min != RttSummary::NO_RTT).then_some((rtt.min, rtt.smoothed)),
        }
    }
}

impl Model {
    /// Creates a flow without packets. Bit 0 of `local` says that the low endpoint is an address of this host, bit 1 the
    /// high one.
    pub fn new(rules: Rules, local: u32) -> Self {
        let end = |bit| End { is_local: local & bit != 0, ..End::default() };
        let (ends, options) = ([end(1), end(2)], TimestampUse::Unknown(0));
        Self {
            options,
            ends,
            is_confirmed: false,
            began_at: None,
            replaced: 0,
            rules,
            latest: Requests::default(),
            kept: Requests::default(),
        }
    }

    /// Returns how many connections took the place of an earlier one. No end of those is reported.
    pub fn replaced(&self) -> usize {
        self.replaced
    }

    /// Returns the state of the direction in which `endpoint` sends.
    pub fn state(&self, endpoint: Endpoint) -> State {
        let end = &self.ends[endpoint as usize];
        // A flow of echoes has its latest requests in the place of one end, and those it keeps in that of the other.
        let requests = endpoint.pick(self.latest, self.kept).iter().flatten().count();
        State {
            pending: end.pending.iter().flatten().count() + requests,
            newest_tsval: end.newest,
            is_invalidated: end.is_invalidated,
            recorded_at: end.recorded_at,
            rtt: end.min_rtt.zip(end.smoothed_rtt),
        }
    }

    /// Notes that a packet was missed: it may have been any echo, or the first of its tick.
    pub fn miss(&mut self) {
        (self.latest, self.kept) = Default::default();
        for end in &mut self.ends {
            end.is_invalidated = end.newest.is_some();
            end.pending = Default::default();
            end.end_leg();
        }
    }

    /// Notes that the clock was set back: earlier times cannot be compared with later ones.
    pub fn set_clock_back(&mut self) {
        self.miss();
        for end in &mut self.ends {
            end.recorded_at = None;
        }
    }

    /// Applies a packet that `from` sent at `now`, ns.
    pub fn packet(&mut self, from: Endpoint, packet: &Transport, now: u64) -> Found {
        let from = from as usize;
        let mut found = Found::default();
        let (sequence, data) = (packet.echo.sequence, packet.echo.data);
        let number = (sequence, data);
        match packet.kind {
            Kind::Tcp => self.segment(from, &packet.segment, now, &mut found),
            Kind::Echo if packet.echo.is_reply => {
                if let Some(request) = self.take_request(1 - from, number) {
                    found.answered += 1;
                    self.answer(request, now, &mut found);
                }
            }
            Kind::Echo if self.is_timed(from) => self.request(from, number, now, &mut found),
            Kind::Echo => found.to_this_host += 1,
            Kind::Dns | Kind::Quic => {}
        }
        found
    }

    fn segment(&mut self, from: usize, segment: &Segment, now: u64, found: &mut Found) {
        let (flags, methods) = (segment.flags, self.rules.methods);
        if !self.is_inside(from, segment) {
            self.ends[from].outside = Some(segment.sequence_end()).filter(|&end| end != 0);
            return;
        }
        let standing = self.follow(from, segment, now);
        if standing == Standing::Refused {
            return;
        }
        let reach = self.ends[from].reach(segment, standing == Standing::Repeated);
        self.note_knowledge(from, segment);
        // A copy of a SYN has no reach.
        if !flags.rst() && (!flags.syn() || reach != Reach::Nothing) {
            self.note_options(from, segment, reach, now);
        }
        self.ends[from].is_past_syn |= !flags.syn();
        if flags.syn() && !flags.rst() && reach != Reach::Nothing {
            self.ends[from].window_shift = u32::from(segment.window_scale).checked_sub(1);
        }
        if flags.rst() {
            self.ends.iter_mut().for_each(End::end_leg);
            return;
        }
        let has_handshake = methods.has(Method::TcpHandshake);
        let mut is_reply = false;
        if has_handshake {
            is_reply = self.ends[1 - from].replied(segment, now, found);
        }
        let since = (has_handshake && self.is_timed(from)).then_some(now);
        found.to_this_host += usize::from(has_handshake && flags.syn() && since.is_none());
        self.ends[from].begin_leg(segment, since, now, self.rules.copy_within);
        let is_left_to_leg = has_handshake && flags.syn();
        let is_by_numbers = methods.has(Method::TcpSeq)
            && matches!(self.options, TimestampUse::Without | TimestampUse::Unusable);
        if let Some(timestamps) = segment.timestamps()
            && methods.has(Method::TcpTs)
            && (self.is_by_both() || !is_by_numbers)
        {
            let slots = self.slots_of_timestamps();
            if flags.ack() {
                let other = &mut self.ends[1 - from];
                let passed = other.take(slots.clone(), |waiting| is_covered(waiting, timestamps.tsecr));
                let echoed = passed.into_iter().find(|&(waiting, _)| waiting == timestamps.tsecr);
                if let Some((waiting, since)) = echoed.filter(|_| !is_reply) {
                    other.sample(Method::TcpTs, waiting, since, now, found);
                }
            }
            let leaps = self.options == TimestampUse::With && self.ends[from].lacking != 0;
            let is_first = !leaps && self.ends[from].is_first_of_tick(timestamps.tsval, flags.syn());
            if is_first && consumes(segment) && !is_left_to_leg {
                self.record(from, slots, timestamps.tsval, now, found);
            } else if self.ends[from].repeats(segment, reach) {
                let copy_within = self.rules.copy_within;
                self.ends[from].forget_ambiguous(slots, timestamps.tsval, now, copy_within);
            }
        }
        if methods.has_seq_always() || is_by_numbers {
            let slots = if self.is_by_both() {
                PENDING_PER_DIRECTION / 2..PENDING_PER_DIRECTION
            } else {
                0..PENDING_PER_DIRECTION
            };
            if flags.ack() {
                let other = &mut self.ends[1 - from];
                let covered =
                    other.take(slots.clone(), |waiting| is_covered(waiting, segment.acknowledgement));
                let newest = covered.into_iter().reduce(|a, b| if is_newer(b.0, a.0) { b } else { a });
                if let Some((waiting, since)) =
                    newest.filter(|_| !is_reply && !segment.has_sack && self.is_confirmed)
                {
                    other.sample(Method::TcpSeq, waiting, since, now, found);
                }
            }
            if consumes(segment) {
                if !matches!(reach, Reach::Moved | Reach::Nothing) {
                    self.ends[from].take(slots.clone(), |_| true);
                }
                let is_first_sent = matches!(reach, Reach::Moved | Reach::MovedFromWithin)
                    || reach == Reach::Set && flags.syn();
                if is_first_sent && !is_left_to_leg {
                    self.record(from, slots, segment.sequence_end(), now, found);
                }
            }
        }
    }

    fn note_options(&mut self, from: usize, segment: &Segment, reach: Reach, now: u64) {
        let options = match self.options {
            TimestampUse::Unusable => return,
            TimestampUse::With if segment.has_timestamps || !segment.flags.syn() => {
                let is_noted = self.rules.methods.has(Method::TcpTs);
                let (began_at, still_clock) = (self.began_at, self.rules.still_clock);
                let end = &mut self.ends[from];
                if !is_noted || !end.fails_timestamps(segment, reach, began_at, now, still_clock) {
                    return;
                }
                TimestampUse::Unusable
            }
            _ if segment.has_timestamps => TimestampUse::With,
            _ if segment.flags.syn() => TimestampUse::Without,
            TimestampUse::Unknown(2) => TimestampUse::Without,
            TimestampUse::Unknown(segments) => TimestampUse::Unknown(segments + 1),
            known => known,
        };
        if options == self.options {
            return;
        }
        let is_by_other = options != TimestampUse::Unusable || self.rules.methods.has(Method::TcpSeq);
        if is_by_other && !matches!(self.options, TimestampUse::Unknown(_)) && !self.is_by_both() {
            self.ends.iter_mut().for_each(|end| end.pending = Default::default());
        }
        if options == TimestampUse::With {
            for end in &mut self.ends {
                (end.has_moved, end.lacking) = (false, 0);
            }
        }
        self.options = options;
    }

    fn is_by_both(&self) -> bool {
        self.rules.methods.has_seq_always() && self.rules.methods.has(Method::TcpTs)
    }

    /// The slots of timestamps.
    fn slots_of_timestamps(&self) -> Range<usize> {
        if self.is_by_both() { 0..PENDING_PER_DIRECTION / 2 } else { 0..PENDING_PER_DIRECTION }
    }

    fn is_timed(&self, from: usize) -> bool {
        !self.ends[1 - from].is_local || self.rules.include_local
    }

    /// Records an identifier, unless a limit forbids it or no slot is free.
    fn record(&mut self, from: usize, slots: Range<usize>, identifier: u32, now: u64, found: &mut Found) {
        if !self.is_timed(from) {
            found.to_this_host += 1;
            return;
        }
        if !self.ends[from].may_record(&self.rules, now) {
            return;
        }
        let end = &mut self.ends[from];
        match end.slot(slots, now) {
            Some(slot) => {
                found.gave_way += usize::from(slot.is_some());
                *slot = Some((identifier, now));
                end.recorded_at = Some(now);
            }
            None => found.pending_full += 1,
        }
    }
}
