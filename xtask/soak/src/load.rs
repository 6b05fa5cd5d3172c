//! Constant traffic between client and server, some of which is counted.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{
    Topology,
    traffic::{self, Behaviour, Pace, Server},
};

use super::findings::Findings;

/// A web page and its parts.
const SHORT: Pace = Pace { chunks: 6, bytes: 700, pause: Duration::from_millis(15) };
/// A terminal session, with keystrokes for the whole time.
const LONG: Pace = Pace { chunks: u32::MAX, bytes: 120, pause: Duration::from_millis(50) };
/// A bulk transfer.
const BULK: Pace = Pace { chunks: 1500, bytes: 1400, pause: Duration::from_micros(500) };
/// How many conversations a server has before another one replaces it. A server keeps a handle of each.
const CONVERSATIONS: usize = 40;
const PINGS: [&str; 5] = ["-q", "-i", "0.1", "-c", "30"];

/// What was sent.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) conversations: AtomicU64,
    pub(super) datagrams: AtomicU64,
    /// Echo requests, and replies that came back to the client.
    pub(super) pings: AtomicU64,
    pub(super) replies: AtomicU64,
}

impl Load {
    /// Starts all traffic. It ends when the soak is over.
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        topology: &'scope Topology,
        findings: &'scope Findings,
    ) {
        let go = move |what: &'static str, work: Box<dyn Fn() -> Result<()> + Send + 'scope>| {
            scope.spawn(move || {
                while !findings.is_over() {
                    // An error is expected if the end of the soak breaks off the work.
                    if let Err(error) = work()
                        && !findings.is_over()
                    {
                        findings.note(format!("{what}: {error:#}"));
                        thread::sleep(Duration::from_secs(1));
                    }
                }
            });
        };
        for address in [IpAddr::from(Topology::SERVER_IPV4), Topology::SERVER_IPV6.into()] {
            go("short conversations", Box::new(move || self.short(topology, address, findings)));
            go("a long conversation", Box::new(move || self.long(topology, address, findings)));
            go("ping", Box::new(move || self.ping(topology, address)));
            go("UDP", Box::new(move || self.udp(topology, address, findings)));
        }
        go("a transfer", Box::new(move || self.bulk(topology, findings)));
    }

    fn short(&self, topology: &Topology, address: IpAddr, findings: &Findings) -> Result<()> {
        let server = Server::start(topology.server(), 0, Behaviour::Echo)?;
        for _ in 0..CONVERSATIONS {
            traffic::echo(topology.client(), (address, server.port()), SHORT)?;
            self.conversations.fetch_add(1, Relaxed);
            if findings.is_over() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn bulk(&self, topology: &Topology, findings: &Findings) -> Result<()> {
        let server = Server::start(topology.server(), 0, Behaviour::Sink)?;
        traffic::send(topology.client(), (Topology::SERVER_IPV4, server.port()), BULK)?;
        self.conversations.fetch_add(1, Relaxed);
        rest(findings, Duration::from_secs(5));
        Ok(())
    }

    /// Talks until the soak is over. The conversation ends with its server.
    fn long(&self, topology: &Topology, address: IpAddr, findings: &Findings) -> Result<()> {
        let server = Server::start(topology.server(), 0, Behaviour::Echo)?;
        let to = SocketAddr::from((address, server.port()));
        thread::scope(|scope| {
            let conversation = scope.spawn(|| traffic::echo(topology.client(), to, LONG));
            while !findings.is_over() && !conversation.is_finished() {
                thread::sleep(Duration::from_millis(100));
            }
            drop(server);
            let talked = conversation.join();
            self.conversations.fetch_add(1, Relaxed);
            match talked {
                Ok(talked) => talked.map(drop).context("it broke off"),
                Err(payload) => std::panic::resume_unwind(payload),
            }
        })
    }

    fn ping(&self, topology: &Topology, address: IpAddr) -> Result<()> {
        let mut ping = topology.client().command("ping");
        let output = pping_lab::run(ping.args(PINGS).arg(address.to_string()))?;
        let (sent, received) = summary(&output).with_context(|| format!("ping said {output:?}"))?;
        self.pings.fetch_add(sent, Relaxed);
        self.replies.fetch_add(received, Relaxed);
        Ok(())
    }

    fn udp(&self, topology: &Topology, address: IpAddr, findings: &Findings) -> Result<()> {
        let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let server = topology.server().enter(|| UdpSocket::bind((any, 0)))??;
        let client = topology.client().enter(|| UdpSocket::bind((any, 0)))??;
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        }
        client.connect((address, server.local_addr()?.port()))?;
        let mut buffer = [0; 1500];
        for number in 0..200_u32 {
            client.send(&vec![7; 40 + number as usize * 5])?;
            let (length, from) = server.recv_from(&mut buffer)?;
            server.send_to(&buffer[..length], from)?;
            let back = client.recv(&mut buffer)?;
            ensure!(back == length, "{back} bytes came back of {length}");
            self.datagrams.fetch_add(2, Relaxed);
            if findings.is_over() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Returns how many requests ping sent, and how many replies it got.
pub(super) fn summary(output: &str) -> Option<(u64, u64)> {
    let line = output.lines().find(|line| line.contains(" packets transmitted"))?;
    let (sent, rest) = line.split_once(" packets transmitted, ")?;
    // A duplicate reply counts as another reply.
    let received = rest.split_once(" received")?.0;
    let twice = rest.split_once('+').and_then(|(_, more)| more.split_once(" duplicates")?.0.parse().ok());
    Some((sent.trim().parse().ok()?, received.parse::<u64>().ok()? + twice.unwrap_or(0)))
}

/// Sleeps, but not beyond the end of the soak.
pub(super) fn rest(findings: &Findings, time: Duration) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until && !findings.is_over() {
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_as_ping_does() {
        let output = "PING x\n\n--- x ping statistics ---\n30 packets transmitted, 29 received, 3% packet loss, time 1ms";
        assert_eq!(summary(output), Some((30, 29)));
        let twice = "30 packets transmitted, 30 received, +2 duplicates, 0% packet loss, time 1ms";
        assert_eq!(summary(twice), Some((30, 32)));
        assert_eq!(summary("ping: unknown host"), None);
    }
}
