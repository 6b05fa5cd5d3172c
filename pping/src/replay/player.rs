//! Plays a capture into a recent history, at the speed of its packets or another: `pping top -r`.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use pping_common::limits::SECOND;
use tokio::sync::watch;

use super::{engine::Engine, input::Input, settings};
use crate::{
    Error,
    capture::{self, Capture, FileError},
    config::Config,
    groups::{Directory, Names, roll_up},
    placement::EndedFlows,
    quality,
    recent::{Reading, RecentHistory},
    snapshot::{InterfaceCounters, Place, Snapshot, Usage},
};

/// The longest time between two reports of the position while the player waits.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The slowest and the fastest speed, in multiples of that of the packets.
const SPEEDS: [f64; 2] = [1.0 / 16.0, 1024.0];

/// A thread that plays a capture. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Player {
    commands: Sender<Command>,
    position: watch::Receiver<Position>,
    stop: Arc<AtomicBool>,
}

/// A command to the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Pause, or go on.
    Pause,
    /// Play twice as fast, if that is not too fast.
    Faster,
    /// Play half as fast, if that is not too slow.
    Slower,
    /// Move by this many seconds; negative is back.
    Seek(i64),
}

/// Where the player is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    /// The time since the first packet.
    pub(crate) time: Duration,
    /// The share of the file that was read, if it has a length.
    pub(crate) share: Option<f64>,
    pub(crate) speed: f64,
    pub(crate) is_paused: bool,
    /// Whether playing has come to its end.
    pub(crate) is_over: bool,
    /// The error that ended playing, if one did.
    pub(crate) fault: Option<String>,
}

impl Player {
    /// Opens a capture and begins to play it into `recent`; all of it at once if `is_at_once`.
    ///
    /// # Errors
    /// If the file cannot be opened or cannot be a capture, or the groups file or the file of profiles has an error.
    pub(crate) fn start(
        config: Config,
        path: PathBuf,
        recent: RecentHistory,
        is_at_once: bool,
    ) -> Result<Self, Error> {
        let (commands, inbox) = channel();
        let (reports, position) = watch::channel(Position { speed: 1.0, ..Position::default() });
        let stop = Arc::new(AtomicBool::new(false));
        let input = Input::open(&path, Arc::clone(&stop))?;
        let pace = Pace { at: 0, since: Instant::now(), speed: 1.0, is_paused: false };
        let target = is_at_once.then_some(u64::MAX);
        // The groups file is read here, so that an error in it is known at once.
        settings(&config)?;
        recent.score_by(quality::load(config.quality.as_deref()).map_err(Error::Quality)?);
        recent.set_min_samples(config.aggregation.worst_min_samples);
        recent.tell_sides_apart(config.aggregation.grouping().inside != 0);
        let mut player = PlayerThread {
            config,
            path,
            recent,
            inbox,
            reports,
            stop: Arc::clone(&stop),
            pace,
            target,
            first: None,
            newest: 0,
            is_over: false,
            has_warned: false,
            len: None,
            read: Arc::default(),
        };
        thread::Builder::new().name("pping-play".into()).spawn(move || player.run(input))?;
        Ok(Self { commands, position, stop })
    }

    /// Sends a command to the player.
    pub(crate) fn command(&self, command: Command) {
        // This fails only if the player has ended.
        self.commands.send(command).ok();
    }

    /// The present position.
    pub(crate) fn position(&self) -> Position {
        self.position.borrow().clone()
    }

    /// Waits until the position is reported again.
    pub(crate) async fn moved(&mut self) {
        self.position.changed().await.ok();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The clock of playing, in the time of the packets.
#[derive(Debug)]
struct Pace {
    /// The time of the packets at `since`, ns.
    at: u64,
    since: Instant,
    speed: f64,
    is_paused: bool,
}

impl Pace {
    /// The time of the packets now.
    fn now(&self) -> u64 {
        let passed = if self.is_paused { 0.0 } else { self.since.elapsed().as_secs_f64() };
        self.at.saturating_add((passed * self.speed * SECOND as f64) as u64)
    }

    /// Sets the time of the packets, ns.
    fn set(&mut self, at: u64) {
        (self.at, self.since) = (at, Instant::now());
    }

    /// Changes the speed by a factor, within [`SPEEDS`]. The time of the packets is `now`, ns.
    fn change_speed(&mut self, now: u64, factor: f64) {
        self.set(now);
        self.speed = (self.speed * factor).clamp(SPEEDS[0], SPEEDS[1]);
    }

    /// How long it takes until this time of the packets, ns.
    fn until(&self, time: u64) -> Duration {
        if self.is_paused {
            return Duration::MAX;
        }
        let ns = time.saturating_sub(self.now()) as f64 / self.speed;
        Duration::try_from_secs_f64(ns / SECOND as f64).unwrap_or(Duration::MAX)
    }
}

/// The state of the player's thread.
struct PlayerThread {
    config: Config,
    path: PathBuf,
    recent: RecentHistory,
    inbox: Receiver<Command>,
    reports: watch::Sender<Position>,
    stop: Arc<AtomicBool>,
    pace: Pace,
    /// The time of the packets up to which playing does not wait, ns.
    target: Option<u64>,
    /// The time of the first packet, ns.
    first: Option<u64>,
    /// The time of the newest packet so far, ns.
    newest: u64,
    is_over: bool,
    /// Whether an error of the capture was named, if it has one.
    has_warned: bool,
    len: Option<u64>,
    read: Arc<AtomicU64>,
}

/// Why playing stops.
enum Ending {
    /// The player was dropped.
    Stopped,
    /// The capture is to be played again from its beginning.
    Restart,
    /// Something is wrong with the capture.
    Fault(Error),
}

impl PlayerThread {
    fn run(&mut self, input: Input) {
        let mut input = Some(input);
        loop {
            let opened = match input.take() {
                Some(input) => Ok(input),
                None => Input::open(&self.path, Arc::clone(&self.stop)).map_err(Error::from),
            };
            let played = opened.map_err(Ending::Fault).and_then(|input| self.play(input));
            let fault = match played {
                Ok(()) => None,
                Err(Ending::Stopped) => return,
                Err(Ending::Restart) => continue,
                Err(Ending::Fault(error)) => Some(error.to_string()),
            };
            self.is_over = true;
            self.report(fault.as_deref());
            match self.rest(fault.as_deref()) {
                Ending::Restart => {}
                _ => return,
            }
        }
    }

    /// Plays the capture from its beginning to its end.
    fn play(&mut self, input: Input) -> Result<(), Ending> {
        (self.len, self.read, self.is_over) = (input.len, Arc::clone(&input.read), false);
        self.recent.clear();
        let (settings, names, listed) = settings(&self.config).map_err(Ending::Fault)?;
        self.recent.list_groups(Directory::new(listed, names.labels()));
        self.recent.list_levels(names.levels().clone());
        self.recent.name_networks(names.networks().clone());
        let timeout = self.config.aggregation.group_timeout.as_nanos() as u64;
        let mut playing =
            PlayedView { engine: Engine::new(settings), packets: 0, names, timeout, name: self.name() };
        let source = capture::decompress(input).map_err(|error| self.fault(error, 0))?;
        let mut capture = Capture::new(source).with_interfaces_joined(self.config.join);
        let mut due = 0;
        loop {
            while let Some(packet) =
                capture.next_packet().map_err(|error| self.fault(error, playing.packets))?
            {
                if packet.time >= due {
                    playing.show(due, &self.recent);
                    self.begin(packet.time);
                    due = packet.time - packet.time % SECOND + SECOND;
                    self.wait(packet.time)?;
                }
                self.newest = self.newest.max(packet.time);
                playing.engine.packet(&packet);
                playing.packets += 1;
            }
            if !capture.fill().map_err(|error| self.fault(error, capture.packets()))? {
                break;
            }
        }
        playing.engine.tracker.finish();
        playing.show(due, &self.recent);
        if !std::mem::replace(&mut self.has_warned, true)
            && let Some([one, other]) = playing.engine.tracker.survey.outcome().split_names(&capture)
        {
            tracing::warn!(
                "flows have one direction at {one} and the other at {other}, as from a TAP, and are not measured; --join takes \
                 both for one interface"
            );
        }
        Ok(())
    }

    fn fault(&self, error: capture::Error, packets: u64) -> Ending {
        Ending::Fault(FileError::Read { path: self.path.clone(), error, packets }.into())
    }

    /// The name that stands for the interface: captures need not name their interfaces.
    fn name(&self) -> Arc<str> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        if self.path == Path::new("-") { "standard input".into() } else { name.to_string_lossy().into() }
    }

    /// Takes the time of the first packet as the beginning.
    fn begin(&mut self, time: u64) {
        if self.first.is_none() {
            self.first = Some(time);
            self.pace.set(time);
        }
    }

    /// Waits until this time of the packets, ns, and obeys commands meanwhile.
    fn wait(&mut self, time: u64) -> Result<(), Ending> {
        loop {
            let left = match self.target {
                Some(target) if time < target => Duration::ZERO,
                Some(_) => {
                    self.target = None;
                    self.pace.set(time);
                    Duration::ZERO
                }
                None => self.pace.until(time),
            };
            self.report(None);
            if self.stop.load(Ordering::Relaxed) {
                return Err(Ending::Stopped);
            }
            match self.inbox.recv_timeout(left.min(REPORT_INTERVAL)) {
                Ok(command) => self.obey(command)?,
                Err(RecvTimeoutError::Disconnected) => return Err(Ending::Stopped),
                Err(RecvTimeoutError::Timeout) if left <= REPORT_INTERVAL => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits for commands after the end.
    fn rest(&mut self, fault: Option<&str>) -> Ending {
        loop {
            match self.inbox.recv() {
                Ok(Command::Seek(seconds)) if seconds > 0 => {}
                Ok(command) => {
                    if let Err(ending) = self.obey(command) {
                        return ending;
                    }
                    self.report(fault);
                }
                Err(_) => return Ending::Stopped,
            }
        }
    }

    /// The present time of the packets, ns; after the end, the time of the newest.
    fn now(&self) -> u64 {
        if self.is_over { self.newest } else { self.pace.now() }
    }

    fn obey(&mut self, command: Command) -> Result<(), Ending> {
        let now = self.now();
        match command {
            Command::Pause => {
                self.pace.set(now);
                self.pace.is_paused = !self.pace.is_paused;
            }
            Command::Faster => self.pace.change_speed(now, 2.0),
            Command::Slower => self.pace.change_speed(now, 0.5),
            Command::Seek(seconds) => {
                let first = self.first.unwrap_or(0);
                let target = now.saturating_add_signed(seconds.saturating_mul(SECOND as i64)).max(first);
                self.pace.set(target);
                if seconds >= 0 {
                    self.target = Some(target);
                } else if self.len.is_some() {
                    // What has been played cannot be undone, so the capture is played again up to there.
                    self.target = Some(target);
                    return Err(Ending::Restart);
                }
            }
        }
        Ok(())
    }

    fn report(&self, fault: Option<&str>) {
        let share = |len| self.read.load(Ordering::Relaxed) as f64 / len as f64;
        let position = Position {
            time: Duration::from_nanos(self.now().saturating_sub(self.first.unwrap_or(u64::MAX))),
            share: self.len.filter(|len| *len > 0).map(share),
            speed: self.pace.speed,
            is_paused: self.pace.is_paused,
            is_over: self.is_over,
            fault: fault.map(ToOwned::to_owned),
        };
        self.reports.send_replace(position);
    }
}

/// The engine that measures the capture, and the names to show its results.
struct PlayedView {
    engine: Engine,
    packets: u64,
    names: Names,
    timeout: u64,
    name: Arc<str>,
}

impl PlayedView {
    /// Shows the second that ends at `time`, ns. Does nothing if `time` is 0.
    fn show(&mut self, time: u64, recent: &RecentHistory) {
        if time == 0 {
            return;
        }
        self.engine.flush(time);
        let slices = self.engine.tracker.take_series(time, self.timeout);
        let name = |(key, counts)| {
            let name = self.names.series(&key, Some(Arc::clone(&self.name)))?;
            Some((name, counts))
        };
        let mut slices: Vec<_> = slices.into_iter().filter_map(name).collect();
        slices.extend(roll_up(&slices));
        let interface = InterfaceCounters {
            name: Arc::clone(&self.name),
            attach_points: Vec::new(),
            is_up: true,
            counters: self.engine.tracker.report.counters,
            place: Place::Alone,
        };
        let warning = EndedFlows::of(&interface.counters).warning(true);
        let warnings = warning.iter().map(ToString::to_string).collect();
        let snapshot = Snapshot { interfaces: vec![interface] };
        recent.add(&slices, time - 1);
        let reading = Reading { snapshot, lines_lost: 0, usage: Usage::read(), warnings };
        recent.take_reading(reading, time - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_changes_from_the_present_time_on_and_within_limits() {
        let speed = |pace: &Pace| (pace.speed * 16.0) as u32;
        let mut pace = Pace { at: 0, since: Instant::now(), speed: 1.0, is_paused: true };
        pace.change_speed(SECOND, 2.0);
        assert_eq!((pace.now(), speed(&pace)), (SECOND, 32));
        for _ in 0..20 {
            pace.change_speed(SECOND, 2.0);
        }
        assert_eq!(speed(&pace), 16 * 1024);
        for _ in 0..20 {
            pace.change_speed(SECOND, 0.5);
        }
        assert_eq!(speed(&pace), 1);
    }
}
