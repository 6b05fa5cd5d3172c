//! Threads that send the packets of a flow at the same time, and change their CPUs all the time.

use std::{
    hint, io, mem,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Namespace, PacketSocket, stay_on};

use super::scripts::{SEATS, Script, Step};
use crate::monitor::ok;

/// The least time between two steps of a flow. A wrong sample is off by more than any clock or CPU can be late.
pub(super) const STEP: Duration = Duration::from_millis(150);

/// How often a thread looks for the others before it sleeps for a moment. The machine may have fewer CPUs than the
/// guest, and a thread that spins keeps another from running.
const LOOKS: u32 = 3_000;
const MOMENT: Duration = Duration::from_micros(50);

/// A barrier whose threads spin while they wait, so that they leave it at the same time.
#[derive(Debug, Default)]
struct Gate {
    waiting: AtomicUsize,
    round: AtomicUsize,
}

impl Gate {
    fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == SEATS {
            self.waiting.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            looks += 1;
            if looks % LOOKS == 0 {
                thread::sleep(MOMENT);
            } else {
                hint::spin_loop();
            }
        }
    }
}

/// A thread's pseudo-random numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// The two ends where frames are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) near: (&'a Namespace, &'a str),
    pub(super) far: (&'a Namespace, &'a str),
    /// Whether the far end sends on the queue of the sending CPU, so that XDP runs one program per queue.
    pub(super) is_by_queue: bool,
}

impl Ends<'_> {
    /// Opens a socket at one end.
    pub(super) fn socket(&self, is_near: bool) -> PacketSocket {
        let (host, interface) = if is_near { self.near } else { self.far };
        let socket = ok(host.enter(|| PacketSocket::sender(interface))).unwrap();
        if self.is_by_queue && !is_near {
            socket.send_by_cpu().unwrap();
        }
        socket
    }
}

/// Sends a frame, and retries while the queue is full.
pub(super) fn send(socket: &PacketSocket, frame: &[u8]) {
    loop {
        match socket.send(frame) {
            Ok(()) => return,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock)
                    || error.raw_os_error() == Some(libc::ENOBUFS) =>
            {
                thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The scripts of a lane, and which of them is playing.
struct Conductor {
    scripts: Vec<(Script, Option<Instant>)>,
    playing: usize,
}

impl Conductor {
    /// Returns the next step of the script whose last step is the oldest, once [`STEP`] has passed since then. A script
    /// that has begun first completes its beginning: flows without a reply are evicted to make room.
    fn step(&mut self) -> Step {
        let (script, last) = &self.scripts[self.playing];
        if last.is_none() || script.is_open() {
            self.playing =
                (0..self.scripts.len()).min_by_key(|&number| self.scripts[number].1).unwrap_or_default();
            let (_, last) = &self.scripts[self.playing];
            if let Some(last) = last {
                thread::sleep(STEP.saturating_sub(last.elapsed()));
            }
        }
        self.scripts[self.playing].0.next()
    }

    /// True if all flows have begun.
    fn is_open(&self) -> bool {
        self.scripts.iter().all(|(script, _)| script.is_open())
    }

    /// Notes that every thread has sent its part.
    fn mark_sent(&mut self) {
        self.scripts[self.playing].1 = Some(Instant::now());
    }
}

/// The progress of all lanes.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Lanes whose flows have all begun.
    pub(super) opened: AtomicUsize,
    /// Steps sent so far.
    pub(super) steps: AtomicUsize,
}

/// Plays the scripts step by step until `is_over`. `lane` is unique among the lanes.
pub(super) fn play(
    ends: Ends<'_>,
    scripts: Vec<Script>,
    lane: usize,
    cpus: usize,
    is_over: &AtomicBool,
    progress: &Progress,
) {
    let (step, has_ended) = (Mutex::new(Step::default()), AtomicBool::new(false));
    let (all, gate) = (Barrier::new(SEATS), Gate::default());
    let mut conductor =
        Conductor { scripts: scripts.into_iter().map(|script| (script, None)).collect(), playing: 0 };
    let part = |seat: usize, mut conductor: Option<&mut Conductor>| {
        let socket = ends.socket(seat < SEATS / 2);
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (lane * SEATS + seat + 1) as u64);
        let mut is_open = false;
        loop {
            if let Some(conductor) = &mut conductor {
                has_ended.store(is_over.load(Ordering::Relaxed), Ordering::Relaxed);
                *step.lock().unwrap() = conductor.step();
            }
            all.wait();
            if has_ended.load(Ordering::Relaxed) {
                return;
            }
            let frames = mem::take(&mut step.lock().unwrap()[seat]);
            if random.below(2) == 0 {
                ok(stay_on(random.below(cpus)));
            }
            gate.wait();
            for frame in frames {
                send(&socket, &frame);
            }
            all.wait();
            if let Some(conductor) = &mut conductor {
                conductor.mark_sent();
                progress.steps.fetch_add(1, Ordering::Relaxed);
                if !is_open && conductor.is_open() {
                    is_open = true;
                    progress.opened.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for seat in 1..SEATS {
            let part = &part;
            scope.spawn(move || part(seat, None));
        }
        // The leading part has its own thread, because it moves from CPU to CPU.
        scope.spawn(|| part(0, Some(&mut conductor)));
    });
}
