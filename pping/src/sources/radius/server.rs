//! The server: it takes accounting requests, and answers them once pping has accepted what they say.
//!
//! A NAS repeats a request that is not answered. So what pping did not accept comes again, and until then it waits in the feed,
//! too.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{
    packet::{ACCOUNTING_REQUEST, MAX_LENGTH, Packet},
    report::{LabelBy, Report},
    secrets::Secrets,
    sessions::{Outcome, Sessions},
};
use crate::{
    log::say_started,
    notify::Notify,
    sources::{change::Change, complaints::Complaints, error::Error, feed::Feed, run::Stop},
    spelling::counted,
};

/// How long to wait for a request, before other work is done.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// The interval of what is done once a second.
const SECOND: Duration = Duration::from_secs(1);

/// The requests that are taken before pping is told what they say.
const AT_A_TIME: usize = 256;

/// The bytes of requests that the kernel keeps while pping is told of others, if it may.
const BUFFER: usize = 4 << 20;

/// How long a request is remembered, so that its repetition changes nothing.
const REMEMBER: Duration = Duration::from_mins(1);

/// The highest number of requests that are remembered.
const MAX_REMEMBERED: usize = 1 << 16;

/// A request, as its client repeats it: its address, its identifier and its authenticator. The port may be another one: whoever
/// replays a packet chooses it.
type Repeatable = (IpAddr, u8, [u8; 16]);

/// The server.
pub(super) struct Server {
    socket: UdpSocket,
    address: SocketAddr,
    secrets: Secrets,
    label_by: LabelBy,
    sessions: Sessions,
    taken: HashMap<Repeatable, Instant, RandomState>,
    complaints: Complaints,
    changes: Vec<Change>,
    /// The answers to what was taken, and where they go.
    answers: Vec<(SocketAddr, Vec<u8>)>,
    requests: u64,
    unanswered: u64,
}

impl Server {
    /// Listens at an address.
    ///
    /// # Errors
    /// If that is not possible.
    pub(super) fn bind(
        address: SocketAddr,
        secrets: Secrets,
        label_by: LabelBy,
        expire: Option<Duration>,
    ) -> Result<Self, Error> {
        let bound = || -> io::Result<(UdpSocket, SocketAddr)> {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            // The kernel grants as much as its limit allows.
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        let (socket, address) = bound().map_err(|source| Error::Listen { address, source })?;
        Ok(Self {
            socket,
            address,
            secrets,
            label_by,
            sessions: Sessions::new(expire),
            taken: HashMap::default(),
            complaints: Complaints::default(),
            changes: Vec::new(),
            answers: Vec::new(),
            requests: 0,
            unanswered: 0,
        })
    }

    /// The address at which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes requests until it is told to stop.
    ///
    /// # Errors
    /// If it cannot receive any more.
    pub(super) fn run(mut self, stop: &Stop, socket: PathBuf, source: Arc<str>) -> Result<(), Error> {
        let (mut feed, notify) = (Feed::new(socket, source, true), Notify::from_environment());
        notify.ready(&self.status());
        let mut last = Instant::now();
        while !stop.is_set() {
            self.wait()?;
            self.receive()?;
            if last.elapsed() >= SECOND {
                last = Instant::now();
                self.sessions.expire(last, &mut self.changes);
                self.taken.retain(|_, taken| last.duration_since(*taken) < REMEMBER);
                notify.alive();
                notify.status(&self.status());
            }
            self.pass_on(&mut feed);
        }
        notify.stopping();
        say_started(&self.status());
        Ok(())
    }

    fn wait(&self) -> Result<(), Error> {
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&WAIT)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Takes the requests that have come.
    fn receive(&mut self) -> Result<(), Error> {
        let mut buffer = [0; MAX_LENGTH];
        for _ in 0..AT_A_TIME {
            let received = self.socket.recv_from(&mut buffer);
            match received {
                Ok((length, from)) => self.take(buffer.get(..length).unwrap_or_default(), from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client is gone that an answer was sent to.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes a request, unless it is wrong.
    fn take(&mut self, bytes: &[u8], from: SocketAddr) {
        let client = from.ip().to_canonical();
        let Self { complaints, secrets, .. } = self;
        let Some((entry, secret)) = secrets.of(client) else {
            return complaints.warn("from clients without a secret", || {
                format!("{client} has no secret; its requests are dropped: add it to --secret-file")
            });
        };
        let malformed = "malformed";
        let packet = match Packet::parse(bytes) {
            Ok(packet) => packet,
            Err(error) => {
                return complaints
                    .warn(malformed, || format!("a packet of {client} is dropped: {}", error.0));
            }
        };
        if packet.code != ACCOUNTING_REQUEST {
            return complaints.warn("of another kind", || {
                let code = packet.code;
                format!("a packet of {client} is dropped: it is no accounting request (code {code})")
            });
        }
        if !packet.is_authentic(secret) {
            return complaints.warn("with a wrong secret", || {
                format!(
                    "a request of {client} is dropped: its authenticator is wrong; give that NAS the secret of \
                     --secret-file, or the other way round"
                )
            });
        }
        let mut report = match Report::read(&packet, self.label_by, client, entry) {
            Ok(report) => report,
            Err(error) => {
                return complaints
                    .warn(malformed, || format!("a request of {client} is dropped: {}", error.0));
            }
        };
        self.requests += 1;
        self.answers.push((from, packet.response(secret)));
        let now = Instant::now();
        let repeatable = (client, packet.identifier, packet.authenticator);
        if self.taken.insert(repeatable, now).is_some() {
            return;
        }
        if self.taken.len() > MAX_REMEMBERED {
            self.taken.remove(&repeatable);
        }
        if let Some(route) = report.unread_route.take() {
            self.complaints.warn("with a route that cannot be read", || {
                format!("a route of a session of {client} is left out: `{route}`; it begins with its prefix")
            });
        }
        match self.sessions.take(report, now, &mut self.changes) {
            Outcome::Done => {}
            Outcome::Unnamed => self.complaints.warn("without a name", || {
                format!("a session of {client} is left out: it has no attribute for --label-by")
            }),
            Outcome::NoRoom => self.complaints.warn("without room", || {
                format!("a session of {client} is left out: there are too many sessions or prefixes")
            }),
        }
    }

    /// Tells pping what changed, and answers once it has accepted that.
    fn pass_on(&mut self, feed: &mut Feed) {
        self.apply_changes(feed);
        let mut done = feed.flush(&mut self.complaints);
        if let Some(adopted) = feed.take_adopted() {
            tracing::info!("{} of an earlier run", counted(adopted.len(), "prefix", "prefixes"));
            self.sessions.adopt(adopted, Instant::now(), &mut self.changes);
            self.apply_changes(feed);
            done = done.and_then(|()| feed.flush(&mut self.complaints));
        }
        for (to, answer) in self.answers.drain(..) {
            if done.is_ok() {
                // If it is lost, the NAS asks again.
                self.socket.send_to(&answer, to).ok();
            } else {
                self.unanswered += 1;
            }
        }
    }

    fn apply_changes(&mut self, feed: &mut Feed) {
        for change in self.changes.drain(..) {
            feed.apply(change, &mut self.complaints);
        }
    }

    fn status(&self) -> String {
        let Self { requests, unanswered, complaints, .. } = self;
        let unanswered =
            if *unanswered == 0 { String::new() } else { format!(", {unanswered} not answered") };
        let sessions = self.sessions.len();
        format!("{sessions} sessions, {requests} requests{unanswered}{}", complaints.summary())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::packet::request, *};

    const START: (u8, &[u8]) = (40, &[0, 0, 0, 1]);
    const OFF: (u8, &[u8]) = (40, &[0, 0, 0, 8]);
    const NAS: (u8, &[u8]) = (32, b"bng1");

    fn server(secrets: &str) -> Server {
        let secrets = Secrets::parse(secrets.as_bytes()).unwrap();
        Server::bind("127.0.0.1:0".parse().unwrap(), secrets, LabelBy::UserName, None).unwrap()
    }

    fn start(identifier: u8, user: &[u8], secret: &[u8]) -> Vec<u8> {
        let address: (u8, &[u8]) = (8, &[100, 64, 0, 1]);
        request(identifier, &[START, NAS, (44, b"1"), (1, user), address], secret)
    }

    #[test]
    fn a_request_that_is_sent_again_from_another_port_changes_nothing() {
        let mut server = server("secret\n");
        let (alice, off) = (start(1, b"alice", b"secret"), request(2, &[OFF, NAS], b"secret"));
        server.take(&alice, "192.0.2.2:1000".parse().unwrap());
        server.take(&off, "192.0.2.2:1000".parse().unwrap());
        server.take(&alice, "192.0.2.2:2000".parse().unwrap());
        server.take(&alice, "[::ffff:192.0.2.2]:3000".parse().unwrap());
        assert_eq!((server.sessions.len(), server.requests), (0, 4));
    }

    #[test]
    fn a_nas_is_that_of_its_secret() {
        let mut server = server("192.0.2.2 two\n192.0.2.3 three\n");
        server.take(&start(1, b"alice", b"two"), "192.0.2.2:1000".parse().unwrap());
        server.take(&request(2, &[OFF, NAS], b"three"), "192.0.2.3:1000".parse().unwrap());
        assert_eq!((server.sessions.len(), server.requests), (1, 2));
        server.take(&request(2, &[OFF, NAS], b"two"), "192.0.2.2:1000".parse().unwrap());
        assert_eq!((server.sessions.len(), server.requests), (0, 3));
    }
}
