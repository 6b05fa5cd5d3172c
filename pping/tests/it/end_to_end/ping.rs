//! ping, and what it says of each reply.

use std::{net::IpAddr, time::Duration};

use pping_lab::Namespace;

use super::{ok, records::Sample, statistics::median};

/// How far ping and pping may differ in the median: between them are one host and one short cable.
const SAME_RTT: Duration = Duration::from_micros(200);
const COUNT: usize = 50;

/// Pings, and returns the RTTs that ping reports, in ns. Every ping must be answered.
pub(super) fn ping(from: &Namespace, to: IpAddr) -> Vec<u64> {
    let mut command = from.command("ping");
    let output = ok(pping_lab::run(
        command.args(["-n", "-D", "-i", "0.01", "-W", "5", "-c", &COUNT.to_string()]).arg(to.to_string()),
    ));
    let rtts: Vec<_> = output.lines().filter_map(rtt).collect();
    assert_eq!(rtts.len(), COUNT, "{output}");
    rtts
}

/// The time in a line like `[1700000000.1] 64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=20.4 ms`.
fn rtt(line: &str) -> Option<u64> {
    let (_, time) = line.split_once(" time=")?;
    let milliseconds: f64 = time.strip_suffix(" ms")?.parse().unwrap();
    Some((milliseconds * 1e6) as u64)
}

/// Reply by reply, the samples of one ping are what it said itself; `is_own` tells them from others.
#[track_caller]
pub(super) fn assert_ping_agrees(reported: &[u64], samples: &[Sample], is_own: impl Fn(&Sample) -> bool) {
    let mut samples: Vec<_> = samples.iter().filter(|sample| is_own(sample)).collect();
    assert_eq!(samples.len(), reported.len(), "ping says {reported:?}, pping {samples:#?}");
    samples.sort_unstable_by_key(|sample| sample.recorded_at());
    let differences = reported.iter().zip(samples).map(|(ping, sample)| ping.abs_diff(sample.rtt));
    let difference = Duration::from_nanos(median(differences));
    eprintln!("ping differs by {difference:?} in the median");
    assert!(difference <= SAME_RTT, "ping and pping differ by {difference:?} in the median");
}
