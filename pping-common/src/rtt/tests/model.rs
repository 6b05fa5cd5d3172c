//! What MATCHING.md says, written down once more: lists, no tricks.

use std::vec::Vec;

use crate::{
    flow::FlowDirection,
    parse::{Kind, Segment, TcpFlags, Transport},
    rtt::{Basis, Method, Rules},
};

/// A sample: how it was measured, what was echoed, and the RTT in ns.
pub(super) type Sample = (Method, u32, u64);

/// What a packet brings about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) samples: Vec<Sample>,
    /// How often it should have been recorded, had there been a slot.
    pub(super) full: usize,
}

/// Something that waits for its echo, and since when.
type Waiting = (u32, u64);

/// What is known of the timestamps of a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Options {
    /// So many segments had none.
    Unknown(u32),
    With,
    Without,
}

/// What one side began its connection with.
#[derive(Clone, Copy)]
struct Leg {
    number: u32,
    payload: u32,
    /// It is a SYN-ACK.
    is_answer: bool,
    /// Since when it waits.
    since: Option<u64>,
}

/// How far a segment goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Moved,
    MovedFromWithin,
    Set,
    Nothing,
}

/// One end of a flow, and what it sent.
#[derive(Clone, Default)]
struct End {
    is_local: bool,
    /// It sent something other than the SYN that begins a connection, or a RST ended it.
    is_under_way: bool,
    newest: Option<u32>,
    is_invalidated: bool,
    highest: Option<u32>,
    leg: Option<Leg>,
    /// `TSval`s, or echo requests.
    values: Vec<Waiting>,
    /// Ends of segments.
    ends: Vec<Waiting>,
    recorded_at: Option<u64>,
    min_rtt: Option<u64>,
    smoothed_rtt: u64,
}

/// A flow between two ends.
pub(super) struct Model {
    options: Options,
    ends: [End; 2],
    rules: Rules,
}

fn is_newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Whether `a` is `b` or less than half the circle behind it.
fn is_covered(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) >= 0
}

fn consumes(segment: &Segment) -> bool {
    segment.payload > 0 || segment.flags.syn() || segment.flags.fin()
}

fn end(segment: &Segment) -> u32 {
    let phantoms = u32::from(segment.flags.syn()) + u32::from(segment.flags.fin());
    segment.sequence.wrapping_add(segment.payload).wrapping_add(phantoms)
}

impl Model {
    pub(super) fn new(rules: Rules, local: u32) -> Self {
        let end = |bit| End { is_local: local & bit != 0, ..End::default() };
        Self { options: Options::Unknown(0), ends: [end(1), end(2)], rules }
    }

    /// A packet went by unseen: it may have been any echo, or the first of its tick.
    pub(super) fn miss(&mut self) {
        self.forget_waiting();
        for end in &mut self.ends {
            end.is_invalidated = end.newest.is_some();
            end.end_leg();
        }
    }

    /// No time before this can be compared with one after it.
    pub(super) fn set_clock_back(&mut self) {
        self.miss();
        for end in &mut self.ends {
            end.recorded_at = None;
        }
    }

    /// A packet of one end.
    pub(super) fn packet(&mut self, from: usize, packet: &Transport, now: u64) -> Found {
        match packet.kind {
            Kind::Tcp => self.segment(from, &packet.segment, now),
            Kind::Echo => self.echo(from, u32::from(packet.echo.sequence), packet.echo.is_reply, now),
            Kind::Dns | Kind::Quic => Found::default(),
        }
    }

    /// How much an end waits for, with its lowest and smoothed RTT.
    pub(super) fn state(&self, end: usize) -> (usize, u64, u64) {
        let end = &self.ends[end];
        let waiting = end.values.len() + end.ends.len();
        (waiting, end.min_rtt.unwrap_or(FlowDirection::NO_RTT), end.smoothed_rtt)
    }

    fn echo(&mut self, from: usize, sequence: u32, is_reply: bool, now: u64) -> Found {
        let mut found = Found::default();
        if is_reply {
            let other = &mut self.ends[1 - from];
            let asked = other.values.iter().position(|&(waiting, _)| waiting == sequence);
            if let Some(position) = asked {
                let (_, since) = other.values.remove(position);
                other.sample(Method::IcmpEcho, sequence, since, now, &mut found);
            }
        } else if let Some(repeated) =
            self.ends[from].values.iter_mut().find(|(waiting, _)| *waiting == sequence)
        {
            repeated.1 = now;
        } else {
            self.record(from, |end| &mut end.values, sequence, now, &mut found);
        }
        found
    }

    fn segment(&mut self, from: usize, segment: &Segment, now: u64) -> Found {
        let mut found = Found::default();
        let flags = segment.flags;
        self.follow(from, flags);
        let reach = self.ends[from].reach(segment);
        if flags.rst() {
            self.ends.iter_mut().for_each(End::end_leg);
            return found;
        }
        self.note_options(segment);
        let methods = self.rules.methods;
        let has_handshake = methods.has(Method::TcpHandshake);
        let mut is_reply = false;
        if has_handshake {
            is_reply = self.ends[1 - from].replied(segment, now, &mut found);
            let is_timed = self.is_timed(from);
            self.ends[from].begin_leg(segment, is_timed.then_some(now));
        }
        let is_left_to_leg = has_handshake && flags.syn();
        if let Some(timestamps) = segment.timestamps()
            && methods.has(Method::TcpTs)
        {
            if flags.ack() {
                self.ends[1 - from].echoed(timestamps.tsecr, is_reply, now, &mut found);
            }
            let is_first = self.ends[from].is_first_of_tick(timestamps.tsval, flags.syn());
            if is_first && consumes(segment) && !is_left_to_leg {
                self.record(from, |end| &mut end.values, timestamps.tsval, now, &mut found);
            }
        }
        if methods.has_seq_always() || methods.has(Method::TcpSeq) && self.options == Options::Without {
            if flags.ack() {
                let gives_none = segment.has_sack || is_reply;
                self.ends[1 - from].acknowledged(segment.acknowledgement, gives_none, now, &mut found);
            }
            if consumes(segment) {
                if reach != Reach::Moved {
                    self.ends[from].ends.clear();
                }
                let is_first_sent = matches!(reach, Reach::Moved | Reach::MovedFromWithin)
                    || reach == Reach::Set && flags.syn();
                if is_first_sent && !is_left_to_leg {
                    self.record(from, |end| &mut end.ends, end(segment), now, &mut found);
                }
            }
        }
        found
    }

    /// Begins and ends connections.
    fn follow(&mut self, from: usize, flags: TcpFlags) {
        if flags.syn() && !flags.ack() && self.ends[from].is_under_way {
            for end in &mut self.ends {
                *end = End { is_local: end.is_local, highest: end.highest, ..End::default() };
            }
            // What is reset at once does not tell.
            if !flags.rst() {
                self.options = Options::Unknown(0);
            }
        }
        self.ends[from].is_under_way |= !flags.syn() || flags.fin() || flags.rst();
        self.ends[1 - from].is_under_way |= flags.rst();
    }

    fn note_options(&mut self, segment: &Segment) {
        let options = match self.options {
            _ if segment.has_timestamps => Options::With,
            _ if segment.flags.syn() => Options::Without,
            Options::Unknown(2) => Options::Without,
            Options::Unknown(segments) => Options::Unknown(segments + 1),
            known => known,
        };
        let is_unknown = matches!(self.options, Options::Unknown(_));
        if options != self.options && !is_unknown && !self.is_by_both() {
            self.forget_waiting();
        }
        self.options = options;
    }

    fn is_by_both(&self) -> bool {
        self.rules.methods.has_seq_always() && self.rules.methods.has(Method::TcpTs)
    }

    fn forget_waiting(&mut self) {
        for end in &mut self.ends {
            end.values.clear();
            end.ends.clear();
        }
    }

    fn is_timed(&self, from: usize) -> bool {
        !self.ends[1 - from].is_local || self.rules.include_local
    }

    /// Records unless a limit forbids it, or there is no slot.
    fn record(
        &mut self,
        from: usize,
        list: impl Fn(&mut End) -> &mut Vec<Waiting>,
        identifier: u32,
        now: u64,
        found: &mut Found,
    ) {
        let is_by_both = self.is_by_both();
        let slots = if is_by_both { 4 } else { 8 };
        let is_timed = self.is_timed(from);
        let end = &mut self.ends[from];
        let basis = match self.rules.rtt_basis {
            Basis::Smoothed => end.smoothed_rtt,
            Basis::Min => end.min_rtt.unwrap_or(0),
        };
        let wait = self.rules.rate_limit.max(basis * self.rules.rtt_rate / 65_536);
        let is_early = end.recorded_at.is_some_and(|recorded_at| {
            now.saturating_sub(recorded_at) < wait && !(is_by_both && recorded_at == now)
        });
        if !is_timed || is_early {
            return;
        }
        let waiting = list(end);
        if waiting.len() == slots {
            let (oldest, &(_, since)) =
                waiting.iter().enumerate().min_by_key(|(_, (_, since))| *since).unwrap();
            if now.saturating_sub(since) < 10_000_000_000 {
                found.full += 1;
                return;
            }
            waiting.remove(oldest);
        }
        waiting.push((identifier, now));
        end.recorded_at = Some(now);
    }
}

impl End {
    /// How far a segment goes, which is noted.
    fn reach(&mut self, segment: &Segment) -> Reach {
        if !consumes(segment) || segment.flags.rst() {
            return Reach::Nothing;
        }
        let end = end(segment);
        let reach = match self.highest {
            None => Reach::Set,
            Some(highest) if segment.flags.syn() && highest != end => Reach::Set,
            Some(highest) if is_newer(end, highest) && is_newer(highest, segment.sequence) => {
                Reach::MovedFromWithin
            }
            Some(highest) if is_newer(end, highest) => Reach::Moved,
            Some(_) => return Reach::Nothing,
        };
        self.highest = Some(end);
        reach
    }

    /// Begins a leg with a SYN, which waits if there is a time since when.
    fn begin_leg(&mut self, segment: &Segment, since: Option<u64>) {
        let number = segment.sequence.wrapping_add(1);
        match &mut self.leg {
            _ if !segment.flags.syn() => {}
            Some(leg) if leg.number == number => leg.since = None,
            leg => {
                let is_answer = segment.flags.ack();
                *leg = Some(Leg { number, payload: segment.payload, is_answer, since });
            }
        }
    }

    fn end_leg(&mut self) {
        if let Some(leg) = &mut self.leg {
            leg.since = None;
        }
    }

    /// Whether a segment of the other side is what a leg waits for.
    fn replied(&mut self, segment: &Segment, now: u64, found: &mut Found) -> bool {
        let Some(Leg { number, payload, is_answer, since: Some(since) }) = self.leg else { return false };
        if !segment.flags.ack() || segment.flags.syn() == is_answer {
            return false;
        }
        let acknowledged = segment.acknowledgement;
        let with_payload = number.wrapping_add(payload);
        let is_reply = acknowledged == number || acknowledged == with_payload;
        if is_reply {
            self.sample(Method::TcpHandshake, number, since, now, found);
        }
        if is_reply || is_newer(acknowledged, number) && is_newer(acknowledged, with_payload) {
            self.end_leg();
        }
        is_reply
    }

    /// Whether a `TSval` is the first of its tick, as far as anybody can know.
    fn is_first_of_tick(&mut self, tsval: u32, is_syn: bool) -> bool {
        let Some(newest) = self.newest else {
            self.newest = Some(tsval);
            return is_syn;
        };
        if !is_newer(tsval, newest) {
            return false;
        }
        self.newest = Some(tsval);
        !core::mem::take(&mut self.is_invalidated)
    }

    /// A `TSecr` came back.
    fn echoed(&mut self, tsecr: u32, gives_none: bool, now: u64, found: &mut Found) {
        let same = self.values.iter().copied().find(|&(waiting, _)| waiting == tsecr);
        self.values.retain(|&(waiting, _)| !is_covered(waiting, tsecr));
        if let Some((_, since)) = same
            && !gives_none
        {
            self.sample(Method::TcpTs, tsecr, since, now, found);
        }
    }

    /// An acknowledgement number came back.
    fn acknowledged(&mut self, number: u32, gives_none: bool, now: u64, found: &mut Found) {
        let covered: Vec<Waiting> =
            self.ends.iter().copied().filter(|&(waiting, _)| is_covered(waiting, number)).collect();
        self.ends.retain(|&(waiting, _)| !is_covered(waiting, number));
        let newest = covered.into_iter().reduce(|a, b| if is_newer(b.0, a.0) { b } else { a });
        if let Some((waiting, since)) = newest
            && !gives_none
        {
            self.sample(Method::TcpSeq, waiting, since, now, found);
        }
    }

    /// Takes a sample, unless the echo is older than what it echoes.
    fn sample(&mut self, method: Method, identifier: u32, since: u64, now: u64, found: &mut Found) {
        let Some(rtt) = now.checked_sub(since) else { return };
        // Rounded as the code does, since a limit may hang on a nanosecond.
        self.smoothed_rtt = match self.min_rtt {
            None => rtt,
            Some(_) => self.smoothed_rtt - self.smoothed_rtt / 8 + rtt / 8,
        };
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        found.samples.push((method, identifier, rtt));
    }
}
