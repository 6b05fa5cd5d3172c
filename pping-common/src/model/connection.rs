//! Which segments belong to a connection, and which begin and end one.

use super::{
    End, Leg, Model, Standing, TimestampUse,
    end::{consumes, is_about, is_newer},
};
use crate::{
    limits::{AHEAD, AHEAD_ALONE, LARGEST_WINDOW, SAME_SYN, TSVAL_SLACK, UNDER_WAY, UNKNOWN_WINDOW},
    parse::{Segment, Timestamps},
};

impl Model {
    /// Whether the numbers of a segment are near those that are known. If the other end acknowledges what lies outside, its
    /// numbers continue there.
    pub(super) fn is_inside(&mut self, from: usize, segment: &Segment) -> bool {
        let [own, other] = [&self.ends[from], &self.ends[1 - from]];
        if segment.flags.syn() || segment.flags.rst() {
            return true;
        }
        if !segment.flags.ack() {
            return false;
        }
        if !self.is_confirmed {
            let sequence = segment.sequence;
            let is_seen = other.first_at.is_some() || other.is_closed;
            let most = if is_seen { 0x1_0000 } else { AHEAD_ALONE };
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
        let window = |receiver: &End| {
            let largest = receiver.window_shift.map_or(i64::from(UNKNOWN_WINDOW), |shift| 0x1_0000 << shift);
            (largest.min(AHEAD.into()), largest)
        };
        let is_near = |(ahead, behind): (i64, i64), highest: u32, number: u32| {
            let distance = i64::from(number.wrapping_sub(highest).cast_signed());
            (-behind..=ahead).contains(&distance)
        };
        if own.highest.is_some_and(|highest| !is_near(window(other), highest, segment.sequence)) {
            return false;
        }
        let (number, other_window) = (segment.acknowledgement, window(own));
        let Some(highest) = other.highest else { return true };
        let comes_next =
            own.highest.is_some_and(|highest| is_near((0x1_0000, 0x1_0000), highest, segment.sequence));
        let is_confirmed = other
            .outside
            .is_some_and(|end| is_near((i64::from(AHEAD_ALONE), i64::from(LARGEST_WINDOW)), end, number));
        let fits = is_near(other_window, highest, number);
        let is_taken = fits || is_confirmed && comes_next;
        if is_taken && is_confirmed && (!fits || is_newer(number, highest)) {
            self.miss();
            let is_under_way = |end: &u32| i64::from(end.wrapping_sub(number)) <= other_window.1;
            let end = &mut self.ends[1 - from];
            end.highest = end.outside.filter(is_under_way).or(Some(number));
        }
        is_taken
    }

    /// Forgets what a segment contradicts, and nobody has confirmed.
    pub(super) fn forget_unconfirmed(&mut self) {
        for end in &mut self.ends {
            end.end_leg();
            (end.recorded_at, end.window_shift) = Default::default();
        }
        self.forget_timestamps();
    }

    fn forget_timestamps(&mut self) {
        self.options = TimestampUse::Unknown(0);
        for end in &mut self.ends {
            (end.pending, end.newest, end.is_invalidated) = Default::default();
            (end.has_moved, end.lacking) = Default::default();
        }
    }

    /// Notes that the sender of a segment knows what the other end has sent.
    pub(super) fn note_knowledge(&mut self, from: usize, segment: &Segment) {
        let Some(highest) = self.ends[1 - from].highest else { return };
        let ahead = i64::from(segment.acknowledgement.wrapping_sub(highest).cast_signed());
        let is_near = (-i64::from(UNDER_WAY)..=0x1_0000).contains(&ahead);
        if self.is_confirmed || !segment.flags.ack() || segment.flags.rst() || !is_near {
            return;
        }
        self.is_confirmed = true;
        let Some(Timestamps { tsval, tsecr }) = segment.timestamps() else { return };
        let differs = |end: &End, tsval: u32| {
            end.newest
                .is_some_and(|newest| tsval.wrapping_sub(newest).cast_signed().unsigned_abs() > TSVAL_SLACK)
        };
        let is_unusable = self.options == TimestampUse::Unusable;
        if is_unusable || differs(&self.ends[from], tsval) || differs(&self.ends[1 - from], tsecr) {
            self.forget_timestamps();
        }
    }

    /// Begins and ends connections.
    pub(super) fn follow(&mut self, from: usize, segment: &Segment, now: u64) -> Standing {
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
    pub(super) fn begin_anew(&mut self) {
        for end in &mut self.ends {
            *end = End { is_local: end.is_local, outside: end.outside, ..End::default() };
        }
        (self.options, self.began_at, self.is_confirmed) = (TimestampUse::Unknown(0), None, false);
        self.replaced += 1;
    }

    /// Whether a RST may end the connection.
    pub(super) fn takes_reset(&self, from: usize, segment: &Segment) -> bool {
        match (self.ends[from].highest, self.ends[1 - from].highest) {
            (Some(own), Some(_)) if self.is_confirmed => is_about(own, segment.sequence),
            (Some(own), None) => is_about(own, segment.sequence),
            (_, Some(other)) => segment.flags.ack() && is_about(other, segment.acknowledgement),
            (None, None) => true,
        }
    }

    /// Whether a SYN begins another connection than the one before.
    pub(super) fn begins_anew(&self, from: usize, segment: &Segment, is_repeated: bool, now: u64) -> bool {
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
}
