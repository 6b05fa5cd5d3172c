//! Which run of pping made a filter, and whether its process is still alive.
//!
//! A filter outlives a process that is killed. So the process holds a socket for as long as it lives, and the name of the filter
//! contains that of the socket: `pping_ingress/RUN`. The socket has an abstract name (unix(7)). Such names belong to the network
//! namespace, as interfaces do, so every container that has the interfaces sees them. They take no privilege and no file, and
//! vanish with the process.

use std::{
    fmt,
    io::{self, ErrorKind},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::Arc,
};

use crate::kernel::random::random;

/// The unique number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run(u64);

impl Run {
    fn new() -> Self {
        Self(random())
    }

    /// Reads what `Display` writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_number = text.len() == 16 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        u64::from_str_radix(text, 16).ok().filter(|_| is_number).map(Self)
    }

    /// True if its process is alive, or if that cannot be found out.
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

/// The socket by which others see that this run is alive.
#[derive(Debug)]
pub(super) struct RunSocket {
    pub(super) run: Run,
    _socket: UnixDatagram,
}

impl RunSocket {
    fn new() -> io::Result<Self> {
        let run = Run::new();
        Ok(Self { run, _socket: UnixDatagram::bind_addr(&run.address()?)? })
    }
}

/// The owner of filters: it opens its [`RunSocket`] with the first one.
#[derive(Debug, Default)]
pub struct FilterOwner(Option<Arc<RunSocket>>);

impl FilterOwner {
    /// Returns the socket, which the first call opens.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub(super) fn socket(&mut self) -> io::Result<Arc<RunSocket>> {
        let socket = match self.0.take() {
            Some(socket) => socket,
            None => Arc::new(RunSocket::new()?),
        };
        Ok(Arc::clone(self.0.insert(socket)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_alive_until_its_socket_is_closed() {
        let mut owner = FilterOwner::default();
        let socket = owner.socket().unwrap();
        let run = socket.run;
        assert_eq!(owner.socket().unwrap().run, run);
        assert!(run.is_alive());
        drop(owner);
        assert!(run.is_alive(), "something still needs it");
        drop(socket);
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
