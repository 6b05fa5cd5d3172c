//! A DNS server and its clients that need no package.

use std::{
    io::IoSliceMut,
    net::{Ipv6Addr, SocketAddr, UdpSocket},
    ops::Range,
    os::fd::AsRawFd,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use pping_common::limits::DNS_PORT;
use pping_lab::uninterrupted;

use super::{
    monitor::ok,
    net::{Family, Net},
};

/// The IDs of queries that the server does not answer.
pub(super) const UNANSWERED: Range<u16> = 0x8000..0x9000;

/// The pause between queries. The server can answer one query before the next, but many can be pending at the same
/// time.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a response may be missing before the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

const HEADER: usize = 12;

/// The flags of a query with recursion desired, and those of a response to it (RFC 1035, section 4.1.1).
const QUERY: [u8; 2] = [0x01, 0];
const RESPONSE: [u8; 2] = [0x81, 0x80];

/// A question for the address of the DNS root, which has none.
const QUESTION: [u8; 5] = [0, 0, 1, 0, 1];

/// A server on the server host. It ends on drop.
pub(super) struct Resolver {
    socket: UdpSocket,
    thread: Option<JoinHandle<()>>,
    took: mpsc::Receiver<Duration>,
}

impl Resolver {
    pub(super) fn start(net: &Net) -> Self {
        // The socket also receives queries over IPv4.
        let socket = ok(net.server.enter(|| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, DNS_PORT)))).unwrap();
        setsockopt(&socket, ReceiveTimestampns, &true).unwrap();
        let listening = socket.try_clone().unwrap();
        let (answered, took) = mpsc::channel();
        Self { socket, thread: Some(thread::spawn(move || serve(&listening, &answered))), took }
    }

    /// Returns for each query answered since the last call the time from its arrival in the server's kernel until the
    /// answer. The server is a process that may have to wait for the processor.
    pub(super) fn took(&self) -> Vec<Duration> {
        self.took.try_iter().collect()
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        // An empty datagram ends the thread.
        self.socket.send_to(&[], (Ipv6Addr::LOCALHOST, DNS_PORT)).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn serve(socket: &UdpSocket, answered: &mpsc::Sender<Duration>) {
    let mut message = [0; 512];
    while let Some((length, client, got)) = receive(socket, &mut message) {
        if length < HEADER {
            return;
        }
        if UNANSWERED.contains(&u16::from_be_bytes([message[0], message[1]])) {
            continue;
        }
        message[2..4].copy_from_slice(&RESPONSE);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        socket.send_to(&message[..length], client).unwrap();
        answered.send(now.saturating_sub(got)).ok();
    }
}

/// Receives a datagram. Returns its length, its sender, and when the kernel received it.
fn receive(socket: &UdpSocket, message: &mut [u8]) -> Option<(usize, SocketAddr, Duration)> {
    let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut buffers = [IoSliceMut::new(message)];
    let received =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut buffers, Some(&mut space), MsgFlags::empty())
            .ok()?;
    let got = received.cmsgs().ok()?.find_map(|each| match each {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    })?;
    let client = received.address?;
    let client = client.as_sockaddr_in6()?;
    Some((received.bytes, SocketAddr::from((client.ip(), client.port())), got))
}

/// Sends queries with these IDs from the client, without waiting in between, and returns once all responses have
/// arrived.
pub(super) fn ask(net: &Net, family: Family, ids: impl IntoIterator<Item = u16>) {
    let socket = ok(net.client.enter(|| UdpSocket::bind(SocketAddr::new(family.client(), 0)))).unwrap();
    socket.connect((family.server(), DNS_PORT)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut awaited = 0;
    for id in ids {
        socket.send(&query(id)).unwrap();
        awaited += usize::from(!UNANSWERED.contains(&id));
        thread::sleep(PAUSE);
    }
    for _ in 0..awaited {
        uninterrupted(|| socket.recv(&mut [0; 512])).unwrap();
    }
}

fn query(id: u16) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message[..2].copy_from_slice(&id.to_be_bytes());
    message[2..4].copy_from_slice(&QUERY);
    // The number of questions.
    message[5] = 1;
    message.extend(QUESTION);
    message
}
