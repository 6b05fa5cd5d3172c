//! DNS that needs no package: what asks, and what answers at once.

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

/// The IDs of queries that nobody answers.
pub(super) const UNANSWERED: Range<u16> = 0x8000..0x9000;

/// Long enough for the server to be done with a query before the next one, and short enough for many to wait at the same
/// time.
const PAUSE: Duration = Duration::from_millis(2);

/// For how long a response may be missing before the test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const HEADER: usize = 12;

/// Flags of a query that asks to be looked into further, and how they change in a response (RFC 1035, 4.1.1).
const QUERY: [u8; 2] = [0x01, 0];
const RESPONSE: [u8; 2] = [0x81, 0x80];

/// A question for the address of the root, which has none.
const QUESTION: [u8; 5] = [0, 0, 1, 0, 1];

/// A server on the server's host, until dropped.
pub(super) struct Resolver {
    socket: UdpSocket,
    thread: Option<JoinHandle<()>>,
    took: mpsc::Receiver<Duration>,
}

impl Resolver {
    pub(super) fn start(net: &Net) -> Self {
        // It takes queries by IPv4 too.
        let socket = ok(net.server.enter(|| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, DNS_PORT)))).unwrap();
        setsockopt(&socket, ReceiveTimestampns, &true).unwrap();
        let listening = socket.try_clone().unwrap();
        let (tell, took) = mpsc::channel();
        Self { socket, thread: Some(thread::spawn(move || serve(&listening, &tell))), took }
    }

    /// From when the server's kernel got a query until it was answered, for each answered since this was last asked for. What
    /// answers is a process, which may have to wait for its processor.
    pub(super) fn took(&self) -> Vec<Duration> {
        self.took.try_iter().collect()
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        // It ends with a datagram that has nothing in it.
        self.socket.send_to(&[], (Ipv6Addr::LOCALHOST, DNS_PORT)).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn serve(socket: &UdpSocket, tell: &mpsc::Sender<Duration>) {
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
        tell.send(now.saturating_sub(got)).ok();
    }
}

/// A datagram's length, its sender, and when the kernel got it.
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

/// Has the client ask with each of these IDs, none of which waits for the response to another, and returns once all
/// responses are there.
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
    // One question.
    message[5] = 1;
    message.extend(QUESTION);
    message
}
