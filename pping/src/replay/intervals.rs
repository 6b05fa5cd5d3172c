//! Intervals of aggregation, by the time of the packets.

use std::sync::Arc;

use pping_common::{
    abi::Candidate,
    limits::SECOND,
    series::{SeriesCounts, SeriesKey},
};

use super::engine::Engine;
use crate::{
    aggregate::Totals,
    config::Aggregation,
    event::Event,
    groups::{Names, roll_up},
    output,
    records::{Record, Reporter},
    worst::WorstFlow,
};

/// The time that a packet may be behind the newest one before the clock counts as set back, ns.
const SETBACK: u64 = 60 * SECOND;

/// The present interval, and the reporter of its records.
///
/// Packets that come a little late count for the present interval. A packet that is more than a minute older than the newest
/// ends the interval, and the next begins at that packet's time.
pub(super) struct Intervals {
    reporter: Reporter,
    names: Names,
    /// How long groups without traffic are kept, ns.
    timeout: u64,
    /// The time of the newest packet since the clock was last set back; `None` before the first packet.
    newest: Option<u64>,
    /// When the present interval ends; `u64::MAX` without intervals.
    next: u64,
}

/// The counts and the worst flow directions of an interval that is over.
pub(super) struct FinishedInterval {
    slices: Vec<(SeriesKey, SeriesCounts)>,
    worst: Vec<(Candidate, Option<SeriesKey>)>,
    ended: Ended,
}

/// How an interval ended.
enum Ended {
    /// At its regular end, the first time. The next packet came at the second time.
    InTime(u64, u64),
    /// At the first time, because the clock was set back to the second.
    SetBack(u64, u64),
    /// It goes on.
    NotYet,
}

impl Intervals {
    pub(super) fn new(reporter: Reporter, names: Names, aggregation: &Aggregation) -> Self {
        let timeout = aggregation.group_timeout.as_nanos() as u64;
        Self { reporter, names, timeout, newest: None, next: 0 }
    }

    /// Ends the present interval if a packet of this time belongs to another, and returns what it measured.
    #[inline]
    pub(super) fn end_before_packet(&mut self, time: u64, engine: &mut Engine) -> Option<FinishedInterval> {
        let newest = self.newest.unwrap_or(0);
        if time < self.next && newest.saturating_sub(time) <= SETBACK {
            self.newest = Some(newest.max(time));
            return None;
        }
        self.end_interval(time, engine)
    }

    #[cold]
    fn end_interval(&mut self, time: u64, engine: &mut Engine) -> Option<FinishedInterval> {
        let Some(newest) = self.newest.replace(time) else {
            self.reporter.restart(time);
            self.next = self.reporter.interval_end().unwrap_or(u64::MAX);
            return None;
        };
        let next = self.reporter.interval_end()?;
        let (end, ended) = if time < next {
            let end = newest.saturating_add(1);
            (end, Ended::SetBack(end, time))
        } else {
            (next, Ended::InTime(next, time))
        };
        engine.flush(end);
        // The worst refer to series by index, and taking the series may give an index to another.
        let worst = engine.tracker.take_worst();
        Some(FinishedInterval { slices: engine.tracker.take_series(end, self.timeout), worst, ended })
    }

    /// Takes the counts so far without ending an interval, because bins count only to 2^32.
    pub(super) fn take_counts(engine: &mut Engine) -> FinishedInterval {
        FinishedInterval {
            slices: engine.tracker.take_series(0, u64::MAX),
            worst: Vec::new(),
            ended: Ended::NotYet,
        }
    }

    /// Makes the records of an interval that is over.
    pub(super) fn records(
        &mut self,
        FinishedInterval { slices, worst, ended }: FinishedInterval,
        interface: impl Fn(u16) -> Option<Arc<str>>,
    ) -> Result<Vec<Record>, output::Error> {
        self.take(&slices, &interface);
        drop(slices);
        self.rank(&worst, interface);
        let records = match ended {
            Ended::NotYet => return Ok(Vec::new()),
            Ended::InTime(end, time) => {
                let records = self.reporter.tick(end)?;
                // Skips the intervals without packets.
                self.reporter.tick(time)?;
                records
            }
            Ended::SetBack(end, time) => {
                let records = self.reporter.finish(end)?;
                self.reporter.restart(time);
                records
            }
        };
        self.next = self.reporter.interval_end().unwrap_or(u64::MAX);
        Ok(records)
    }

    /// Ends all flows, and makes the records of the last interval.
    pub(super) fn finish(
        &mut self,
        engine: &mut Engine,
        interface: impl Fn(u16) -> Option<Arc<str>>,
    ) -> Result<Vec<Record>, output::Error> {
        engine.tracker.finish();
        let end = self.newest.map_or(0, |newest| newest.saturating_add(1));
        let worst = engine.tracker.take_worst();
        let slices = engine.tracker.take_series(end, self.timeout);
        self.take(&slices, &interface);
        self.rank(&worst, interface);
        self.reporter.finish(end)
    }

    fn take(&mut self, slices: &[(SeriesKey, SeriesCounts)], interface: impl Fn(u16) -> Option<Arc<str>>) {
        if self.names.levels().is_empty() {
            for (key, counts) in slices {
                if let Some(name) = self.names.series(key, interface(key.interface)) {
                    self.reporter.take(&name, counts);
                }
            }
            return;
        }
        let named = |(key, counts): &(SeriesKey, SeriesCounts)| {
            Some((self.names.series(key, interface(key.interface))?, *counts))
        };
        let named: Vec<_> = slices.iter().filter_map(named).collect();
        for (name, counts) in named.iter().chain(&roll_up(&named)) {
            self.reporter.take(name, counts);
        }
    }

    fn rank(
        &mut self,
        worst: &[(Candidate, Option<SeriesKey>)],
        interface: impl Fn(u16) -> Option<Arc<str>>,
    ) {
        let named = worst.iter().map(|(candidate, series)| WorstFlow {
            candidate: *candidate,
            interface: interface(candidate.endpoints.interface),
            of: self.names.membership(series.as_ref()),
        });
        let flows: Vec<_> = named.collect();
        self.reporter.rank(&flows);
    }

    /// Makes the record of an event, if one is to be written.
    pub(super) fn event(
        &mut self,
        event: &Event,
        series: Option<&SeriesKey>,
        interface: Option<Arc<str>>,
    ) -> Option<Record> {
        self.reporter.event(event, interface, self.names.membership(series), |time| time)
    }

    /// Opens the log again.
    pub(super) fn reopen(&mut self) {
        self.reporter.reopen();
    }

    /// Closes the log. Returns how many of its lines were lost.
    pub(super) fn close_log(&mut self) -> Result<u64, output::Error> {
        self.reporter.close_log()
    }

    pub(super) fn into_totals(self) -> Totals {
        self.reporter.into_totals()
    }
}
