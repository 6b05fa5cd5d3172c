//! ping, and its RTT of each reply.

use std::{net::IpAddr, time::Duration};

use pping_lab::Namespace;

use super::{ok, records::Sample, statistics::median, watch::Seen};

/// How far the medians of ping and pping may differ: the paths differ by one host and one short cable, and ping takes
/// time to wake up.
const SAME_RTT: Duration = Duration::from_micros(500);
/// The number of pings.
pub(super) const COUNT: usize = 50;
/// How many of them may be in transit at once.
const IN_TRANSIT: usize = 5;

/// A reply as ping prints it.
pub(super) struct Reply {
    sequence: usize,
    /// In ns since 1970.
    at: u64,
    /// In ns.
    pub(super) rtt: u64,
}

/// Pings, and returns what ping reports. Every ping must be answered except the last few: for those ping waits only
/// twice the longest RTT so far.
pub(super) fn ping(from: &Namespace, to: IpAddr) -> Vec<Reply> {
    let mut command = from.command("ping");
    let output = ok(pping_lab::run(
        command.args(["-n", "-D", "-i", "0.01", "-W", "5", "-c", &COUNT.to_string()]).arg(to.to_string()),
    ));
    let mut replies: Vec<_> = output.lines().filter_map(reply).collect();
    replies.sort_unstable_by_key(|reply| reply.sequence);
    let is_answered = replies.iter().map(|reply| reply.sequence).eq(1..=replies.len());
    assert!(is_answered && replies.len() + IN_TRANSIT >= COUNT, "{output}");
    replies
}

/// Parses a line like `[1700000000.123456] 64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=20.4 ms`.
fn reply(line: &str) -> Option<Reply> {
    let (at, line) = line.strip_prefix('[')?.split_once(']')?;
    let (_, line) = line.split_once(" icmp_seq=")?;
    let (sequence, _) = line.split_once(' ')?;
    let (_, time) = line.split_once(" time=")?;
    let milliseconds: f64 = time.strip_suffix(" ms")?.parse().unwrap();
    Some(Reply {
        sequence: sequence.parse().unwrap(),
        at: (at.parse::<f64>().unwrap() * 1e9) as u64,
        rtt: (milliseconds * 1e6) as u64,
    })
}

/// Asserts that the samples of one ping equal ping's own RTTs, reply by reply, except for excused ones. `is_own`
/// selects the samples.
#[track_caller]
pub(super) fn assert_ping_agrees(replies: &[Reply], seen: &Seen, is_own: impl Fn(&Sample) -> bool) {
    let samples: Vec<_> = seen.records.samples.iter().filter(|sample| is_own(sample)).collect();
    let enough = replies.len().saturating_sub(seen.excused)..=COUNT;
    assert!(enough.contains(&samples.len()), "not {enough:?} samples: {samples:#?}");
    let differences = samples.into_iter().map(|sample| reply_of(sample, replies).rtt.abs_diff(sample.rtt));
    let difference = Duration::from_nanos(median(differences));
    eprintln!("ping differs by {difference:?} in the median");
    assert!(difference <= SAME_RTT, "ping and pping differ by {difference:?} in the median");
}

/// Returns the reply that arrived when the sample was taken.
fn reply_of<'a>(sample: &Sample, replies: &'a [Reply]) -> &'a Reply {
    replies.iter().min_by_key(|reply| reply.at.abs_diff(sample.timestamp)).unwrap()
}
