//! The hosts in the pictures: branch offices behind the router's `wan0`, one of which has a queue that fills now and then.

use std::{
    f64::consts::TAU,
    net::{Ipv4Addr, SocketAddr},
    thread::Scope,
    time::{Duration, Instant},
};

use anyhow::Result;
use pping_lab::{
    Fate, Leg, Namespace, Process, Topology,
    traffic::{self, Pace, Server},
};

/// An office.
#[derive(Clone, Copy)]
struct Site {
    name: &'static str,
    /// The last byte of its address.
    host: u8,
    /// Its RTT on a quiet line, ms.
    rtt: f64,
    /// How much its queue adds at most, ms.
    queue: f64,
    /// One in this many frames is lost; 0 means none.
    loss: u64,
}

const SITES: [Site; 6] = [
    Site { name: "lund", host: 10, rtt: 4.0, queue: 1.0, loss: 0 },
    Site { name: "oslo", host: 11, rtt: 11.0, queue: 2.0, loss: 0 },
    Site { name: "berlin", host: 12, rtt: 24.0, queue: 180.0, loss: 90 },
    Site { name: "dublin", host: 13, rtt: 38.0, queue: 6.0, loss: 0 },
    Site { name: "new-york", host: 14, rtt: 92.0, queue: 9.0, loss: 400 },
    Site { name: "tokyo", host: 15, rtt: 242.0, queue: 14.0, loss: 0 },
];

/// How often a queue fills and empties, s.
const WAVE: f64 = 150.0;

/// Where the last byte of an IPv4 destination is in a frame.
const DESTINATION: usize = 14 + 19;

const CONVERSATION: Pace = Pace { chunks: u32::MAX, bytes: 300, pause: Duration::from_millis(50) };

/// Returns a groups file with all sites.
pub(super) fn groups() -> String {
    let line = |site: &Site| format!("{}/32,{}\n", site.address(), site.name);
    let head = "prefix,group\n10.11.1.0/24,head-office\n".to_owned();
    std::iter::once(head).chain(SITES.iter().map(line)).collect()
}

/// Gives the server the addresses of all sites, and makes the wire hold frames to each site as its line would.
pub(super) fn build(topology: &Topology) -> Result<()> {
    for site in &SITES {
        let address = format!("{}/24", site.address());
        pping_lab::run(topology.server().command("ip").args([
            "address",
            "add",
            &address,
            "dev",
            Topology::ETH,
        ]))?;
    }
    let begun = Instant::now();
    let mut lines = SITES.map(|site| Line { site, last: begun, frames: 0 });
    topology.wire().set_fate(Leg::Forward, move |frame| {
        let line = frame.get(DESTINATION).and_then(|host| lines.iter_mut().find(|it| it.site.host == *host));
        line.map_or(Fate::Pass, |line| line.fate(begun))
    });
    Ok(())
}

/// Starts pings to all sites. They end when the result is dropped.
pub(super) fn pings(client: &Namespace) -> Result<Vec<Process>> {
    let ping = |site: &Site| {
        let mut ping = client.command("ping");
        ping.args(["-q", "-i0.2", &site.address().to_string()]);
        Ok(Process::spawn(ping)?)
    };
    SITES.iter().map(ping).collect()
}

/// Talks to all sites over TCP until the server ends.
pub(super) fn converse<'scope>(scope: &'scope Scope<'scope, '_>, client: &'scope Namespace, server: &Server) {
    for site in &SITES {
        let address = SocketAddr::from((site.address(), server.port()));
        // Once the pictures are taken the server ends. The error that ends a conversation then is expected.
        scope.spawn(move || traffic::echo(client, address, CONVERSATION).ok());
    }
}

/// The line to a site.
struct Line {
    site: Site,
    /// When its last frame leaves it.
    last: Instant,
    frames: u64,
}

impl Line {
    fn fate(&mut self, begun: Instant) -> Fate {
        self.frames += 1;
        if self.site.loss > 0 && self.frames.is_multiple_of(self.site.loss) {
            return Fate::Drop;
        }
        let now = Instant::now();
        let phase = (now - begun).as_secs_f64() / WAVE + f64::from(self.site.host) / 7.0;
        // The queue is mostly empty, and full at times.
        let filled = (phase * TAU).sin().max(0.0).powi(3);
        // Other frames leave a different queue each time.
        let noise = (self.frames.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24);
        let queued = self.site.queue * (0.8 * filled + 0.2 * noise * noise * noise);
        let due = now + Duration::from_secs_f64((self.site.rtt + queued) / 1e3);
        // Frames do not overtake each other.
        self.last = self.last.max(due);
        Fate::Hold(self.last - now)
    }
}

impl Site {
    fn address(&self) -> Ipv4Addr {
        let [a, b, c, _] = Topology::SERVER_IPV4.octets();
        Ipv4Addr::new(a, b, c, self.host)
    }
}
