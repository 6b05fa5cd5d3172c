//! One end of a connection.

use core::ops::Range;
use std::vec::Vec;

use super::{End, Found, Leg, Reach, Recorded};
use crate::{
    limits::{PENDING_LIFETIME, RST_WITHIN, TSVAL_SLACK},
    method::Method,
    parse::{Segment, Timestamps},
    rtt::{RttBasis, Rules},
};

impl End {
    /// Frees the slots whose identifier matches, and returns what was pending in them.
    pub(super) fn take(&mut self, slots: Range<usize>, is_freed: impl Fn(u32) -> bool) -> Vec<Recorded> {
        let freed = self.pending[slots].iter_mut();
        freed.filter_map(|slot| slot.take_if(|(identifier, _)| is_freed(*identifier))).collect()
    }

    pub(super) fn may_record(&self, rules: &Rules, now: u64) -> bool {
        self.recorded_at.is_none_or(|recorded_at| self.is_apart(rules, recorded_at, now))
    }

    /// Whether the limits allow recordings at these two times.
    pub(super) fn is_apart(&self, rules: &Rules, recorded_at: u64, now: u64) -> bool {
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
    pub(super) fn slot(&mut self, slots: Range<usize>, now: u64) -> Option<&mut Option<Recorded>> {
        let since = |slot: &Option<Recorded>| slot.map(|(_, since)| since);
        self.pending[slots]
            .iter_mut()
            .min_by_key(|slot| since(slot))
            .filter(|slot| since(slot).is_none_or(|since| now.saturating_sub(since) >= PENDING_LIFETIME))
    }

    /// Notes the end of a segment, and returns how it moved the highest sequence number.
    pub(super) fn reach(&mut self, segment: &Segment, is_repeated_syn: bool) -> Reach {
        if segment.flags.rst() {
            return Reach::Nothing;
        }
        if !consumes(segment) {
            self.highest.get_or_insert(segment.sequence);
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
    pub(super) fn begins_below(&self, segment: &Segment) -> bool {
        self.highest.is_some_and(|highest| is_newer(highest, segment.sequence))
    }

    /// Whether a segment may be acknowledged for what was sent before.
    pub(super) fn repeats(&self, segment: &Segment, reach: Reach) -> bool {
        match reach {
            Reach::Moved => false,
            Reach::MovedFromWithin | Reach::Set | Reach::Behind => true,
            Reach::Nothing => self.begins_below(segment),
        }
    }

    /// Forgets a pending timestamp whose echo may answer either of two segments, unless the second is a copy.
    pub(super) fn forget_ambiguous(&mut self, slots: Range<usize>, tsval: u32, now: u64, copy_within: u64) {
        let earliest_retransmission = self.min_rtt.unwrap_or(u64::MAX).min(copy_within);
        for slot in &mut self.pending[slots] {
            slot.take_if(|(waiting, since)| {
                *waiting == tsval && *since <= now.saturating_sub(earliest_retransmission)
            });
        }
    }

    /// Notes a segment of a flow with timestamps that began at `began_at`, and returns whether those of this end have failed.
    pub(super) fn fails_timestamps(
        &mut self,
        segment: &Segment,
        reach: Reach,
        began_at: Option<u64>,
        now: u64,
        still_clock: u64,
    ) -> bool {
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
            if has_moved && self.leaps(tsval, began_at, now) {
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
    pub(super) fn leaps(&self, tsval: u32, began_at: Option<u64>, now: u64) -> bool {
        let began_at = if self.is_closed { began_at } else { self.first_at };
        let elapsed = now.saturating_sub(began_at.max(self.recorded_at).unwrap_or(0));
        let ahead = tsval.wrapping_sub(self.newest.unwrap_or(0));
        u64::from(ahead) > u64::from(TSVAL_SLACK) + elapsed / 512
    }

    /// Begins a leg with a SYN. It is timed if `since` is set.
    pub(super) fn begin_leg(&mut self, segment: &Segment, since: Option<u64>, now: u64, copy_within: u64) {
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

    pub(super) fn end_leg(&mut self) {
        self.leg = self.leg.filter(|leg| !leg.is_proposed).map(|leg| Leg { since: None, ..leg });
    }

    /// Whether a segment of the other end is the reply that a leg expects.
    pub(super) fn replied(&mut self, segment: &Segment, now: u64, found: &mut Found) -> bool {
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
    pub(super) fn is_first_of_tick(&mut self, tsval: u32, is_syn: bool) -> bool {
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
    pub(super) fn sample(
        &mut self,
        method: Method,
        identifier: u32,
        since: u64,
        now: u64,
        found: &mut Found,
    ) {
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
pub(super) fn is_newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Whether `a` equals `b` or precedes it by less than half of the number space.
pub(super) fn is_covered(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) >= 0
}

pub(super) fn consumes(segment: &Segment) -> bool {
    segment.payload > 0 || segment.flags.syn() || segment.flags.fin()
}

/// Whether a number is at most [`RST_WITHIN`] from another.
pub(super) fn is_about(end: u32, number: u32) -> bool {
    number.wrapping_sub(end).cast_signed().unsigned_abs() <= RST_WITHIN
}
