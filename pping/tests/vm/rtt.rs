//! Round-trip times, to a tenth of a millisecond.

mod disturbed;
mod layers;

use std::{net::IpAddr, time::Duration};

use pping_lab::{Namespace, Topology, run, traffic::Pace};

use super::{
    monitor::ok,
    net::{FAMILIES, Family, Net},
    records::Sample,
    watched::Watched,
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
        let all = || samples.iter().map(|it| (it.timestamp % 10_000_000_000, it.rtt())).collect::<Vec<_>>();
        assert!(sample.rtt().abs_diff(expected) <= EXACT, "not {expected:?}: {sample:?} of {:?}", all());
    }
}

/// What ping says of a reply: three digits of the time.
#[derive(Clone, Copy, Debug)]
struct Said {
    rtt: Duration,
    /// What the last of the digits counts.
    unit: Duration,
}

impl Said {
    /// Reads a line like `64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=20.4 ms`.
    fn read(line: &str) -> Option<Self> {
        let (_, time) = line.split_once(" time=")?;
        let digits = time.strip_suffix(" ms")?;
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as u32);
        let unit = Duration::from_millis(1) / 10_u32.pow(decimals);
        Some(Self { rtt: Duration::from_secs_f64(digits.parse::<f64>().unwrap() / 1e3), unit })
    }

    /// Ping sees all that pping sees, and the way between the hosts.
    #[track_caller]
    fn assert_agrees(self, sample: &Sample) {
        let Self { rtt, unit } = self;
        assert!(sample.rtt() <= rtt + unit && rtt <= sample.rtt() + EXACT + unit, "{self:?}: {sample:?}");
    }
}

/// Pings, and returns what ping says of each reply that came, in order.
fn pings(from: &Namespace, to: IpAddr, count: usize) -> Vec<Said> {
    let mut ping = from.command("ping");
    ping.args(["-n", "-i", "0.02", "-W", "2", "-c", &count.to_string()]).arg(to.to_string());
    ok(run(&mut ping)).lines().filter_map(Said::read).collect()
}

fn is_exact(ingress: &str) {
    let net = Net::new();
    let mut watched = Watched::start(&net.router, Topology::WAN, &format!("--ingress {ingress}"));
    for family in FAMILIES {
        for delay in DELAYS {
            net.delay(delay);
            net.converse(family, CONVERSATION);
            let samples = watched.take();
            let samples = to_server(&samples, family);
            // Each segment has an answer, and the handshake as well; some share a timestamp.
            assert!(samples.len() * 2 > CONVERSATION.chunks as usize, "{} samples", samples.len());
            assert!(samples.iter().all(|sample| sample.method == "tcp-ts"));
            assert_exact(&samples, delay);

            let said = pings(&net.client, family.server(), PINGS);
            let samples = watched.take();
            let samples = to_server(&samples, family);
            assert_eq!((samples.len(), said.len()), (PINGS, PINGS));
            assert_exact(&samples, delay);
            for (sample, said) in samples.iter().zip(said) {
                said.assert_agrees(sample);
            }
        }
    }
    watched.finish();
}

#[test]
fn is_exact_at_tc() {
    is_exact("tc");
}

#[test]
fn is_exact_at_xdp() {
    is_exact("xdp");
}
