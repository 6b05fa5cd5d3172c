//! Round-trip times, to a tenth of a millisecond.

mod disturbed;
mod layers;

use std::{net::IpAddr, time::Duration};

use pping_lab::{Namespace, Topology, run, traffic::Pace};

use super::{
    monitor::{interrupt, ok, watch},
    net::{FAMILIES, Family, Net},
    records::{Records, Sample},
};

const DELAYS: [Duration; 3] =
    [Duration::from_millis(5), Duration::from_millis(20), Duration::from_millis(100)];

/// What a value may be off: the hosts take some of that to answer.
const EXACT: Duration = Duration::from_micros(100);

/// Between two segments; long enough for each to have a timestamp of its own.
const PAUSE: Duration = Duration::from_millis(10);
const CONVERSATION: Pace = Pace { chunks: 40, bytes: 100, pause: PAUSE };
const PINGS: usize = 20;

/// Those of the server: the way there and back, as seen from the router.
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

#[track_caller]
fn assert_exact(samples: &[&Sample], expected: Duration) {
    for sample in samples {
        assert!(sample.rtt().abs_diff(expected) <= EXACT, "not {expected:?}: {sample:?}");
    }
}

fn tcp_is_exact(ingress: &str) {
    let net = Net::new();
    for family in FAMILIES {
        for delay in DELAYS {
            net.delay(delay);
            let pping = watch(&net.router, Topology::WAN, &format!("--rate-limit 0 --ingress {ingress}"));
            net.converse(family, CONVERSATION);
            let samples = Records::parse(&interrupt(pping)).samples;
            let samples = to_server(&samples, family);
            // Each segment has an answer, and the handshake as well; some share a timestamp.
            assert!(samples.len() * 2 > CONVERSATION.chunks as usize, "{} samples", samples.len());
            assert!(samples.iter().all(|sample| sample.method == "tcp-ts"));
            assert_exact(&samples, delay);
        }
    }
}

#[test]
fn tcp_is_exact_at_tc() {
    tcp_is_exact("tc");
}

#[test]
fn tcp_is_exact_at_xdp() {
    tcp_is_exact("xdp");
}

/// Pings, and returns what ping says of each reply that came, in order.
fn pings(from: &Namespace, to: IpAddr, count: usize) -> Vec<Duration> {
    let mut ping = from.command("ping");
    ping.args(["-n", "-i", "0.02", "-W", "2", "-c", &count.to_string()]).arg(to.to_string());
    let rtt = |line: &str| {
        let (_, time) = line.split_once(" time=")?;
        let milliseconds: f64 = time.strip_suffix(" ms")?.parse().unwrap();
        Some(Duration::from_secs_f64(milliseconds / 1e3))
    };
    ok(run(&mut ping)).lines().filter_map(rtt).collect()
}

fn ping_is_exact(ingress: &str) {
    let net = Net::new();
    for family in FAMILIES {
        for delay in DELAYS {
            net.delay(delay);
            let pping = watch(&net.router, Topology::WAN, &format!("--rate-limit 0 --ingress {ingress}"));
            let said = pings(&net.client, family.server(), PINGS);
            let samples = Records::parse(&interrupt(pping)).samples;
            let samples = to_server(&samples, family);
            assert_eq!((samples.len(), said.len()), (PINGS, PINGS));
            assert_exact(&samples, delay);
            for (sample, said) in samples.iter().zip(said) {
                assert!(
                    sample.rtt() <= said && said - sample.rtt() <= EXACT,
                    "ping says {said:?}: {sample:?}"
                );
            }
        }
    }
}

#[test]
fn ping_is_exact_at_tc() {
    ping_is_exact("tc");
}

#[test]
fn ping_is_exact_at_xdp() {
    ping_is_exact("xdp");
}
