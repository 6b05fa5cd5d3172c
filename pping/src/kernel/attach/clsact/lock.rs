//! The lock of filters between processes of pping. Without it, one that ends could remove the qdisc that one that starts
//! relies on.
//!
//! It is a listening socket with an abstract name, which belongs to the network namespace, as filters do: no file is shared by all
//! containers that have the interfaces. Every process may take the name. But the kernel tells who listens there, so only a
//! process of root, or of the user of this one, is waited for long.

use std::{
    fmt,
    io::{self, ErrorKind},
    os::{
        fd::AsRawFd as _,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, UnixCredentials, connect, getsockopt, socket,
    sockopt::PeerCredentials,
};

/// The abstract name of the lock.
const NAME: &str = "pping/filters";

/// How long this process waits in all for a pping that has the lock, until it gets it. A pping has it for a few system calls, and a
/// lease lasts for five seconds.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How long it waits if the holder cannot be identified: it could be a pping of another user.
const MAX_WAIT_UNKNOWN_HOLDER: Duration = Duration::from_millis(100);

const INTERVAL: Duration = Duration::from_millis(2);

/// The lock. Dropping it unlocks.
pub(super) struct FilterLock {
    _socket: Option<UnixListener>,
}

impl FilterLock {
    /// Waits for the lock. If another process does not give it back, or is no pping, filters are changed without the lock, and
    /// a warning says why.
    pub(super) fn acquire() -> Self {
        static BUDGET: Mutex<WaitBudget> = Mutex::new(WaitBudget::new());
        // Held while waiting: attaching is the work of one thread.
        let mut budget = BUDGET.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _socket: budget.acquire(NAME, is_trusted) }
    }
}

/// How long this process has waited for the lock.
struct WaitBudget {
    /// The time since it last had the lock, or since it began, that it spent waiting.
    waited: Duration,
    /// The process that has it, as far as known.
    holder: Option<UnixCredentials>,
    /// Whether a warning has said why it does not get the lock.
    has_warned: bool,
}

impl WaitBudget {
    const fn new() -> Self {
        Self { waited: Duration::ZERO, holder: None, has_warned: false }
    }

    /// Waits for the lock of this name, for long only if a process that `is_trusted` has it. Returns `None` if it does not get it.
    fn acquire(&mut self, name: &str, is_trusted: impl Fn(&UnixCredentials) -> bool) -> Option<UnixListener> {
        let (begun, before) = (Instant::now(), self.waited);
        loop {
            match SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name)) {
                Ok(listener) => {
                    *self = Self::new();
                    return Some(listener);
                }
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => {
                    self.warn(&error);
                    return None;
                }
            }
            match holder(name) {
                Ok(holder) => self.holder = Some(holder),
                // Its queue is full, perhaps of these questions.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.holder = None,
            }
            let is_trusted = self.holder.as_ref().is_some_and(&is_trusted);
            let limit = if is_trusted { MAX_WAIT } else { MAX_WAIT_UNKNOWN_HOLDER };
            self.waited = before + begun.elapsed();
            if self.waited >= limit {
                match self.holder {
                    Some(holder) => self.warn(&Holder(&holder)),
                    None => self.warn(&"held by a process that cannot be identified"),
                }
                return None;
            }
            thread::sleep(INTERVAL);
        }
    }

    fn warn(&mut self, reason: &dyn fmt::Display) {
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!(
                "tc filters are changed without the lock @{NAME}: {reason}; \
                 if another pping starts or ends at this moment, check that both still count packets"
            );
        }
    }
}

/// The process that has the lock, in words.
struct Holder<'a>(&'a UnixCredentials);

impl fmt::Display for Holder<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pid, uid) = (self.0.pid(), self.0.uid());
        write!(formatter, "held by process {pid} (uid {uid}); stop it unless it is pping")
    }
}

/// Whether a process may be another pping: it takes root, or capabilities that the administrator gave to the user of this process.
fn is_trusted(holder: &UnixCredentials) -> bool {
    holder.uid() == 0 || holder.uid() == rustix::process::geteuid().as_raw()
}

/// Returns who listens at this name.
fn holder(name: &str) -> io::Result<UnixCredentials> {
    // If the queue of the listener is full, connecting would wait.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(getsockopt(&socket, PeerCredentials)?)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::fd::OwnedFd};

    use nix::sys::socket::{Backlog, bind, listen};

    use super::*;

    /// Holds the lock, and answers few questions.
    fn listen_to_few(name: &str) -> OwnedFd {
        let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).unwrap()).unwrap();
        listen(&socket, Backlog::new(1).unwrap()).unwrap();
        socket
    }

    /// Fails to get the lock, whose holder is trusted or not. Returns how often it was tried.
    fn attempts(budget: &mut WaitBudget, name: &str, is_trusted: bool) -> u32 {
        let tried = Cell::new(0);
        let classify = |_: &UnixCredentials| {
            tried.set(tried.get() + 1);
            is_trusted
        };
        assert!(budget.acquire(name, classify).is_none());
        tried.get()
    }

    #[test]
    fn a_lock_is_waited_for_while_a_pping_has_it_but_not_for_ever() {
        let name = format!("pping/test-{}-own", std::process::id());
        let mut budget = WaitBudget::new();
        let lock = budget.acquire(&name, is_trusted).unwrap();
        let others = thread::spawn({
            let name = name.clone();
            move || WaitBudget::new().acquire(&name, is_trusted).is_some()
        });
        thread::sleep(20 * INTERVAL);
        drop(lock);
        assert!(others.join().unwrap());
        let _never = listen_to_few(&name);
        assert!(budget.acquire(&name, is_trusted).is_none());
        assert!(budget.waited >= MAX_WAIT && budget.has_warned);
        // The next filters do not wait again.
        assert_eq!(attempts(&mut budget, &name, true), 1);
    }

    #[test]
    fn a_foreign_process_is_not_waited_for_long() {
        let name = format!("pping/test-{}-foreign", std::process::id());
        let _foreign = listen_to_few(&name);
        let said = Holder(&holder(&name).unwrap()).to_string();
        assert!(said.starts_with(&format!("held by process {} (uid ", std::process::id())), "{said}");
        let mut budget = WaitBudget::new();
        assert!(attempts(&mut budget, &name, false) > 1, "it may be a pping");
        assert!(budget.waited >= MAX_WAIT_UNKNOWN_HOLDER && budget.has_warned);
        budget.waited = MAX_WAIT_UNKNOWN_HOLDER;
        assert_eq!(attempts(&mut budget, &name, false), 1);
    }
}
