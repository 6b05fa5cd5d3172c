//! Measuring what is in a capture, without a kernel.

mod clock;
mod engine;
mod input;
mod progress;
mod report;
mod table;
mod tracker;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub use engine::Engine;
use pping_common::parse::Untracked;
pub use report::Report;
use tokio::signal::unix::{SignalKind, signal};
pub use tracker::{Settings, Tracker};

use self::{input::Input, progress::Progress};
use crate::{
    Error, Summary,
    aggregate::Totals,
    capture::{self, Capture, Fault, Skipped},
    config::Config,
    output::{Batch, Output},
    record::Record,
    sinks::{self, Sink},
    summary::Replayed,
};

/// Octets of records that are handed over at a time.
const BATCH: usize = 64 << 10;

/// Reads a capture to its end, or until `shutdown` resolves or the reader of the output is gone.
///
/// # Errors
/// What kept it from starting, or ended writing before its time. What is wrong with the capture itself is in the
/// summary, once there was anything to read.
pub(crate) async fn run(
    config: Config,
    path: PathBuf,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let input = Input::open(&path, Arc::clone(&stop))?;
    let sink = sinks::sink(config.format);
    let (output, mut ended) = Output::open(config.output.as_deref(), sink.framing())?;
    let reopener = output.reopener();
    let mut hangup = signal(SignalKind::hangup())?;
    let settings = Settings { rules: config.rules, max_flows: config.max_flows, decap: config.decap };
    let replay = Replay {
        engine: Engine::new(settings),
        totals: Totals::default(),
        sink,
        batch: Batch::default(),
        output,
        progress: Progress::new(&config, &input),
        stop: Arc::clone(&stop),
        started: Instant::now(),
    };
    let mut reading = tokio::task::spawn_blocking(move || replay.run(input, path));

    tokio::pin!(shutdown);
    let (mut is_stopping, mut has_ended, mut failure) = (false, false, None);
    let done = loop {
        tokio::select! {
            done = &mut reading => break done,
            () = &mut shutdown, if !is_stopping => is_stopping = true,
            // The writer ended: by an error, or since nobody reads any more.
            reason = &mut ended, if !has_ended => {
                has_ended = true;
                if let Ok(reason) = reason {
                    (is_stopping, failure) = (true, reason);
                }
            }
            _ = hangup.recv() => reopener.reopen(),
        }
        stop.store(is_stopping, Ordering::Relaxed);
    };
    let summary = done.map_err(|error| Error::Io(error.into()))?;
    failure.map_or(summary, Err)
}

/// A capture on its way to the output.
struct Replay {
    engine: Engine,
    totals: Totals,
    sink: Box<dyn Sink>,
    batch: Batch,
    output: Output,
    progress: Progress,
    stop: Arc<AtomicBool>,
    started: Instant,
}

impl Replay {
    /// Reads it all, waits until all is written, and sums up.
    fn run(mut self, input: Input, path: PathBuf) -> Result<Summary, Error> {
        let (mut packets, mut skipped) = (0, Skipped::default());
        let read = capture::undone(input).and_then(|source| {
            let mut capture = Capture::new(source);
            let read = self.read(&mut capture);
            (packets, skipped) = (capture.packets(), capture.skipped());
            read
        });
        let fault = match read {
            // Breaking off reads as a failure to read.
            Err(fault) if !self.stop.load(Ordering::Relaxed) => Some(Error::Capture { path, fault, packets }),
            _ => None,
        };
        self.output.write_all(self.batch.take(), &self.stop);
        self.progress.clear();
        let refused = self.engine.tracker.report.counters.untracked[Untracked::MapFull as usize];
        if refused > 0 {
            tracing::warn!(
                "a flow table was full: {refused} packets of new flows were not measured; raise --max-flows"
            );
        }
        let duration = self.started.elapsed();
        let lines_lost = self.output.finish_all(&self.stop);
        match fault {
            Some(fault) if packets == 0 => Err(fault),
            fault => Ok(Summary {
                duration,
                counters: self.engine.tracker.report.counters,
                totals: self.totals,
                lines_lost,
                capture: Some(Replayed { span: Duration::from_nanos(self.engine.span()), skipped, fault }),
            }),
        }
    }

    fn read(&mut self, capture: &mut Capture<impl io::Read>) -> Result<(), Fault> {
        loop {
            while let Some(packet) = capture.next_packet()? {
                self.engine.packet(&packet);
                if !self.engine.tracker.report.events.is_empty() {
                    self.record(capture);
                }
            }
            // The next packets may be a long time in coming.
            self.output.write_all(self.batch.take(), &self.stop);
            self.progress.show(capture.packets());
            if !capture.fill()? {
                return Ok(());
            }
        }
    }

    /// Writes down what the engine reports.
    fn record(&mut self, capture: &Capture<impl io::Read>) {
        for event in self.engine.tracker.report.events.drain(..) {
            let name = capture.interface_name(event.endpoints().interface);
            let Some(record) = Record::new(&event, name, |time| time) else { continue };
            if let Record::Rtt(sample) = &record {
                self.totals.take(sample.method, sample.matched, sample.rtt);
            }
            self.batch.push(self.sink.as_mut(), &record);
        }
        if self.batch.len() >= BATCH {
            self.output.write_all(self.batch.take(), &self.stop);
        }
    }
}
