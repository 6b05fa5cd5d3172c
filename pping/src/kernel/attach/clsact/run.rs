//! Who made a filter, and whether that one is still there.
//!
//! A filter outlives a process that is killed. So the process holds a socket for as long as it lives, whose name the filter
//! has in its own: `pping_ingress/RUN`. The socket's name is an abstract one (unix(7)). Those live in the network
//! namespace, as interfaces do, and so are the same in every container that has the interfaces; they take no privilege and
//! no file, and vanish with the process that holds them.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    io::{self, ErrorKind},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    process,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// The number of a run, which no other has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run(u64);

impl Run {
    fn new() -> Self {
        // The keys of a `RandomState` are random.
        Self(RandomState::new().hash_one(process::id()))
    }

    /// Reads what `Display` writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_number = text.len() == 16 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(text, 16).ok().filter(|_| is_number).map(Self)
    }

    /// Whether its process lives. In doubt it does.
    pub(super) fn is_alive(self) -> bool {
        let called = UnixDatagram::unbound().and_then(|socket| socket.connect_addr(&self.address()?));
        !called.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    fn address(self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(format!("pping/{self}"))
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// This run, as others see it: alive for as long as this is.
#[derive(Debug)]
pub(super) struct Sign {
    pub(super) run: Run,
    _socket: UnixDatagram,
}

impl Sign {
    fn new() -> io::Result<Self> {
        let run = Run::new();
        Ok(Self { run, _socket: UnixDatagram::bind_addr(&run.address()?)? })
    }
}

/// What shows that this run is alive, once something is made that others have to know that of.
#[derive(Debug, Default)]
pub struct Owner(Option<Arc<Sign>>);

impl Owner {
    /// Shows it from now on.
    ///
    /// # Errors
    /// When there is no socket to be had.
    pub(super) fn sign(&mut self) -> io::Result<Arc<Sign>> {
        let sign = match self.0.take() {
            Some(sign) => sign,
            None => Arc::new(Sign::new()?),
        };
        Ok(Arc::clone(self.0.insert(sign)))
    }
}

/// How long to wait for a turn. Whoever holds it has it for some system calls, and anybody can hold it out of spite.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
const TURN_INTERVAL: Duration = Duration::from_millis(2);

/// Keeps others of pping from changing filters: one that ends would else take the discipline from under one that starts.
/// It is over when this is dropped.
pub(super) struct Turn {
    _socket: Option<UnixDatagram>,
}

impl Turn {
    /// Waits for it, if not for ever.
    pub(super) fn take() -> Self {
        let begun = Instant::now();
        let bind = || UnixDatagram::bind_addr(&SocketAddr::from_abstract_name("pping/turn")?);
        loop {
            match bind() {
                Err(error) if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < TURN_TIMEOUT => {
                    thread::sleep(TURN_INTERVAL);
                }
                taken => return Self { _socket: taken.ok() },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_alive_until_its_sign_is_gone() {
        let mut owner = Owner::default();
        let sign = owner.sign().unwrap();
        let run = sign.run;
        assert_eq!(owner.sign().unwrap().run, run);
        assert!(run.is_alive());
        drop(owner);
        assert!(run.is_alive(), "something still needs it");
        drop(sign);
        assert!(!run.is_alive());
    }

    #[test]
    fn a_run_is_written_as_it_is_read() {
        let run = Run(0xab);
        assert_eq!(run.to_string(), "00000000000000ab");
        assert_eq!(Run::parse(&run.to_string()), Some(run));
        for text in ["", "ab", "+0000000000000ab", "00000000000000AB", "00000000000000ab0"] {
            assert_eq!(Run::parse(text), None, "{text}");
        }
    }
}
