//! A capture played into a view, at the speed of its packets or another: `pping top -r`.

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
    groups::Names,
    snapshot::{InterfaceCounters, Snapshot, Usage},
    view::{Reading, View},
};

/// The longest time between two reports of the position, and until a command is obeyed.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A capture that is being played by a thread, which ends with this.
#[derive(Debug)]
pub(crate) struct Player {
    commands: Sender<Command>,
    position: watch::Receiver<Position>,
    stop: Arc<AtomicBool>,
}

/// What the player is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Command {
    /// Pause, or go on.
    Pause,
    /// Play so many times as fast as the packets came.
    Speed(f64),
    /// Go to a place this many seconds away; before 0 is back.
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
    /// Whether there is nothing more to come.
    pub(crate) is_over: bool,
    /// What is wrong with the capture.
    pub(crate) fault: Option<String>,
}

impl Player {
    /// Opens a capture and begins to play it into `view`; all of it at once if `is_at_once`.
    ///
    /// # Errors
    /// When there is no capture to read.
    pub(crate) fn start(config: Config, path: PathBuf, view: View, is_at_once: bool) -> Result<Self, Error> {
        let (commands, inbox) = channel();
        let (reports, position) = watch::channel(Position { speed: 1.0, ..Position::default() });
        let stop = Arc::new(AtomicBool::new(false));
        let input = Input::open(&path, Arc::clone(&stop))?;
        let pace = Pace { at: 0, since: Instant::now(), speed: 1.0, is_paused: false };
        let target = is_at_once.then_some(u64::MAX);
        // The groups file is read here, so that a mistake in it is known at once.
        settings(&config)?;
        let mut play = Play {
            config,
            path,
            view,
            inbox,
            reports,
            stop: Arc::clone(&stop),
            pace,
            target,
            first: None,
            newest: 0,
            is_over: false,
            len: None,
            read: Arc::default(),
        };
        thread::Builder::new().name("pping-play".into()).spawn(move || play.run(input))?;
        Ok(Self { commands, position, stop })
    }

    /// Has the player do something.
    pub(crate) fn command(&self, command: Command) {
        // It has ended if nobody takes it.
        self.commands.send(command).ok();
    }

    /// Where it is.
    pub(crate) fn position(&self) -> Position {
        self.position.borrow().clone()
    }

    /// Waits until it is elsewhere.
    pub(crate) async fn moved(&mut self) {
        self.position.changed().await.ok();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The time of the packets, as it goes by while they are played.
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

    /// Goes on from this time of the packets.
    fn set(&mut self, at: u64) {
        (self.at, self.since) = (at, Instant::now());
    }

    /// How long until this time of the packets.
    fn until(&self, time: u64) -> Duration {
        if self.is_paused {
            return Duration::MAX;
        }
        let ns = time.saturating_sub(self.now()) as f64 / self.speed;
        Duration::try_from_secs_f64(ns / SECOND as f64).unwrap_or(Duration::MAX)
    }
}

/// The player's side.
struct Play {
    config: Config,
    path: PathBuf,
    view: View,
    inbox: Receiver<Command>,
    reports: watch::Sender<Position>,
    stop: Arc<AtomicBool>,
    pace: Pace,
    /// The time until which nothing is waited for, ns.
    target: Option<u64>,
    /// The time of the first packet, ns.
    first: Option<u64>,
    /// The time of the newest packet so far, ns.
    newest: u64,
    is_over: bool,
    len: Option<u64>,
    read: Arc<AtomicU64>,
}

/// Why playing stops where it is.
enum Ending {
    /// Nobody looks any more.
    Stopped,
    /// It begins again, and goes to `target`.
    Again,
    /// Something is wrong with the capture.
    Fault(Error),
}

impl Play {
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
                Err(Ending::Again) => continue,
                Err(Ending::Fault(error)) => Some(error.to_string()),
            };
            self.is_over = true;
            self.report(fault.as_deref());
            match self.rest(fault.as_deref()) {
                Ending::Again => {}
                _ => return,
            }
        }
    }

    /// Plays it from the beginning to the end.
    fn play(&mut self, input: Input) -> Result<(), Ending> {
        (self.len, self.read, self.is_over) = (input.len, Arc::clone(&input.read), false);
        self.view.clear();
        let (settings, names) = settings(&self.config).map_err(Ending::Fault)?;
        let timeout = self.config.aggregation.group_timeout.as_nanos() as u64;
        let mut stage =
            Stage { engine: Engine::new(settings), packets: 0, names, timeout, name: self.name() };
        let source = capture::decompress(input).map_err(|error| self.fault(error, 0))?;
        let mut capture = Capture::new(source);
        let mut due = 0;
        loop {
            while let Some(packet) =
                capture.next_packet().map_err(|error| self.fault(error, stage.packets))?
            {
                if packet.time >= due {
                    stage.show(due, &self.view);
                    self.begin(packet.time);
                    due = packet.time - packet.time % SECOND + SECOND;
                    self.wait(packet.time)?;
                }
                self.newest = self.newest.max(packet.time);
                stage.engine.packet(&packet);
                stage.packets += 1;
            }
            if !capture.fill().map_err(|error| self.fault(error, capture.packets()))? {
                break;
            }
        }
        stage.engine.tracker.finish();
        stage.show(due, &self.view);
        Ok(())
    }

    fn fault(&self, error: capture::Error, packets: u64) -> Ending {
        Ending::Fault(FileError::Read { path: self.path.clone(), error, packets }.into())
    }

    /// What the packets are said to have passed: captures need not name their interfaces.
    fn name(&self) -> Arc<str> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        if self.path == Path::new("-") { "standard input".into() } else { name.to_string_lossy().into() }
    }

    /// Takes the time of the first packet for the beginning.
    fn begin(&mut self, time: u64) {
        if self.first.is_none() {
            self.first = Some(time);
            self.pace.set(time);
        }
    }

    /// Waits until it is this time, ns, and does what is asked meanwhile.
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

    /// Waits after the end for what is asked.
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

    /// The time of the packets now, ns, which ends with them.
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
            Command::Speed(speed) => {
                self.pace.set(now);
                self.pace.speed = speed;
            }
            Command::Seek(seconds) => {
                let first = self.first.unwrap_or(0);
                let target = now.saturating_add_signed(seconds.saturating_mul(SECOND as i64)).max(first);
                self.pace.set(target);
                if seconds >= 0 {
                    self.target = Some(target);
                } else if self.len.is_some() {
                    // What has been played cannot be taken back: it is played again up to there.
                    self.target = Some(target);
                    return Err(Ending::Again);
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

/// What measures, and shows what it measured.
struct Stage {
    engine: Engine,
    packets: u64,
    names: Names,
    timeout: u64,
    name: Arc<str>,
}

impl Stage {
    /// Shows the second that ends at `time`, ns; 0 is none.
    fn show(&mut self, time: u64, view: &View) {
        if time == 0 {
            return;
        }
        self.engine.fold(time);
        let slices = self.engine.tracker.take_series(time, self.timeout);
        let name = |(key, tally)| {
            let name = self.names.series(&key, Some(Arc::clone(&self.name)))?;
            Some((name, tally))
        };
        let slices: Vec<_> = slices.into_iter().filter_map(name).collect();
        let interface = InterfaceCounters {
            name: Arc::clone(&self.name),
            attach_points: Vec::new(),
            is_up: true,
            counters: self.engine.tracker.report.counters,
        };
        let snapshot = Snapshot { interfaces: vec![interface] };
        view.add(&slices, time - 1);
        view.count(Reading { snapshot, lines_lost: 0, usage: Usage::read() }, time - 1);
    }
}
