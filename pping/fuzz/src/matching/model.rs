//! The rules of matching once more, without a thought of speed, and for times in any order.

use pping_common::{
    flow::Direction,
    limits::{SLOT_LIFETIME, SLOTS},
    parse::{Kind, Segment, Transport},
    rtt::{Basis, Rules, TsvalState},
};

/// A sample: what was echoed, and the RTT in ns.
type Sample = (u32, u64);

/// What can be seen of one direction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    waiting: usize,
    newest_tsval: Option<u32>,
    is_doubtful: bool,
    recorded_at: Option<u64>,
}

/// One end of a flow, and what it sent.
#[derive(Clone, Default)]
struct End {
    is_local: bool,
    /// It sent something other than the SYN that begins a connection, or a RST ended it.
    is_under_way: bool,
    newest: Option<u32>,
    is_doubtful: bool,
    /// Identifiers that wait, each with the time since when.
    waiting: [Option<(u32, u64)>; SLOTS],
    recorded_at: Option<u64>,
    min_rtt: Option<u64>,
    smoothed_rtt: Option<u64>,
}

/// A flow between two ends.
pub(super) struct Model {
    ends: [End; 2],
    rules: Rules,
}

impl State {
    /// What can be seen of a real direction.
    pub(super) fn of(direction: &Direction) -> Self {
        let is_known = direction.tsval_state != TsvalState::Unknown;
        Self {
            waiting: direction.slots.waiting(),
            newest_tsval: is_known.then_some(direction.newest_tsval),
            is_doubtful: direction.tsval_state == TsvalState::Doubtful,
            recorded_at: Some(direction.recorded_at).filter(|&time| time != 0),
        }
    }
}

impl Model {
    pub(super) fn new(rules: Rules, local: u32) -> Self {
        let end = |bit| End { is_local: local & bit != 0, ..End::default() };
        Self { ends: [end(1), end(2)], rules }
    }

    pub(super) fn state(&self, end: usize) -> State {
        let end = &self.ends[end];
        State {
            waiting: end.waiting.iter().flatten().count(),
            newest_tsval: end.newest,
            is_doubtful: end.is_doubtful,
            recorded_at: end.recorded_at,
        }
    }

    /// The lowest and the smoothed RTT of one end, if there was a sample.
    pub(super) fn rtts(&self, end: usize) -> Option<(u64, u64)> {
        self.ends[end].min_rtt.zip(self.ends[end].smoothed_rtt)
    }

    /// A packet went by unseen: it may have been any echo, or the first of its tick.
    pub(super) fn miss(&mut self) {
        for end in &mut self.ends {
            end.is_doubtful = end.newest.is_some();
            end.waiting = Default::default();
        }
    }

    /// No time before this can be compared with one after it.
    pub(super) fn set_clock_back(&mut self) {
        self.miss();
        for end in &mut self.ends {
            end.recorded_at = None;
        }
    }

    /// A packet of one end: the sample it gives, and whether it found all slots taken.
    pub(super) fn packet(&mut self, from: usize, packet: &Transport, now: u64) -> (Option<Sample>, bool) {
        match packet.kind {
            Kind::Tcp => self.segment(from, &packet.segment, now),
            Kind::Echo if packet.echo.is_reply => {
                (self.ends[1 - from].answered(packet.echo.sequence.into(), now), false)
            }
            Kind::Echo => (None, self.request(from, packet.echo.sequence.into(), now)),
        }
    }

    fn segment(&mut self, from: usize, segment: &Segment, now: u64) -> (Option<Sample>, bool) {
        let flags = segment.flags;
        if flags.syn() && !flags.ack() && self.ends[from].is_under_way {
            for end in &mut self.ends {
                *end = End { is_local: end.is_local, ..End::default() };
            }
        }
        self.ends[from].is_under_way |= !flags.syn() || flags.fin() || flags.rst();
        self.ends[1 - from].is_under_way |= flags.rst();
        let Some(timestamps) = segment.timestamps().filter(|_| !flags.rst()) else { return (None, false) };

        let mut sample = None;
        if flags.ack() {
            let other = &mut self.ends[1 - from];
            sample = other.answered(timestamps.tsecr, now);
            for slot in &mut other.waiting {
                *slot = slot.filter(|&(identifier, _)| !is_newer(timestamps.tsecr, identifier));
            }
        }
        let is_first_of_tick = self.ends[from].is_first_of_tick(timestamps.tsval, flags.syn());
        let must_be_echoed = segment.payload > 0 || flags.syn() || flags.fin();
        (sample, is_first_of_tick && must_be_echoed && self.record(from, timestamps.tsval, now))
    }

    /// A request that waits already waits from now on.
    fn request(&mut self, from: usize, sequence: u32, now: u64) -> bool {
        let mut waiting = self.ends[from].waiting.iter_mut().flatten();
        if let Some((_, since)) = waiting.find(|(identifier, _)| *identifier == sequence) {
            *since = now;
            return false;
        }
        self.record(from, sequence, now)
    }

    /// Records unless a limit forbids it; returns whether only a slot was wanting.
    fn record(&mut self, from: usize, identifier: u32, now: u64) -> bool {
        let is_untimed = self.ends[1 - from].is_local && !self.rules.include_local;
        if is_untimed || !self.ends[from].may_record(&self.rules, now) {
            return false;
        }
        let end = &mut self.ends[from];
        let Some(slot) = end.slot(now) else { return true };
        *slot = Some((identifier, now));
        end.recorded_at = Some(now);
        false
    }
}

impl End {
    fn may_record(&self, rules: &Rules, now: u64) -> bool {
        let Some(recorded_at) = self.recorded_at else { return true };
        let basis = match rules.rtt_basis {
            Basis::Smoothed => self.smoothed_rtt,
            Basis::Min => self.min_rtt,
        };
        // An RTT of more than 18 minutes counts as that.
        let wait = (u128::from(basis.unwrap_or(0).min(1 << 40)) * u128::from(rules.rtt_rate)) >> 16;
        u128::from(now.saturating_sub(recorded_at)) >= wait.max(rules.rate_limit.into())
    }

    /// A free slot, or that of what has waited longest if that is long enough.
    fn slot(&mut self, now: u64) -> Option<&mut Option<(u32, u64)>> {
        let since = |slot: &Option<(u32, u64)>| slot.map(|(_, since)| since);
        self.waiting
            .iter_mut()
            .min_by_key(|slot| since(slot))
            .filter(|slot| since(slot).is_none_or(|since| now.saturating_sub(since) >= SLOT_LIFETIME))
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
        !std::mem::take(&mut self.is_doubtful)
    }

    /// An identifier came back. It waits no longer, even if that was before it was sent.
    fn answered(&mut self, identifier: u32, now: u64) -> Option<Sample> {
        let slot =
            self.waiting.iter_mut().find(|slot| slot.is_some_and(|(waiting, _)| waiting == identifier))?;
        let (_, since) = slot.take()?;
        let rtt = now.checked_sub(since)?;
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        // Rounded as the code does, since a limit may hang on a nanosecond.
        self.smoothed_rtt = Some(self.smoothed_rtt.map_or(rtt, |smoothed| smoothed - smoothed / 8 + rtt / 8));
        Some((identifier, rtt))
    }
}

/// RFC 7323, 5.2.
fn is_newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
