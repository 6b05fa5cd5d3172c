//! What MATCHING.md says, written down once more: lists, no tricks.

use std::vec::Vec;

use crate::{
    flow::Direction,
    parse::{Kind, Segment, Transport},
    rtt::{Basis, Rules},
};

/// A sample: what was echoed, and the RTT in ns.
pub(super) type Sample = (u32, u64);

/// One end of a flow, and what it sent.
#[derive(Clone, Default)]
struct End {
    is_local: bool,
    /// It sent something other than the SYN that begins a connection, or a RST ended it.
    is_under_way: bool,
    newest: Option<u32>,
    is_doubtful: bool,
    waiting: Vec<Sample>,
    recorded_at: Option<u64>,
    min_rtt: Option<u64>,
    smoothed_rtt: u64,
}

/// A flow between two ends.
pub(super) struct Model {
    ends: [End; 2],
    rules: Rules,
}

fn is_newer(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Model {
    pub(super) fn new(rules: Rules, local: u32) -> Self {
        let end = |bit| End { is_local: local & bit != 0, ..End::default() };
        Self { ends: [end(1), end(2)], rules }
    }

    /// A packet went by unseen: it may have been any echo, or the first of its tick.
    pub(super) fn miss(&mut self) {
        for end in &mut self.ends {
            end.is_doubtful = end.newest.is_some();
            end.waiting.clear();
        }
    }

    /// A packet of one end: the sample it gives, and whether it found all slots full.
    pub(super) fn packet(&mut self, from: usize, packet: &Transport, now: u64) -> (Option<Sample>, bool) {
        if packet.kind == Kind::Echo {
            return self.echo(from, u32::from(packet.echo.sequence), packet.echo.is_reply, now);
        }
        let segment = &packet.segment;
        let flags = segment.flags;
        if flags.syn() && !flags.ack() && self.ends[from].is_under_way {
            for end in &mut self.ends {
                *end = End { is_local: end.is_local, ..End::default() };
            }
        }
        if flags.rst() {
            self.ends[0].is_under_way = true;
            self.ends[1].is_under_way = true;
        } else if !flags.syn() || flags.fin() {
            self.ends[from].is_under_way = true;
        }
        let Some(timestamps) = segment.timestamps() else { return (None, false) };
        if flags.rst() {
            return (None, false);
        }
        let sample = if flags.ack() { self.ends[1 - from].echoed(timestamps.tsecr, now) } else { None };
        let is_first = self.ends[from].is_first_of_tick(timestamps.tsval, segment);
        let is_full =
            is_first && segment.consumes_sequence_space() && self.record(from, timestamps.tsval, now);
        (sample, is_full)
    }

    fn echo(&mut self, from: usize, sequence: u32, is_reply: bool, now: u64) -> (Option<Sample>, bool) {
        if is_reply {
            return (self.ends[1 - from].answered(sequence, now), false);
        }
        let waiting = &mut self.ends[from].waiting;
        if let Some(repeated) = waiting.iter_mut().find(|(waiting, _)| *waiting == sequence) {
            repeated.1 = now;
            return (None, false);
        }
        (None, self.record(from, sequence, now))
    }

    /// Records unless a limit forbids it; returns whether only a slot was wanting.
    fn record(&mut self, from: usize, identifier: u32, now: u64) -> bool {
        if self.ends[1 - from].is_local && !self.rules.include_local {
            return false;
        }
        let end = &mut self.ends[from];
        let basis = match self.rules.rtt_basis {
            Basis::Smoothed => end.smoothed_rtt,
            Basis::Min => end.min_rtt.unwrap_or(0),
        };
        let wait = self.rules.rate_limit.max(basis * self.rules.rtt_rate / 65_536);
        if end.recorded_at.is_some_and(|recorded_at| now - recorded_at < wait) {
            return false;
        }
        if end.waiting.len() == 8 {
            let oldest = end.waiting.iter().map(|&(_, since)| since).min().unwrap();
            if now - oldest < 10_000_000_000 {
                return true;
            }
            end.waiting.retain(|&(_, since)| since != oldest);
        }
        end.waiting.push((identifier, now));
        end.recorded_at = Some(now);
        false
    }

    /// What an end waits for, oldest first, with its lowest and smoothed RTT.
    pub(super) fn state(&self, end: usize) -> (usize, u64, u64) {
        let end = &self.ends[end];
        (end.waiting.len(), end.min_rtt.unwrap_or(Direction::NO_RTT), end.smoothed_rtt)
    }
}

impl End {
    /// Whether a `TSval` is the first of its tick, as far as anybody can know.
    fn is_first_of_tick(&mut self, tsval: u32, segment: &Segment) -> bool {
        let Some(newest) = self.newest else {
            self.newest = Some(tsval);
            return segment.flags.syn();
        };
        if !is_newer(tsval, newest) {
            return false;
        }
        self.newest = Some(tsval);
        !core::mem::take(&mut self.is_doubtful)
    }

    /// A `TSecr` came back.
    fn echoed(&mut self, tsecr: u32, now: u64) -> Option<Sample> {
        let sample = self.answered(tsecr, now);
        self.waiting.retain(|&(waiting, _)| !is_newer(tsecr, waiting));
        sample
    }

    /// An identifier came back.
    fn answered(&mut self, identifier: u32, now: u64) -> Option<Sample> {
        let position = self.waiting.iter().position(|&(waiting, _)| waiting == identifier)?;
        let (_, since) = self.waiting.remove(position);
        let rtt = now - since;
        // Rounded as the code does, since a limit may hang on a nanosecond.
        self.smoothed_rtt = match self.min_rtt {
            None => rtt,
            Some(_) => self.smoothed_rtt - self.smoothed_rtt / 8 + rtt / 8,
        };
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        Some((identifier, rtt))
    }
}
