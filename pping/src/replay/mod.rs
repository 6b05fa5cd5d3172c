//! Replay: measures the packets of a capture, without the kernel programs.

mod engine;
mod input;
mod intervals;
#[cfg(feature = "top")]
mod player;
mod progress;
mod replayed;
mod report;
mod series;
mod settings;
mod survey;
mod tracker;

use std::{
    io, mem,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub use engine::Engine;
use ipnet::IpNet;
#[cfg(feature = "top")]
pub(crate) use player::{Command, Player, Position};
use pping_common::{
    limits::{MAX_QUERIES, max_unproved},
    parse::Untracked,
};
pub use replayed::Replayed;
pub use report::{Echoes, QueriesLeft, Report, TcpFlows, UnopenedTunnels};
pub use settings::Settings;
pub use survey::{Survey, Surveyed};
use tokio::signal::unix::{SignalKind, signal};
pub use tracker::Tracker;

use self::{
    input::Input,
    intervals::{FinishedInterval, Intervals},
    progress::Progress,
};
use crate::{
    Error, Summary,
    capture::{self, Capture, FileError, Skipped},
    config::{Arms, Config},
    event::Event,
    groups::{self, Groups, Labels, Levels, Lookup, Names, Networks},
    output::{Batch, OnFailure, Output, Role},
    quality,
    records::{
        Record, Reporter,
        format::{self, Encoder},
    },
};

/// Bytes of records that are handed over at a time.
const BATCH: usize = 64 << 10;

/// The number of packets after which counts are taken even if no interval is over: fewer than a bin can count.
const PACKETS_TAKEN: u64 = 1 << 30;

/// Reads a capture to its end, or until `shutdown` resolves or the reader of the output is gone.
///
/// # Errors
/// If the replay cannot start, or writing fails. An error of the capture itself is in the summary, once a packet was read.
pub(crate) async fn run(
    config: Config,
    path: PathBuf,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let input = Input::open(&path, Arc::clone(&stop))?;
    let (settings, names, _) = settings(&config)?;
    let mut reporter = Reporter::replay(&config.aggregation, config.max_flows, Arc::clone(&stop))?;
    reporter.name_networks(names.networks().clone());
    reporter.score_by(quality::load(config.quality.as_deref()).map_err(Error::Quality)?);
    let hung_up = Arc::new(AtomicBool::new(false));
    let encoder = format::encoder(config.format);
    let (output, mut ended) =
        Output::open(Role::Records, config.output.as_deref(), encoder.framing(), OnFailure::End)?;
    let reopener = output.reopener();
    let mut hangup = signal(SignalKind::hangup())?;
    let replay = Replay {
        engine: Engine::new(settings),
        is_joined: config.join,
        intervals: Intervals::new(reporter, names, &config.aggregation),
        encoder,
        batch: Batch::default(),
        output,
        progress: Progress::new(&config, &input),
        stop: Arc::clone(&stop),
        hangup: Arc::clone(&hung_up),
        started: Instant::now(),
    };
    let mut reading = tokio::task::spawn_blocking(move || replay.run(input, path));

    tokio::pin!(shutdown);
    let (mut is_stopping, mut has_ended, mut failure) = (false, false, None);
    let done = loop {
        tokio::select! {
            done = &mut reading => break done,
            () = &mut shutdown, if !is_stopping => is_stopping = true,
            // The writer ended, because of an error or because its reader is gone.
            reason = &mut ended, if !has_ended => {
                has_ended = true;
                if let Ok(reason) = reason {
                    (is_stopping, failure) = (true, reason);
                }
            }
            _ = hangup.recv() => {
                reopener.reopen();
                hung_up.store(true, Ordering::Relaxed);
            }
        }
        stop.store(is_stopping, Ordering::Relaxed);
    };
    let summary = done.map_err(|error| Error::Io(error.into()))?;
    failure.map_or(summary, |error| Err(error.into()))
}

/// A capture on its way to the output.
struct Replay {
    engine: Engine,
    /// Whether all interfaces of the capture count as one.
    is_joined: bool,
    intervals: Intervals,
    encoder: Box<dyn Encoder>,
    batch: Batch,
    output: Output,
    progress: Progress,
    stop: Arc<AtomicBool>,
    hangup: Arc<AtomicBool>,
    started: Instant,
}

impl Replay {
    /// Reads the capture, waits until all records are written, and makes the summary.
    fn run(mut self, input: Input, path: PathBuf) -> Result<Summary, Error> {
        let (mut packets, mut skipped, mut split) = (0, Skipped::default(), None);
        let read = capture::decompress(input).map_err(Ending::Capture).and_then(|source| {
            let mut capture = Capture::new(source).with_interfaces_joined(self.is_joined);
            let read = self.read(&mut capture);
            (packets, skipped) = (capture.packets(), capture.skipped());
            let finished = self.finish(&capture).map_err(Ending::Failure);
            split = self.engine.tracker.survey.outcome().split_names(&capture);
            read.and(finished)
        });
        let closed = self.intervals.close_log().map_err(|error| Ending::Failure(error.into()));
        let log_lines_lost = *closed.as_ref().unwrap_or(&0);
        let fault = match read.and(closed.map(drop)) {
            // After `stop`, the input fails as if it could not be read.
            Err(Ending::Capture(error)) if !self.stop.load(Ordering::Relaxed) => {
                Some(FileError::Read { path, error, packets }.into())
            }
            Err(Ending::Failure(failure)) => Some(failure),
            _ => None,
        };
        self.output.write_all(self.batch.take(), &self.stop);
        self.progress.clear();
        self.warn();
        let duration = self.started.elapsed();
        let lines_lost = log_lines_lost + self.output.finish_all(&self.stop);
        match fault {
            Some(fault) if packets == 0 => Err(fault),
            fault => Ok(Summary {
                duration,
                counters: self.engine.tracker.report.counters,
                totals: self.intervals.into_totals(),
                lines_lost,
                capture: Some(Replayed {
                    span: Duration::from_nanos(self.engine.span()),
                    skipped,
                    tcp_flows: self.engine.tracker.report.tcp_flows,
                    echoes: self.engine.tracker.report.echoes,
                    queries_left: self.engine.tracker.report.queries_left,
                    surveyed: self.engine.tracker.survey.outcome(),
                    has_two_arms: self.engine.tracker.has_two_arms(),
                    split,
                    unopened_tunnels: self.engine.tracker.unopened_tunnels,
                    fault,
                }),
            }),
        }
    }

    fn warn(&self) {
        let counters = &self.engine.tracker.report.counters;
        let refused = counters.untracked[Untracked::MapFull as usize];
        if refused > 0 {
            tracing::warn!(
                "a flow table was full: {refused} packets of new flows were not measured; raise --max-flows"
            );
        }
        if counters.groups_refused > 0 {
            let flows = counters.groups_refused;
            tracing::warn!(
                "there are too many groups: {flows} flow directions are in `other`; raise --max-groups"
            );
        }
    }

    fn read(&mut self, capture: &mut Capture<impl io::Read>) -> Result<(), Ending> {
        let mut taken = 0;
        loop {
            while let Some(packet) = capture.next_packet().map_err(Ending::Capture)? {
                let finished = self.intervals.end_before_packet(packet.time, &mut self.engine);
                self.engine.packet(&packet);
                if let Some(finished) = finished {
                    self.aggregate(finished, capture).map_err(Ending::Failure)?;
                }
                if !self.engine.tracker.report.events.is_empty() {
                    self.record(capture);
                }
            }
            // The next packets may be a long time in coming.
            self.output.write_all(self.batch.take(), &self.stop);
            self.progress.show(capture.packets());
            if self.hangup.swap(false, Ordering::Relaxed) {
                self.intervals.reopen();
            }
            if capture.packets() - taken > PACKETS_TAKEN {
                taken = capture.packets();
                let finished = Intervals::take_counts(&mut self.engine);
                self.aggregate(finished, capture).map_err(Ending::Failure)?;
            }
            if !capture.fill().map_err(Ending::Capture)? {
                return Ok(());
            }
        }
    }

    /// Writes the records of an interval that is over.
    fn aggregate(
        &mut self,
        finished: FinishedInterval,
        capture: &Capture<impl io::Read>,
    ) -> Result<(), Error> {
        let records = self.intervals.records(finished, |id| capture.interface_name(id))?;
        self.push(records);
        Ok(())
    }

    /// Ends all flows, and writes the last records.
    fn finish(&mut self, capture: &Capture<impl io::Read>) -> Result<(), Error> {
        let records = self.intervals.finish(&mut self.engine, |id| capture.interface_name(id));
        self.record(capture);
        self.push(records?);
        Ok(())
    }

    /// Writes the records of the engine's events.
    fn record(&mut self, capture: &Capture<impl io::Read>) {
        let mut events = mem::take(&mut self.engine.tracker.report.events);
        for event in events.drain(..) {
            let interface = capture.interface_name(event.endpoints().interface);
            let series = match &event {
                Event::Rtt(sample) => self.engine.tracker.series_at(sample.series),
                _ => None,
            };
            if let Some(record) = self.intervals.event(&event, series, interface) {
                self.encoder.append(&record, &mut self.batch);
                self.write_enough();
            }
        }
        self.engine.tracker.report.events = events;
    }

    fn push(&mut self, records: Vec<Record>) {
        for record in records {
            self.encoder.append(&record, &mut self.batch);
            self.write_enough();
        }
    }

    fn write_enough(&mut self) {
        if self.batch.len() >= BATCH {
            self.output.write_all(self.batch.take(), &self.stop);
        }
    }
}

/// The reason why reading ended before the capture did.
enum Ending {
    /// Something is wrong with the capture.
    Capture(capture::Error),
    /// Something else failed.
    Failure(Error),
}

/// Prefixes of a groups file, each with the number of its label.
type Listed = Vec<(IpNet, u32)>;

/// The settings of the tracker, the names of groups, and the prefixes of the groups file.
fn settings(config: &Config) -> Result<(Settings, Names, Listed), Error> {
    let aggregation = &config.aggregation;
    let (mut names, mut labels) = (Names::default(), Labels::default());
    let levels = Levels::new(&aggregation.roll_up);
    let listed = match &aggregation.groups {
        Some(file) => {
            let Groups { prefixes, column_names, .. } =
                groups::load(file, groups::PrefixRule::AtLeastOne, &mut labels).map_err(Error::Groups)?;
            levels.missing_in(&column_names).map_or(Ok(()), |reason| Err(Error::RollUp(reason)))?;
            prefixes
        }
        None => Vec::new(),
    };
    names.relabel(labels, levels);
    let networks = Networks::default();
    if let Some(file) = &aggregation.remote_groups {
        networks.load(file, aggregation.remote_by)?;
    }
    names.follow_networks(networks.clone());
    let settings = Settings {
        grouping: aggregation.grouping(),
        labels: Arc::new(Lookup::new(listed.iter().copied())),
        max_groups: aggregation.max_groups,
        networks,
        max_networks: aggregation.max_networks,
        exclude: aggregation.exclude.clone(),
        inside: aggregation.inside.prefixes.clone(),
        max_unproved: max_unproved(config.max_flows, config.live.max_pending),
        max_queries: MAX_QUERIES.min(config.max_flows),
        emit: config.emit(),
        dns_ports: config.dns_ports,
        has_two_arms: config.arms == Arms::Two,
        copies_within: config.copies_within,
        worst: aggregation.worst.map(|limit| (limit, aggregation.worst_min_samples)),
        ..Settings::new(config.rules, config.max_flows, config.decap)
    };
    Ok((settings, names, listed))
}
