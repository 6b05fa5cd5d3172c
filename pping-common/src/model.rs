//! A second implementation of the matching rules, written for clarity instead of speed, and for times in any order.
//!
//! Unit tests and the fuzz target `matching` send the same packets to a [`Flow`](crate::flow::Flow) and a [`Model`]. The
//! two must agree on all samples and on the state that both keep. The model has no QUIC.

use core::ops::Range;
use std::vec::Vec;

use crate::{
    flow::{Endpoint, Flow, Outcome},
    limits::{
        AHEAD_WITHOUT_WINDOW, BEHIND_WITHOUT_WINDOW, PENDING_LIFETIME, PENDING_PER_DIRECTION, RST_WITHIN,
        SAME_SYN, TSVAL_SLACK, UNDER_WAY,
    },
    method::Method,
    parse::{Kind, Segment, Timestamps, Transport},
    rtt::{Measured, RttBasis, RttSummary, Rules, TsvalState},
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

    /// Removes a pending request.
    fn take_request(&mut self, sender: usize, number: (u16, u16)) -> Option<Request> {
        let is_it = |request: &mut Request| (request.sender, request.number) == (sender, number);
        self.latest.iter_mut().chain(&mut self.kept).find_map(|request| request.take_if(is_it))
    }

    /// Takes the sample of a request, unless its distance from the request of the latest sample is too short.
    fn answer(&mut self, Request { sender, number, since }: Request, now: u64, found: &mut Found) {
        let end = &mut self.ends[sender];
        let may_give = end
            .recorded_at
            .is_none_or(|sampled_at| end.is_apart(&self.rules, since.min(sampled_at), since.max(sampled_at)));
        if since <= now && may_give {
            end.recorded_at = end.recorded_at.max(Some(since));
            end.sample(Method::IcmpEcho, number.0.into(), since, now, found);
        }
    }

    /// Records an echo request among the latest, unless a request with the same number and data is pending: then neither waits, unless
    /// the second is a copy. The oldest of the latest may have to make room, and is then kept, if there is room for it.
    fn request(&mut self, sender: usize, number: (u16, u16), now: u64, found: &mut Found) {
        let mut waiting = self.latest.iter().chain(&self.kept).flatten();
        if let Some(before) = waiting.find(|request| (request.sender, request.number) == (sender, number)) {
            if before.since <= now.saturating_sub(self.rules.copy_within) {
                self.take_request(sender, number);
                found.not_awaited += 1;
            }
            return;
        }
        found.asked += 1;
        let oldest = |requests: &Requests| {
            let since = |position: &usize| requests[*position].map_or(0, |request| request.since);
            (0..PENDING_PER_DIRECTION).min_by_key(since).unwrap_or(0)
        };
        let place = oldest(&self.latest);
        let Some(pushed) = self.latest[place].replace(Request { sender, number, since: now }) else {
            return;
        };
        let sampled_at = [self.ends[0].recorded_at, self.ends[1].recorded_at];
        let gives_way = |request: &Request| {
            sampled_at[request.sender].is_some_and(|at| request.since < at)
                || now.saturating_sub(request.since) >= PENDING_LIFETIME
        };
        if gives_way(&pushed) {
            found.gave_way += 1;
            return;
        }
        let newest = self.kept.iter().flatten().map(|request| request.since).max();
        let before = newest.max(sampled_at[pushed.sender]);
        if before.is_some_and(|before| !self.ends[sender].is_apart(&self.rules, before, pushed.since)) {
            found.not_awaited += 1;
            return;
        }
        let place = oldest(&self.kept);
        if let Some(kept) = &self.kept[place] {
            if !gives_way(kept) {
                found.pending_full += 1;
                found.not_awaited += 1;
                return;
            }
            found.gave_way += 1;
        }
        self.kept[place] = Some(pushed);
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
                if let Some((waiting, since)) = newest.filter(|_| !is_reply && !segment.has_sack) {
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

    /// Whether the numbers of a segment are near those that are known. If the other end acknowledges what lies outside, its
    /// numbers continue there.
    fn is_inside(&mut self, from: usize, segment: &Segment) -> bool {
        let [own, other] = [&self.ends[from], &self.ends[1 - from]];
        if segment.flags.syn() || segment.flags.rst() {
            return true;
        }
        if !self.is_confirmed {
            let sequence = segment.sequence;
            let is_seen = other.first_at.is_some() || other.is_closed;
            let most = if is_seen { 0x1_0000 } else { AHEAD_WITHOUT_WINDOW };
            let is_far = |highest: u32| sequence.wrapping_sub(highest).cast_signed().unsigned_abs() > most;
            if own.highest.is_some_and(is_far) {
                self.forget_unconfirmed();
                self.ends[from].highest = (!consumes(segment)).then_some(sequence);
            }
            return true;
        }
        if other.first_at.is_none() && !other.is_closed {
            return true;
        }
        let unknown = (i64::from(AHEAD_WITHOUT_WINDOW), i64::from(BEHIND_WITHOUT_WINDOW));
        let window = |shift: u32| {
            own.window_shift
                .and(other.window_shift)
                .map_or(unknown, |_| (0x1_0000 << shift, 0x1_0000 << shift))
        };
        let is_near = |(ahead, behind): (i64, i64), highest: u32, number: u32| {
            let distance = i64::from(number.wrapping_sub(highest).cast_signed());
            (-behind..=ahead).contains(&distance)
        };
        // The receiver offers the window.
        let own_window = window(other.window_shift.unwrap_or(0));
        if own.highest.is_some_and(|highest| !is_near(own_window, highest, segment.sequence)) {
            return false;
        }
        let (number, other_window) = (segment.acknowledgement, window(own.window_shift.unwrap_or(0)));
        let Some(highest) = other.highest.filter(|_| segment.flags.ack()) else { return true };
        let comes_next =
            own.highest.is_none_or(|highest| is_near((0x1_0000, 0x1_0000), highest, segment.sequence));
        let is_confirmed = other.outside.is_some_and(|end| is_near(unknown, end, number));
        let is_taken = is_near(other_window, highest, number) || is_confirmed && comes_next;
        if is_taken && is_confirmed && is_newer(number, highest) {
            self.miss();
            self.ends[1 - from].highest = Some(number);
        }
        is_taken
    }

    /// Forgets what a segment contradicts, and nobody has confirmed.
    fn forget_unconfirmed(&mut self) {
        self.options = TimestampUse::Unknown(0);
        for end in &mut self.ends {
            end.end_leg();
            (end.pending, end.recorded_at, end.newest, end.window_shift) = Default::default();
            (end.has_moved, end.lacking, end.is_invalidated) = Default::default();
        }
    }

    /// Notes that the sender of a segment knows what the other end has sent.
    fn note_knowledge(&mut self, from: usize, segment: &Segment) {
        let Some(highest) = self.ends[1 - from].highest else { return };
        let ahead = i64::from(segment.acknowledgement.wrapping_sub(highest).cast_signed());
        let is_near = (-i64::from(UNDER_WAY)..=0x1_0000).contains(&ahead);
        self.is_confirmed |= segment.flags.ack() && !segment.flags.rst() && is_near;
    }

    /// Begins and ends connections.
    fn follow(&mut self, from: usize, segment: &Segment, now: u64) -> Standing {
        let flags = segment.flags;
        let mut standing = Standing::Taken;
        if flags.rst() {
            if !self.takes_reset(from, segment) {
                return Standing::Refused;
            }
        } else if flags.syn() {
            let number = segment.sequence.wrapping_add(1);
            let is_open = self.ends.iter().any(|end| end.is_answered && !end.is_closed);
            let is_past_syn = self.ends[from].is_past_syn;
            let is_other_past_syn = self.ends[1 - from].is_past_syn;
            let is_repeated = self.ends[from].leg.is_some_and(|leg| leg.number == number && !leg.is_proposed);
            let is_awaited = self.ends[1 - from]
                .leg
                .is_some_and(|leg| leg.is_proposed && leg.number == segment.acknowledgement);
            let highest = self.ends[1 - from].highest;
            let may_be_asked_for = highest.is_none_or(|end| is_about(end, segment.acknowledgement));
            let is_unasked = flags.ack() && !is_awaited && !may_be_asked_for;
            let is_over = self.ends[1 - from].is_closed && !is_open;
            if is_unasked && !is_over {
                return Standing::Refused;
            }
            let untimed = Leg { number, payload: 0, is_answer: false, since: None, is_proposed: false };
            if flags.ack() && is_awaited {
                self.begin_anew();
                let (number, first) = (segment.acknowledgement, &mut self.ends[1 - from]);
                first.leg = Some(Leg { number, ..untimed });
                (first.first_at, first.highest) = (Some(now), Some(number));
                self.began_at = Some(now);
            } else if is_unasked || !flags.ack() && self.begins_anew(from, segment, is_repeated, now) {
                if is_open {
                    let waits = self.ends[from].leg.is_some_and(|leg| leg.is_answer && leg.since.is_some());
                    if !waits {
                        self.ends[from].leg = Some(Leg { is_proposed: true, ..untimed });
                    }
                    return Standing::Refused;
                }
                self.begin_anew();
            } else if is_repeated {
                standing = Standing::Repeated;
            } else if flags.ack() && is_past_syn && is_other_past_syn && is_open {
                return Standing::Refused;
            }
        }
        let other = &mut self.ends[1 - from];
        other.is_answered |= other.first_at.is_some() && !other.is_closed && !flags.rst();
        let end = &mut self.ends[from];
        if !end.is_closed && end.first_at.is_none() {
            end.first_at = Some(now);
        }
        self.began_at.get_or_insert(now);
        end.is_closed |= flags.fin() || flags.rst();
        self.ends[1 - from].is_closed |= flags.rst();
        standing
    }

    /// Forgets the connection before.
    fn begin_anew(&mut self) {
        for end in &mut self.ends {
            *end = End { is_local: end.is_local, outside: end.outside, ..End::default() };
        }
        (self.options, self.began_at, self.is_confirmed) = (TimestampUse::Unknown(0), None, false);
        self.replaced += 1;
    }

    /// Whether a RST may end the connection.
    fn takes_reset(&self, from: usize, segment: &Segment) -> bool {
        let acknowledged = segment.flags.ack().then_some(segment.acknowledgement);
        match (self.ends[from].highest, self.ends[1 - from].highest, acknowledged) {
            (Some(own), _, _) => is_about(own, segment.sequence),
            (None, Some(other), Some(number)) => is_about(other, number),
            (None, _, _) => true,
        }
    }

    /// Whether a SYN begins another connection than the one before.
    fn begins_anew(&self, from: usize, segment: &Segment, is_repeated: bool, now: u64) -> bool {
        let (end, other) = (&self.ends[from], &self.ends[1 - from]);
        let is_over = end.is_past_syn || end.is_closed;
        if end.leg.is_none() {
            return is_over || other.is_past_syn;
        }
        if !is_repeated || !is_over {
            return !is_repeated;
        }
        let is_refused = end.is_closed && other.leg.is_none();
        is_refused
            || match (segment.timestamps(), end.newest) {
                (Some(timestamps), Some(newest)) => is_newer(timestamps.tsval, newest),
                _ => self.began_at.is_some_and(|began| now.saturating_sub(began) >= SAME_SYN),
            }
    }

    fn note_options(&mut self, from: usize, segment: &Segment, reach: Reach, now: u64) {
        let options = match self.options {
            TimestampUse::Unusable => return,
            TimestampUse::With if segment.has_timestamps || !segment.flags.syn() => {
                let is_noted = self.rules.methods.has(Method::TcpTs);
                let still_clock = self.rules.still_clock;
                if !is_noted || !self.ends[from].fails_timestamps(segment, reach, now, still_clock) {
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

impl End {
    /// Frees the slots whose identifier matches, and returns what was pending in them.
    fn take(&mut self, slots: Range<usize>, is_freed: impl Fn(u32) -> bool) -> Vec<Recorded> {
        let freed = self.pending[slots].iter_mut();
        freed.filter_map(|slot| slot.take_if(|(identifier, _)| is_freed(*identifier))).collect()
    }

    fn may_record(&self, rules: &Rules, now: u64) -> bool {
        self.recorded_at.is_none_or(|recorded_at| self.is_apart(rules, recorded_at, now))
    }

    /// Whether the limits allow recordings at these two times.
    fn is_apart(&self, rules: &Rules, recorded_at: u64, now: u64) -> bool {
        if rules.methods.has_both() && recorded_at == now {
            return true;
        }
        let basis = match rules.rtt_basis {
            RttBasis::Smoothed => self.smoothed_rtt,
            RttBasis::Min => self.min_rtt,
        };
        // The code caps the RTT at 2^40 ns, about 18 minutes.
        let wait = (u128::from(basis.unwrap_or(0).min(1 << 40)) * u128::from(rules.rtt_rate)) >> 16;
        u128::from(now.saturating_sub(recorded_at)) >= wait.max(rules.rate_limit.into())
    }

    /// Returns a free slot. If there is none, returns the one pending longest, provided that its lifetime is over.
    fn slot(&mut self, slots: Range<usize>, now: u64) -> Option<&mut Option<Recorded>> {
        let since = |slot: &Option<Recorded>| slot.map(|(_, since)| since);
        self.pending[slots]
            .iter_mut()
            .min_by_key(|slot| since(slot))
            .filter(|slot| since(slot).is_none_or(|since| now.saturating_sub(since) >= PENDING_LIFETIME))
    }

    /// Notes the end of a segment, and returns how it moved the highest sequence number.
    fn reach(&mut self, segment: &Segment, is_repeated_syn: bool) -> Reach {
        if !consumes(segment) || segment.flags.rst() {
            return Reach::Nothing;
        }
        if is_repeated_syn {
            return if self.is_past_syn { Reach::Nothing } else { Reach::Behind };
        }
        let end = segment.sequence_end();
        let reach = match self.highest {
            None => Reach::Set,
            Some(highest) if segment.flags.syn() && highest != end => Reach::Set,
            Some(highest) if is_newer(end, highest) && is_newer(highest, segment.sequence) => {
                Reach::MovedFromWithin
            }
            Some(highest) if is_newer(end, highest) => Reach::Moved,
            Some(_) => return Reach::Behind,
        };
        self.highest = Some(end);
        reach
    }

    /// Whether a segment begins with something that was sent before.
    fn begins_below(&self, segment: &Segment) -> bool {
        self.highest.is_some_and(|highest| is_newer(highest, segment.sequence))
    }

    /// Whether a segment may be acknowledged for what was sent before.
    fn repeats(&self, segment: &Segment, reach: Reach) -> bool {
        match reach {
            Reach::Moved => false,
            Reach::MovedFromWithin | Reach::Set | Reach::Behind => true,
            Reach::Nothing => self.begins_below(segment),
        }
    }

    /// Forgets a pending timestamp whose echo may answer either of two segments, unless the second is a copy.
    fn forget_ambiguous(&mut self, slots: Range<usize>, tsval: u32, now: u64, copy_within: u64) {
        let earliest_retransmission = self.min_rtt.unwrap_or(u64::MAX).min(copy_within);
        for slot in &mut self.pending[slots] {
            slot.take_if(|(waiting, since)| {
                *waiting == tsval && *since <= now.saturating_sub(earliest_retransmission)
            });
        }
    }

    /// Notes a segment of a flow with timestamps, and returns whether those of this end have failed.
    fn fails_timestamps(&mut self, segment: &Segment, reach: Reach, now: u64, still_clock: u64) -> bool {
        let has_new_data = reach == Reach::Moved;
        let Some(Timestamps { tsval, .. }) = segment.timestamps() else {
            let is_probe = reach == Reach::Behind || reach == Reach::Nothing && self.begins_below(segment);
            self.lacking += u32::from(!is_probe);
            return self.lacking == 3;
        };
        let Some(newest) = self.newest.filter(|&newest| !is_newer(tsval, newest)) else {
            if segment.flags.syn() && segment.flags.ack() && segment.timestamps() == Some(Timestamps::ZERO) {
                return true;
            }
            let has_moved = self.newest.is_some() && self.is_past_syn;
            if has_moved && !self.is_closed && self.leaps(tsval, now) {
                self.lacking += 1;
                return self.lacking == 3;
            }
            self.has_moved = has_moved && tsval != 0;
            self.lacking = 0;
            return false;
        };
        if !has_new_data {
            return false;
        }
        let is_still = !self.is_closed && !self.has_moved;
        if is_still && self.first_at.is_some_and(|first| now.saturating_sub(first) >= still_clock) {
            return true;
        }
        self.lacking = if tsval == newest { 0 } else { self.lacking + 1 };
        self.lacking == 3
    }

    /// Whether a newer `TSval` is further ahead than a clock can have advanced.
    fn leaps(&self, tsval: u32, now: u64) -> bool {
        let elapsed = now.saturating_sub(self.first_at.max(self.recorded_at).unwrap_or(0));
        let ahead = tsval.wrapping_sub(self.newest.unwrap_or(0));
        u64::from(ahead) > u64::from(TSVAL_SLACK) + elapsed / 512
    }

    /// Begins a leg with a SYN. It is timed if `since` is set.
    fn begin_leg(&mut self, segment: &Segment, since: Option<u64>, now: u64, copy_within: u64) {
        let number = segment.sequence.wrapping_add(1);
        match &mut self.leg {
            _ if !segment.flags.syn() => {}
            Some(leg) if leg.number == number => {
                leg.since.take_if(|since| now.saturating_sub(*since) >= copy_within);
            }
            leg => {
                let is_answer = segment.flags.ack();
                *leg = Some(Leg { number, payload: segment.payload, is_answer, since, is_proposed: false });
                // The RTTs belong to an earlier connection.
                if since.is_some() {
                    (self.min_rtt, self.smoothed_rtt) = (None, None);
                }
            }
        }
    }

    fn end_leg(&mut self) {
        self.leg = self.leg.filter(|leg| !leg.is_proposed).map(|leg| Leg { since: None, ..leg });
    }

    /// Whether a segment of the other end is the reply that a leg expects.
    fn replied(&mut self, segment: &Segment, now: u64, found: &mut Found) -> bool {
        let Some(Leg { number, payload, is_answer, since: Some(since), .. }) = self.leg else { return false };
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

    /// Whether a `TSval` is known to be the first of its tick.
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

    /// Takes a sample, unless the echo is older than the packet it echoes.
    fn sample(&mut self, method: Method, identifier: u32, since: u64, now: u64, found: &mut Found) {
        let Some(rtt) = now.checked_sub(since) else { return };
        // If anything else is echoed, the reply to the leg was missed.
        self.end_leg();
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        // Rounded as in the code, because a limit may depend on one nanosecond.
        self.smoothed_rtt = Some(self.smoothed_rtt.map_or(rtt, |smoothed| smoothed - smoothed / 8 + rtt / 8));
        found.samples.push((method, identifier, rtt));
    }
}

/// RFC 7323, 5.2.
fn is_newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Whether `a` equals `b` or precedes it by less than half of the number space.
fn is_covered(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) >= 0
}

fn consumes(segment: &Segment) -> bool {
    segment.payload > 0 || segment.flags.syn() || segment.flags.fin()
}

/// Whether a number is at most [`RST_WITHIN`] from another.
fn is_about(end: u32, number: u32) -> bool {
    number.wrapping_sub(end).cast_signed().unsigned_abs() <= RST_WITHIN
}
