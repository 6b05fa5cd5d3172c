//! A queue that is replaced under traffic, again and again, while packets are followed through it.
//!
//! Its interface is one of its own, since what a queue drops was counted by pping and not by the kernel.

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

/// The interface.
pub(super) const NAME: &str = "queue0";
const OF_QUEUE: [(&str, &str); 1] = [("interface", NAME)];

/// The queues, one after the other. The buckets hold at most a tenth of a second.
const QUEUES: [&str; 5] = [
    "tbf rate 2mbit burst 3000 limit 25000",
    "pfifo limit 20",
    "tbf rate 1mbit burst 2000 limit 9000",
    "htb",
    "bfifo limit 9000",
];

/// Longer than any packet waits there, also where the machine is busy, s.
const LONGEST: f64 = 1.0;

/// Packets of which the end may be unseen, of a hundred: see docs/residence.md.
const UNSEEN: u64 = 2;

/// The queue, and who sends through it.
pub(super) struct Queues<'a> {
    router: &'a Namespace,
    _sink: Namespace,
    pub(super) replaced: AtomicU64,
}

/// What a page says of it, packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Followed {
    pub(super) all: u64,
    pub(super) timed: u64,
    pub(super) lost: u64,
    late: u64,
}

impl<'a> Queues<'a> {
    /// A cable that leaves the router by the queue.
    pub(super) fn new(router: &'a Namespace) -> Result<Self> {
        let sink = Namespace::new("sink")?;
        let ends = [End::new(router, NAME), End::new(&sink, NAME)];
        connect(ends[0], ends[1], Offloads::On)?;
        for (end, host) in ends.into_iter().zip(1..) {
            end.add_address(Ipv4Addr::new(10, 13, 0, host), 24)?;
        }
        Ok(Self { router, _sink: sink, replaced: AtomicU64::new(0) })
    }

    /// Sends, and replaces the queue, until it is over.
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

    /// Packets that look alike, more than the buckets let through.
    fn send(&self, findings: &Findings) -> Result<()> {
        let socket = self.router.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        while !findings.is_over() {
            // A full queue, or no receiver: the packet is lost, as any other.
            socket.send_to(&[7; 400], (Ipv4Addr::new(10, 13, 0, 2), 9)).ok();
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Followed {
    /// Reads it.
    pub(super) fn of(page: &Page) -> Self {
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

    /// Notes times that cannot be, and packets whose end was not seen, once all have left.
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
