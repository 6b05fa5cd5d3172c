//! The thread that writes the history.
//!
//! The agent adds up each minute, and hands it over when it is over. The thread has no capabilities, and nothing waits for
//! it: if the disk is so slow that minutes pile up, they are lost and counted.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use pping_common::{limits::SECOND, series::SeriesCounts};

use super::{
    counts::{Counts, HourlyCounts},
    error::Error,
    piece::{Piece, Span},
    row::compare,
    store::Store,
    tier::Tier,
    time::HOUR,
    upkeep::{facts, keep_up},
};
use crate::{
    aggregate::Measurements, capabilities, config::HistoryLimits, groups::SeriesName, memory,
    metrics::HistoryCounts, quality::Profiles,
};

/// Minutes that may wait for the thread.
const QUEUE: usize = 4;

/// For how long the end of a run waits for the last minute.
const PATIENCE: Duration = Duration::from_secs(3);

/// Nanoseconds in a minute.
const MINUTE: u64 = 60 * SECOND;

/// Where a history is, and what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The directory.
    pub directory: PathBuf,
    /// What is kept.
    pub limits: HistoryLimits,
}

/// What happened so far.
#[derive(Debug, Default)]
pub struct State {
    /// Rows that were written.
    pub rows: AtomicU64,
    /// Rows that could not be written.
    pub lost_rows: AtomicU64,
    /// Files that were found damaged.
    pub damaged_files: AtomicU64,
    /// The bytes that all files take.
    pub disk: AtomicU64,
}

/// A message to the thread.
enum Message {
    Minute(Minute),
    Limits(HistoryLimits),
    Profiles(Profiles),
}

/// What was measured in a minute.
pub(super) struct Minute {
    /// Its start, seconds since the Unix epoch.
    pub(super) start: u64,
    /// What was counted besides series.
    pub(super) counts: Counts,
    pub(super) series: HashMap<SeriesName, Measurements, RandomState>,
}

/// The writer of a history.
pub struct HistoryWriter {
    /// None once the run ends.
    messages: Option<SyncSender<Message>>,
    thread: JoinHandle<()>,
    state: Arc<State>,
    /// The number of the present minute since the epoch.
    number: u64,
    /// For how many seconds it was measured.
    seconds: u64,
    /// What was counted until the minute before, and until now; none before the first count.
    counted: Option<[Counts; 2]>,
    series: HashMap<SeriesName, Measurements, RandomState>,
}

impl HistoryWriter {
    /// Starts the thread, in the minute of `now`, ns since the epoch.
    ///
    /// # Errors
    /// If no thread can be started. A directory that cannot be used is logged, and tried again each minute.
    pub fn start(settings: Settings, profiles: Profiles, now: u64) -> io::Result<Self> {
        let (messages, received) = sync_channel(QUEUE);
        let state = Arc::<State>::default();
        let writer = WriterThread::new(settings, profiles, Arc::clone(&state));
        let thread = std::thread::Builder::new()
            .name("pping-history".to_owned())
            .spawn(move || writer.run(&received))?;
        let (number, series) = (now / MINUTE, HashMap::default());
        Ok(Self { messages: Some(messages), thread, state, number, seconds: 0, counted: None, series })
    }

    /// What happened so far.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What happened so far, for metrics.
    pub(crate) fn counts(&self) -> HistoryCounts {
        let State { rows, lost_rows, damaged_files, disk } = &*self.state;
        let [rows, lost_rows, damaged_files, disk] =
            [rows, lost_rows, damaged_files, disk].map(|it| it.load(Ordering::Relaxed));
        HistoryCounts { rows, lost_rows, damaged_files, disk }
    }

    /// Adds the counts of series since the last call.
    pub fn add(&mut self, slices: &[(SeriesName, SeriesCounts)]) {
        for (name, counts) in slices.iter().filter(|(_, counts)| !counts.is_empty()) {
            match self.series.get_mut(name) {
                Some(known) => known.add(counts),
                None => self.series.entry(name.clone()).or_default().add(counts),
            }
        }
    }

    /// Takes what was counted since the start of the counters. What the first call has was counted before.
    pub fn count(&mut self, counts: Counts) {
        match &mut self.counted {
            Some([_, latest]) => *latest = counts,
            None => self.counted = Some([counts.clone(), counts]),
        }
    }

    /// Ends a second at `now`, ns since the epoch, and the minute if that is over.
    pub fn tick(&mut self, now: u64) {
        self.seconds += 1;
        if now / MINUTE != self.number {
            self.end_minute();
            self.number = now / MINUTE;
        }
    }

    /// Keeps as much as these limits say from now on.
    pub fn limit(&self, limits: HistoryLimits) {
        self.send(Message::Limits(limits));
    }

    /// Scores by these profiles from now on.
    pub fn score_by(&self, profiles: Profiles) {
        self.send(Message::Profiles(profiles));
    }

    fn end_minute(&mut self) {
        let mut counts = Counts::seconds(std::mem::take(&mut self.seconds));
        if let Some([before, latest]) = &mut self.counted {
            counts.add(&latest.since(before));
            before.clone_from(latest);
        }
        let minute =
            Minute { start: self.number * MINUTE / SECOND, counts, series: std::mem::take(&mut self.series) };
        let rows = minute.series.len() as u64;
        if !self.send(Message::Minute(minute)) {
            self.state.lost_rows.fetch_add(rows, Ordering::Relaxed);
            tracing::warn!("--history: the disk is too slow, so a minute of {rows} rows is lost");
        }
    }

    /// Whether a message reached the thread, or will.
    fn send(&self, message: Message) -> bool {
        self.messages.as_ref().is_some_and(|messages| messages.try_send(message).is_ok())
    }

    /// Writes the last minute. Gives up after some seconds. Returns the number of rows lost in all.
    pub fn stop(mut self) -> u64 {
        self.end_minute();
        self.messages = None;
        let began = Instant::now();
        while !self.thread.is_finished() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.state.lost_rows.load(Ordering::Relaxed)
    }
}

/// The state of the thread.
pub(super) struct WriterThread {
    settings: Settings,
    profiles: Profiles,
    state: Arc<State>,
    /// None until the directory can be used.
    store: Option<Store>,
    /// Whether the last minute could not be written.
    is_lossy: bool,
    /// Whether the last upkeep failed.
    is_behind: bool,
    /// The hour of the last upkeep, since the epoch.
    hour: Option<u64>,
    /// The hour in which room was last made, since the epoch.
    limited: Option<u64>,
}

impl WriterThread {
    pub(super) fn new(settings: Settings, profiles: Profiles, state: Arc<State>) -> Self {
        Self {
            settings,
            profiles,
            state,
            store: None,
            is_lossy: false,
            is_behind: false,
            hour: None,
            limited: None,
        }
    }

    fn run(mut self, messages: &Receiver<Message>) {
        if let Err(error) = capabilities::drop_all() {
            tracing::warn!("--history: cannot give up capabilities: {error}");
        }
        // A directory that cannot be used is named at once, and not after a minute.
        let opened = self.open();
        self.note_write(&opened);
        if opened.is_ok() {
            tracing::info!("--history: each minute is written to {}", self.settings.directory.display());
        }
        for message in messages {
            match message {
                Message::Minute(minute) => self.take(&minute),
                Message::Limits(limits) => {
                    self.settings.limits = limits;
                    self.hour = None;
                }
                Message::Profiles(profiles) => self.profiles = profiles,
            }
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        if self.store.is_none() {
            self.store = Some(Store::create(&self.settings.directory)?);
        }
        Ok(())
    }

    /// Writes a minute, and does the upkeep at the first minute of each hour, and again as long as it fails.
    pub(super) fn take(&mut self, minute: &Minute) {
        let rows = minute.series.len() as u64;
        let written = self.write(minute);
        self.note_write(&written);
        let counter = if written.is_ok() { &self.state.rows } else { &self.state.lost_rows };
        counter.fetch_add(rows, Ordering::Relaxed);
        // The minute is over, so the present one is the next.
        let now = minute.start + Tier::Minute.step();
        // If the disk is full, what exceeds the limits makes room.
        if self.hour != Some(now / HOUR) {
            let kept_up = self.keep_up(now);
            self.hour = kept_up.is_ok().then_some(now / HOUR);
            self.note_upkeep(&kept_up);
            // Merging takes several times as much as all else.
            memory::give_back();
        }
    }

    fn note_write(&mut self, result: &Result<(), Error>) {
        let consequence = "measuring goes on, and each minute is lost until that is mended";
        log_change(&mut self.is_lossy, result, consequence, "minutes are written again");
    }

    fn note_upkeep(&mut self, result: &Result<(), Error>) {
        let consequence = "nothing is lost, and minutes are merged once that is mended";
        log_change(&mut self.is_behind, result, consequence, "minutes are merged again");
    }

    fn write(&mut self, minute: &Minute) -> Result<(), Error> {
        self.open()?;
        let Some(store) = &self.store else { return Ok(()) };
        let mut rows: Vec<(&SeriesName, &Measurements)> = minute.series.iter().collect();
        rows.sort_unstable_by(|(one, _), (other, _)| compare(one, other));
        let labels =
            rows.iter().flat_map(|(name, _)| &name.group.columns).map(|(label, _)| Arc::clone(label));
        let labels: BTreeSet<Arc<str>> = labels.collect();
        let piece = Piece::first(Tier::Minute, Span::Minute, minute.start);
        let mut file = store.begin(piece, &labels, &self.profiles)?;
        for (series, measured) in rows {
            file.push(series, minute.start, measured)?;
        }
        let counts = HourlyCounts::at(minute.start, minute.counts.clone());
        file.complete(facts(Tier::Minute, &[], &counts))?;
        file.publish()
    }

    fn keep_up(&mut self, now: u64) -> Result<(), Error> {
        let Some(store) = &self.store else { return Ok(()) };
        // Once an hour at most: otherwise who fills the disk would soon have the room of the whole history.
        let is_first = self.limited.replace(now / HOUR) != Some(now / HOUR);
        let free = is_first.then(|| store.free_room()).flatten();
        let upkeep = keep_up(store, now, &self.settings.limits, free, &self.profiles)?;
        self.state.damaged_files.fetch_add(upkeep.damaged, Ordering::Relaxed);
        self.state.disk.store(upkeep.disk, Ordering::Relaxed);
        upkeep.merged
    }
}

/// Logs when something begins to fail, with what follows from that, and when it succeeds again.
fn log_change(was_failing: &mut bool, result: &Result<(), Error>, consequence: &str, recovery: &str) {
    match result {
        Err(error) if !*was_failing => tracing::error!("--history: {error}; {consequence}"),
        Ok(()) if *was_failing => tracing::info!("--history: {recovery}"),
        _ => {}
    }
    *was_failing = result.is_err();
}
