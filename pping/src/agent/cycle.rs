//! Once a second, and at the end of each interval: what the kernel programs have aggregated.

use std::{
    mem,
    time::{Duration, Instant},
};

use pping_common::{
    abi::{SeriesKey, Tally},
    limits::SECOND,
};

use super::Agent;
use crate::{
    Error,
    config::Aggregation,
    groups::{Names, SeriesName},
    kernel::{clock, load::Kernel, sweep::sweep},
    output::Batch,
    records::{Record, Reporter},
};

/// How often there may be room for groups that there was none for before.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(10);

/// How far the wall clock may go back, ns, and it is only being put right.
const SETBACK: u64 = SECOND;

/// Names of what the kernel programs have aggregated, and what is told of it.
pub(super) struct Aggregator {
    pub(super) reporter: Reporter,
    pub(super) names: Names,
    /// Turns without traffic after which a group is forgotten.
    idle_turns: u32,
    /// Flow directions that were refused a group, when room was last made.
    refused: u64,
    resolved: Instant,
    /// When the last turn was, by the wall clock.
    turned: u64,
}

impl Aggregator {
    pub(super) fn new(reporter: Reporter, aggregation: &Aggregation) -> Self {
        let mut aggregator = Self {
            reporter,
            names: Names::default(),
            idle_turns: 0,
            refused: 0,
            resolved: Instant::now(),
            turned: 0,
        };
        aggregator.set_group_timeout(aggregation);
        aggregator
    }

    /// Forgets groups after another time without traffic from now on.
    pub(super) fn set_group_timeout(&mut self, aggregation: &Aggregation) {
        let turn = aggregation.interval.unwrap_or(Duration::MAX).min(Duration::from_secs(1));
        let turns = aggregation.group_timeout.as_nanos() / turn.as_nanos().max(1);
        self.idle_turns = u32::try_from(turns).unwrap_or(u32::MAX).max(1);
    }

    /// The records of what is over at `now`. Should the wall clock have been set back, that ends an interval too.
    fn records(&mut self, now: u64) -> Result<Vec<Record>, Error> {
        let last = mem::replace(&mut self.turned, now);
        if now >= last.saturating_sub(SETBACK) {
            return Ok(self.reporter.tick(now)?);
        }
        let records = self.reporter.finish(last)?;
        self.reporter.restart(now);
        Ok(records)
    }

    /// How long it is until the next turn: at the next second of the wall clock, or the end of the interval.
    pub(super) fn until_next(&self) -> Result<Duration, Error> {
        let now = clock::wall()?;
        let second = now - now % SECOND + SECOND;
        let next = self.reporter.next().map_or(second, |interval| interval.min(second));
        Ok(Duration::from_nanos(next.saturating_sub(now)))
    }
}

impl Agent {
    /// Takes what was aggregated since the last turn, and writes what is due.
    pub(super) fn turn(&mut self) -> Result<(), Error> {
        // Events name places of series, which are given away below.
        self.drain()?;
        let now = clock::wall()?;
        if now / SECOND != self.swept {
            self.swept = now / SECOND;
            sweep(&mut self.kernel)?;
        }
        self.take_series()?;
        let records = self.aggregator.records(now)?;
        self.write(&records);
        self.count()?;
        self.notify.alive();
        Ok(())
    }

    /// Takes what series got.
    pub(super) fn take_series(&mut self) -> Result<(), Error> {
        self.take_turn(false)
    }

    /// Goes on from where a run before this one stopped, whichever way it did: what it told is told again, and what it did
    /// not come to book is booked.
    pub(super) fn adopt(&mut self) -> Result<(), Error> {
        let Self { kernel, aggregator: Aggregator { names, .. }, metrics, .. } = self;
        if self.pins.is_none() {
            return Ok(());
        }
        let name = |key| names.series(key, kernel.interface_ids.name(key.interface).cloned());
        let series: Vec<SeriesName> = kernel.series.keys().filter_map(name).collect();
        metrics.resume(&series, kernel.series.booked(), Instant::now());
        if kernel.series.booked() == kernel.series.turns() {
            kernel.series.skip_turn();
            kernel.series.clear()?;
        } else {
            self.take_turn(true)?;
        }
        // Flows remember where their series are by settings that may have been others.
        self.kernel.series.resolve_again();
        Ok(())
    }

    /// Ends the interval and takes what it had, or what the one that ended last had.
    fn take_turn(&mut self, is_again: bool) -> Result<(), Error> {
        let Self { kernel, aggregator: Aggregator { reporter, names, idle_turns, .. }, metrics, .. } = self;
        let Kernel { series, interface_ids, .. } = kernel;
        let mut slices: Vec<(SeriesName, Tally)> = Vec::new();
        let mut take = |key: &SeriesKey, tally: &Tally| {
            if let Some(name) = names.series(key, interface_ids.name(key.interface).cloned()) {
                reporter.take(&name, tally);
                slices.push((name, *tally));
            }
        };
        if is_again {
            series.turn_again(&mut take)?;
        } else {
            series.turn(&mut take)?;
        }
        metrics.add(&slices, Instant::now());
        metrics.commit(series.turns());
        for key in series.clear()? {
            if let Some(name) = names.series(&key, interface_ids.name(key.interface).cloned()) {
                metrics.forget(&name);
            }
            names.forget(&key.group);
        }
        Ok(series.expire(*idle_turns)?)
    }

    /// Makes room for groups that were refused, where others have left some.
    pub(super) fn make_room(&mut self, refused: u64) -> Result<(), Error> {
        let Self { kernel, aggregator, .. } = self;
        if refused > aggregator.refused && aggregator.resolved.elapsed() >= RESOLVE_INTERVAL {
            kernel.series.forget_empty_groups()?;
            kernel.series.resolve_again();
            aggregator.refused = refused;
            aggregator.resolved = Instant::now();
        }
        Ok(())
    }

    pub(super) fn write(&mut self, records: &[Record]) {
        let mut batch = Batch::default();
        for record in records {
            self.encoder.append(record, &mut batch);
        }
        self.output.write(batch);
    }
}
