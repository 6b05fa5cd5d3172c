//! Replaces a queue under traffic, again and again, while pping follows packets through it.
//!
//! The queue has an interface of its own: pping counts the packets that a queue drops, and the kernel does not.

use std::{
    net::{Ipv4Addr, UdpSocket},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use anyhow::Result;
use pping_lab::{
    Namespace,
    veth::{End, Offloads, connect},
};

use super::{findings::Findings, load::rest, metrics::Page};

/// The interface with the queue.
pub(super) const NAME: &str = "queue0";
const OF_QUEUE: [(&str, &str); 1] = [("interface", NAME)];

/// The queues, one after the other. The token buckets hold at most a tenth of a second.
const QUEUES: [&str; 5] = [
    "tbf rate 2mbit burst 3000 limit 25000",
    "pfifo limit 20",
    "tbf rate 1mbit burst 2000 limit 9000",
    "htb",
    "bfifo limit 9000",
];

/// Longer than any packet waits in the queue, even on a busy machine, s.
const LONGEST: f64 = 1.0;

/// How many packets of a hundred may have an unseen end: see docs/residence.md.
const UNSEEN: u64 = 2;

/// The router with the queue, and the sink behind it.
pub(super) struct Queues<'a> {
    router: &'a Namespace,
    _sink: Namespace,
    pub(super) replaced: AtomicU64,
}

/// What a page of metrics says about the queue, in packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Followed {
    pub(super) all: u64,
    pub(super) timed: u64,
    pub(super) lost: u64,
    late: u64,
}

impl<'a> Queues<'a> {
    /// Makes a cable that leaves the router through the queue.
    pub(super) fn new(router: &'a Namespace) -> Result<Self> {
        let sink = Namespace::new("sink")?;
        let ends = [End::new(router, NAME), End::new(&sink, NAME)];
        connect(ends[0], ends[1], Offloads::On)?;
        for (end, host) in ends.into_iter().zip(1..) {
            end.add_address(Ipv4Addr::new(10, 13, 0, host), 24)?;
        }
        Ok(Self { router, _sink: sink, replaced: AtomicU64::new(0) })
    }

    /// Sends packets, and replaces the queue, until the soak is over.
    pub(super) fn run(&self, findings: &Findings) -> Result<()> {
        thread::scope(|scope| {
            let sender = scope.spawn(|| self.send(findings));
            for queue in QUEUES.iter().cycle() {
                if findings.is_over() {
                    break;
                }
                let mut tc = self.router.command("tc");
                tc.args(["qdisc", "replace", "dev", NAME, "root"]).args(queue.split(' '));
                pping_lab::run(&mut tc)?;
                self.replaced.fetch_add(1, Relaxed);
                rest(findings, Duration::from_millis(300));
            }
            sender.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        })
    }

    /// Sends packets that look alike, more than the token buckets let through.
    fn send(&self, findings: &Findings) -> Result<()> {
        let socket = self.router.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        while !findings.is_over() {
            // A full queue or a missing receiver loses the packet, as expected.
            socket.send_to(&[7; 400], (Ipv4Addr::new(10, 13, 0, 2), 9)).ok();
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Followed {
    /// Reads a page of metrics.
    pub(super) fn read(page: &Page) -> Self {
        let sum = |name: &str| page.sum(name, &OF_QUEUE);
        let bounds = page.values("pping_queue_seconds_bucket", "le");
        let bounds = bounds.iter().filter_map(|bound| Some((bound, bound.parse::<f64>().ok()?)));
        let bound =
            bounds.filter(|(_, bound)| *bound >= LONGEST).min_by(|(_, one), (_, other)| one.total_cmp(other));
        let timed = sum("pping_queue_seconds_count");
        let early = bound
            .map_or(0, |(bound, _)| page.sum("pping_queue_seconds_bucket", &[OF_QUEUE[0], ("le", bound)]));
        Self {
            all: sum("pping_queue_followed_packets_total"),
            timed,
            lost: sum("pping_queue_lost_packets_total"),
            late: timed.saturating_sub(early),
        }
    }

    /// Notes impossible times, and packets whose end was not seen. All packets must have left the queue by then.
    pub(super) fn judge(&self, findings: &Findings) {
        let Self { all, timed, lost, late } = self;
        if *timed == 0 {
            findings.note("no packet was timed in a queue");
        }
        if *late > 0 {
            findings.note(format!("{late} packets waited for more than {LONGEST} s in {NAME}"));
        }
        let open = all.saturating_sub(timed + lost);
        if open * 100 > all * UNSEEN || timed + lost > *all {
            findings.note(format!("of {all} packets that were followed, {timed} were timed and {lost} lost"));
        }
    }
}
