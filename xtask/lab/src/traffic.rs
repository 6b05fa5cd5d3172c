//! TCP traffic that needs no package: a server that echoes or discards, and a client that sends at an even pace.

use std::{
    io::{self, Read, Write},
    mem,
    net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};

use crate::{Error, Namespace, Result, error::Context};

/// How often a server checks whether to stop.
const POLL: Duration = Duration::from_millis(2);

/// What a server does with what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Sends everything back.
    Echo,
    /// Discards everything.
    Sink,
}

/// A TCP server for any number of connections, IPv4 and IPv6 on one port; it stops on drop.
#[derive(Debug)]
pub struct Server {
    port: u16,
    shared: Arc<ServerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ServerState {
    stop: AtomicBool,
    received: AtomicU64,
}

impl Server {
    /// Listens in a namespace, on a free port if `port` is 0.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn start(namespace: &Namespace, port: u16, behaviour: Behaviour) -> Result<Self> {
        // On Linux the unspecified IPv6 address takes IPv4 connections too.
        let listener = namespace
            .enter(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))?
            .while_doing(|| format!("listen on port {port} in {}", namespace.name()))?;
        let port = listener.local_addr().while_doing(|| "read a port".to_owned())?.port();
        listener.set_nonblocking(true).while_doing(|| "listen without blocking".to_owned())?;
        let shared = Arc::new(ServerState::default());
        let server = Arc::clone(&shared);
        let thread = Some(thread::spawn(move || accept(&listener, behaviour, &server)));
        Ok(Self { port, shared, thread })
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The bytes received so far, over all connections.
    pub fn received(&self) -> u64 {
        self.shared.received.load(Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn accept(listener: &TcpListener, behaviour: Behaviour, shared: &Arc<ServerState>) {
    let mut connections = Vec::new();
    while !shared.stop.load(Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // Poll the listener instead of sleeping, or the interval would be part of a client's times. A failed poll
            // only ends early.
            let mut listener = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            ppoll(&mut listener, Some(TimeSpec::from_duration(POLL)), None).ok();
            continue;
        };
        let Ok(handle) = stream.try_clone() else { continue };
        let shared = Arc::clone(shared);
        // The connection ends with an error when either end resets it, which is fine.
        connections.push((handle, thread::spawn(move || serve(stream, behaviour, &shared).ok())));
    }
    for (stream, thread) in connections {
        // Wakes a thread that waits in a read or a write.
        stream.shutdown(Shutdown::Both).ok();
        thread.join().ok();
    }
}

fn serve(mut stream: TcpStream, behaviour: Behaviour, shared: &ServerState) -> io::Result<()> {
    // On Linux an accepted socket does not inherit the listener's flag, but that is not guaranteed.
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 65_536];
    loop {
        let length = match stream.read(&mut buffer)? {
            0 => return stream.shutdown(Shutdown::Both),
            length => length,
        };
        shared.received.fetch_add(length as u64, Relaxed);
        if behaviour == Behaviour::Echo {
            stream.write_all(&buffer[..length])?;
        }
    }
}

/// How a client sends: `chunks` writes of `bytes` each, with a pause after each.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The number of writes.
    pub chunks: u32,
    /// The size of each; up to the segment size it becomes one segment.
    pub bytes: usize,
    /// The pause after each.
    pub pause: Duration,
}

/// The result of a client.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Its own end of the connection.
    pub local: SocketAddr,
    /// The bytes written, all of them echoed or read by the server.
    pub bytes: u64,
    /// From the first write to the end of the stream.
    pub elapsed: Duration,
    /// Its kernel's measurements.
    pub tcp_info: TcpInfo,
}

/// The kernel's measurements of its own end of a connection (`TCP_INFO` of tcp(7)).
#[derive(Debug, Clone, Copy)]
pub struct TcpInfo {
    /// The shortest round-trip time. Linux ignores retransmitted segments.
    pub min_rtt: Duration,
    /// The number of retransmitted segments.
    pub retransmissions: u32,
}

/// Connects to a [`Behaviour::Sink`], sends, and waits until the server has read it all.
///
/// # Errors
/// [`Error::System`] if the connection fails.
pub fn send(client: &Namespace, server: impl Into<SocketAddr>, pace: Pace) -> Result<Sent> {
    transfer(client, server.into(), pace, |mut stream| {
        let end = stream.read(&mut [0]).while_doing(|| "read from the sink".to_owned())?;
        if end == 0 { Ok(()) } else { Err(Error::Corrupt { offset: 0 }) }
    })
}

/// Connects to a [`Behaviour::Echo`], sends, and checks every byte that comes back.
///
/// # Errors
/// [`Error::System`] if the connection fails, [`Error::Corrupt`] if the echo differs or falls short.
pub fn echo(client: &Namespace, server: impl Into<SocketAddr>, pace: Pace) -> Result<Sent> {
    transfer(client, server.into(), pace, |mut stream| {
        let expected = u64::from(pace.chunks) * pace.bytes as u64;
        let mut buffer = vec![0; 65_536];
        let mut offset = 0;
        loop {
            match stream.read(&mut buffer).while_doing(|| "read the echo".to_owned())? {
                0 if offset == expected => return Ok(()),
                0 => return Err(Error::Corrupt { offset }),
                length => {
                    if let Some(at) = (0..length).find(|&at| buffer[at] != pattern(offset + at as u64)) {
                        return Err(Error::Corrupt { offset: offset + at as u64 });
                    }
                    offset += length as u64;
                }
            }
        }
    })
}

/// Writes on one thread while `read` runs on another: an echo must be read during the writing, or both sides end up
/// waiting for room.
fn transfer(
    client: &Namespace,
    server: SocketAddr,
    pace: Pace,
    read: impl FnOnce(TcpStream) -> Result<()> + Send,
) -> Result<Sent> {
    let mut stream =
        client.enter(|| TcpStream::connect(server))?.while_doing(|| format!("connect to {server}"))?;
    stream.set_nodelay(true).while_doing(|| "switch Nagle's algorithm off".to_owned())?;
    let local = stream.local_addr().while_doing(|| "read a port".to_owned())?;
    let reader = stream.try_clone().while_doing(|| "share a connection".to_owned())?;
    let start = Instant::now();
    thread::scope(|scope| {
        let reader = scope.spawn(move || read(reader));
        let written = write_paced(&mut stream, pace).while_doing(|| format!("send to {server}"));
        // On failure, shut down both directions, or the reader would never end.
        let end = if written.is_ok() { Shutdown::Write } else { Shutdown::Both };
        stream.shutdown(end).ok();
        let read = reader.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        let bytes = written?;
        read?;
        let elapsed = start.elapsed();
        let tcp_info = tcp_info(&stream).while_doing(|| "ask the kernel about a connection".to_owned())?;
        Ok(Sent { local, bytes, elapsed, tcp_info })
    })
}

fn tcp_info(stream: &TcpStream) -> io::Result<TcpInfo> {
    // SAFETY: plain numbers, for all of which 0 is valid.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`. An old kernel writes fewer fields, but all that are
    // used here.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        min_rtt: Duration::from_micros(info.tcpi_min_rtt.into()),
        retransmissions: info.tcpi_total_retrans,
    })
}

fn write_paced(stream: &mut TcpStream, pace: Pace) -> io::Result<u64> {
    let mut offset = 0;
    for _ in 0..pace.chunks {
        let chunk: Vec<_> = (offset..offset + pace.bytes as u64).map(pattern).collect();
        stream.write_all(&chunk)?;
        offset += chunk.len() as u64;
        thread::sleep(pace.pause);
    }
    Ok(offset)
}

/// The byte at an offset of every stream: no two neighbouring stretches are alike, so that lost, doubled and
/// reordered segments show.
fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}
