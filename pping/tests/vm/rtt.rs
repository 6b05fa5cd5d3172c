//! Round-trip times are exact to a tenth of a millisecond.

mod disturbed;
mod layers;
mod queries;
mod trunk;

use std::{net::IpAddr, time::Duration};

use pping_lab::{
    Namespace, Topology, run,
    traffic::{Pace, TcpInfo},
};

use super::{
    monitor::ok,
    net::{FAMILIES, Family, Net},
    records::Sample,
    resolver::{Resolver, ask},
    watched::Watched,
};

const DELAYS: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(100)];

/// The tolerance of a value: the hosts take part of it to answer.
const EXACT: Duration = Duration::from_micros(100);

/// The pause between two segments, long enough for each segment to have its own timestamp.
const PAUSE: Duration = Duration::from_millis(10);
const CONVERSATION: Pace = Pace { chunks: 40, bytes: 100, pause: PAUSE };
const PINGS: usize = 20;
const QUERIES: u16 = 20;

/// Returns the samples of the server's replies: round trips from the router to the server.
fn to_server(samples: &[Sample], family: Family) -> Vec<&Sample> {
    let samples: Vec<_> = samples.iter().filter(|sample| !sample.match_on_egress).collect();
    for sample in &samples {
        assert_eq!(
            (sample.tuple.src_ip, sample.tuple.dest_ip),
            (family.server(), family.client()),
            "{sample:?}"
        );
    }
    samples
}

/// Asserts that values equal netem's delay.
#[track_caller]
fn assert_exact(samples: &[&Sample], expected: Duration) {
    assert_each_exact(&samples.iter().map(|&sample| (sample, expected)).collect::<Vec<_>>());
}

/// Asserts that values equal the network's RTTs and that none is lower. One in twenty may be higher, because netem's
/// timer is sometimes late; ping then shows whether it was. Handshakes may wait while the hosts create sockets.
#[track_caller]
fn assert_each_exact(all: &[(&Sample, Duration)]) {
    let late: Vec<_> = all
        .iter()
        .filter(|(sample, expected)| sample.method != "tcp-handshake" && sample.rtt() > *expected + EXACT)
        .collect();
    for pair in all {
        assert!(pair.0.rtt() + EXACT >= pair.1, "faster than the network: {pair:?} of {all:?}");
    }
    assert!(late.len() * 20 <= all.len().max(20), "late: {late:?} of {all:?}");
}

/// Asserts that a conversation was timed by its handshake, and from then on only by `method`.
#[track_caller]
fn assert_timed_by(samples: &[&Sample], method: &str) {
    let (handshakes, others): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.method == "tcp-handshake");
    assert_eq!(handshakes.len(), 1, "{handshakes:?}");
    assert!(others.iter().all(|sample| sample.method == method), "not {method}: {others:?}");
}

/// Asserts that the minimum RTT of the sender's kernel equals pping's within `by`. The kernel's also includes the path
/// to the router.
#[track_caller]
fn assert_minimum_agrees(samples: &[&Sample], info: TcpInfo, by: Duration) {
    let minimum = samples.iter().map(|sample| sample.rtt()).min().unwrap_or_default();
    assert!(minimum.abs_diff(info.min_rtt) <= by, "{minimum:?}, and the kernel {info:?}");
}

/// The time of a reply as ping prints it, with three digits.
#[derive(Clone, Copy, Debug)]
struct PingRtt {
    rtt: Duration,
    /// The unit of the last digit.
    unit: Duration,
}

impl PingRtt {
    /// Parses a line like `64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=20.4 ms`.
    fn read(line: &str) -> Option<Self> {
        let (_, time) = line.split_once(" time=")?;
        let digits = time.strip_suffix(" ms")?;
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as u32);
        let unit = Duration::from_millis(1) / 10_u32.pow(decimals);
        Some(Self { rtt: Duration::from_secs_f64(digits.parse::<f64>().unwrap() / 1e3), unit })
    }
}

/// Asserts that ping agrees. Its values also include the path to the router, and sometimes other work of its host
/// between reading the clock and sending the packet.
#[track_caller]
fn assert_ping_agrees(samples: &[&Sample], by_ping: &[PingRtt]) {
    assert_eq!(samples.len(), by_ping.len());
    let pairs = || samples.iter().zip(by_ping);
    for (sample, ping) in pairs() {
        assert!(sample.rtt() <= ping.rtt + ping.unit, "more than ping: {ping:?}: {sample:?}");
    }
    let apart: Vec<_> =
        pairs().filter(|(sample, ping)| ping.rtt > sample.rtt() + EXACT + ping.unit).collect();
    assert!(apart.len() * 10 <= by_ping.len(), "{apart:?}");
}

/// Pings, and returns ping's times of the replies that arrived, in order.
fn pings(from: &Namespace, to: IpAddr, count: usize) -> Vec<PingRtt> {
    let mut ping = from.command("ping");
    ping.args(["-n", "-i", "0.02", "-W", "2", "-c", &count.to_string()]).arg(to.to_string());
    ok(run(&mut ping)).lines().filter_map(PingRtt::read).collect()
}

/// Asserts that all values are the sum of netem's delay and the resolver's time.
#[track_caller]
fn assert_answered(samples: &[&Sample], delay: Duration, resolver: &Resolver) {
    let took = resolver.took();
    assert!(took.len() >= samples.len(), "{took:?}: {samples:?}");
    assert_each_exact(
        &samples.iter().zip(took).map(|(&sample, took)| (sample, delay + took)).collect::<Vec<_>>(),
    );
}

/// The methods of conversations, and whether the conversations have timestamps.
const CONVERSATIONS: [(&str, bool); 2] = [("tcp-ts", true), ("tcp-seq", false)];

fn is_exact(ingress: &str) {
    let net = Net::new();
    let resolver = Resolver::start(&net);
    for family in FAMILIES {
        // The very first query takes longer.
        ask(&net, family, 0..1);
    }
    resolver.took();
    let mut watched = Watched::start(&net.router, Topology::WAN, &format!("--ingress {ingress}"));
    for family in FAMILIES {
        for delay in DELAYS {
            net.delay(delay);
            for (method, has_timestamps) in CONVERSATIONS {
                net.timestamps(has_timestamps);
                let sent = net.converse(family, CONVERSATION);
                let samples = watched.take();
                let samples = to_server(&samples, family);
                // Each segment is answered. Some segments share a timestamp, and some find no room to be pending.
                assert!(samples.len() * 2 > CONVERSATION.chunks as usize, "{} samples", samples.len());
                assert_timed_by(&samples, method);
                assert_exact(&samples, delay);
                assert_minimum_agrees(&samples, sent.tcp_info, EXACT);
            }

            let said = pings(&net.client, family.server(), PINGS);
            let samples = watched.take();
            let samples = to_server(&samples, family);
            assert_eq!(samples.len(), PINGS);
            assert_exact(&samples, delay);
            assert_ping_agrees(&samples, &said);

            ask(&net, family, 0..QUERIES);
            let samples = watched.take();
            let samples = to_server(&samples, family);
            assert_eq!(samples.len(), usize::from(QUERIES));
            assert!(samples.iter().all(|sample| sample.method == "dns"), "{samples:?}");
            assert_answered(&samples, delay, &resolver);
        }
    }
    watched.finish();
    drop(resolver);
}

#[test]
fn is_exact_at_tc() {
    is_exact("tc");
}

#[test]
fn is_exact_at_xdp() {
    is_exact("xdp");
}
