use std::{
    io,
    os::fd::AsFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::{prctl, time::TimeSpec},
};

use crate::{Namespace, Result, error::Context, packet::PacketSocket, queue::Queue};

/// How often an idle wire checks whether to stop.
const IDLE: Duration = Duration::from_millis(20);
/// How many frames are received before those that became due are sent.
const BATCH: usize = 64;

/// Joins two interfaces of one namespace and holds every frame that passes for a set time.
///
/// Frames with the same hold keep their order. The other ends of the two cables must have their offloads off
/// ([`crate::veth::Offloads::Off`]), or frames arrive without checksums; [`WireStats::incomplete`] counts those. The
/// wire stops when dropped, and frames it still holds are lost, as when a cable is cut.
#[derive(Debug)]
pub struct Wire {
    lanes: [Arc<Lane>; 2],
    threads: Vec<JoinHandle<()>>,
}

/// A direction through a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// From the first interface to the second; in a [`crate::Topology`], towards the server.
    Forward,
    /// From the second interface to the first; in a [`crate::Topology`], towards the client.
    Backward,
}

/// What happens to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is held as long as all others.
    Pass,
    /// It is lost.
    Drop,
    /// It is held this long instead, and so may be reordered.
    Hold(Duration),
}

/// The counts of one direction of a wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WireStats {
    /// Frames sent on.
    pub forwarded: u64,
    /// Frames dropped on purpose, by [`Fate::Drop`].
    pub dropped: u64,
    /// Frames lost by accident: a queue was full or the interface refused them. A test that counts packets should
    /// check that this is zero.
    pub lost: u64,
    /// Forwarded frames that came without a checksum or cut short. Should be zero.
    pub incomplete: u64,
}

type FateFn = Box<dyn FnMut(&[u8]) -> Fate + Send>;

/// Shared by the owner of a wire and the thread of one direction.
#[derive(Default)]
struct Lane {
    hold_ns: AtomicU64,
    fate: Mutex<Option<FateFn>>,
    stop: AtomicBool,
    forwarded: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
    incomplete: AtomicU64,
}

impl Wire {
    /// Joins `first` and `second`, two interfaces of `namespace`, and holds frames for `hold` each way.
    ///
    /// # Errors
    /// If an interface does not exist or the kernel refuses packet sockets.
    pub fn new(namespace: &Namespace, first: &str, second: &str, hold: Duration) -> Result<Self> {
        let open = |interface: &str| {
            PacketSocket::open(interface).while_doing(|| format!("open a packet socket on {interface}"))
        };
        let (first, second) = namespace.enter(|| Ok((open(first)?, open(second)?)))??;
        let share =
            |socket: &PacketSocket| socket.try_clone().while_doing(|| "share a packet socket".to_owned());
        let ends = [(share(&first)?, share(&second)?), (second, first)];
        let mut wire = Self { lanes: Default::default(), threads: Vec::new() };
        for (lane, (from, to)) in wire.lanes.iter().zip(ends) {
            lane.set_hold(hold);
            let lane = Arc::clone(lane);
            let thread = thread::Builder::new().name("wire".to_owned());
            let handle =
                thread.spawn(move || lane.carry(from, &to)).while_doing(|| "start a wire".to_owned())?;
            wire.threads.push(handle);
        }
        Ok(wire)
    }

    /// Changes how long frames that arrive from now on are held in one direction. With a shorter time, new frames
    /// overtake those that are held.
    pub fn set_hold(&self, leg: Leg, hold: Duration) {
        self.lane(leg).set_hold(hold);
    }

    /// Calls `fate` for each frame of one direction from now on, instead of any earlier closure. It sees Ethernet
    /// frames with VLAN tags in place, ARP included, and should be quick.
    pub fn set_fate(&self, leg: Leg, fate: impl FnMut(&[u8]) -> Fate + Send + 'static) {
        *self.lane(leg).fate.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(fate));
    }

    /// Passes all frames of one direction again.
    pub fn clear_fate(&self, leg: Leg) {
        *self.lane(leg).fate.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The counts of one direction.
    pub fn stats(&self, leg: Leg) -> WireStats {
        let lane = self.lane(leg);
        WireStats {
            forwarded: lane.forwarded.load(Relaxed),
            dropped: lane.dropped.load(Relaxed),
            lost: lane.lost.load(Relaxed),
            incomplete: lane.incomplete.load(Relaxed),
        }
    }

    fn lane(&self, leg: Leg) -> &Lane {
        match leg {
            Leg::Forward => &self.lanes[0],
            Leg::Backward => &self.lanes[1],
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.lanes.iter().for_each(|lane| lane.stop.store(true, Relaxed));
        for thread in self.threads.drain(..) {
            // A panic of that thread has been printed already.
            thread.join().ok();
        }
    }
}

impl Lane {
    fn set_hold(&self, hold: Duration) {
        self.hold_ns.store(u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Carries the frames of one direction until the wire stops.
    fn carry(&self, mut from: PacketSocket, to: &PacketSocket) {
        // By default the kernel wakes a thread up to 50 us late, to save power. If it will not change that, frames
        // are held a little longer.
        prctl::set_timerslack(1).ok();
        let mut queue = Queue::default();
        while !self.stop.load(Relaxed) {
            while let Some(frame) = queue.pop_due(Instant::now()) {
                let counter = if send(to, &frame).is_ok() { &self.forwarded } else { &self.lost };
                counter.fetch_add(1, Relaxed);
            }
            wait(&from, queue.wait(Instant::now()).unwrap_or(IDLE).min(IDLE));
            for _ in 0..BATCH {
                // An error means that the interface went down, and is reported once: wait for it to come back.
                let Ok(Some(received)) = from.receive() else { break };
                if !received.is_complete {
                    self.incomplete.fetch_add(1, Relaxed);
                }
                self.take_in(&mut queue, received.frame);
            }
            self.lost.fetch_add(from.take_overflow().unwrap_or(0), Relaxed);
        }
    }

    fn take_in(&self, queue: &mut Queue, frame: &[u8]) {
        let now = Instant::now();
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(|fate| fate(frame));
        let hold = match fate {
            None | Some(Fate::Pass) => Duration::from_nanos(self.hold_ns.load(Relaxed)),
            Some(Fate::Hold(hold)) => hold,
            Some(Fate::Drop) => {
                self.dropped.fetch_add(1, Relaxed);
                return;
            }
        };
        // A frame with a time beyond what `Instant` can hold is lost.
        let queued = now.checked_add(hold).map(|due| queue.push(due, frame.to_vec()));
        if !matches!(queued, Some(Ok(()))) {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lane").field("hold_ns", &self.hold_ns).finish_non_exhaustive()
    }
}

/// Sends a frame, waiting while the interface has no room for it.
fn send(to: &PacketSocket, frame: &[u8]) -> io::Result<()> {
    match to.send(frame) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            poll(to, PollFlags::POLLOUT, IDLE);
            to.send(frame)
        }
        result => result,
    }
}

/// Waits for a frame, at most for `timeout`.
fn wait(from: &PacketSocket, timeout: Duration) {
    poll(from, PollFlags::POLLIN, timeout);
}

/// Waits for events on a socket. A failed poll only ends early: the caller checks by itself.
fn poll(socket: &PacketSocket, events: PollFlags, timeout: Duration) {
    let mut sockets = [PollFd::new(socket.as_fd(), events)];
    ppoll(&mut sockets, Some(TimeSpec::from_duration(timeout)), None).ok();
}
