//! RADIUS sessions that change addresses under traffic, compared with what the reference finds in a capture of the same
//! packets, and with the log of the sessions.

use std::{
    collections::BTreeMap,
    env,
    net::{Ipv4Addr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use md5::{Digest as _, Md5};
use pping_lab::{Echoes, Namespace, Topology, ping_in_turn, run};
use serde_json::Value;

use super::{
    client::Agent,
    radius::{Radius, SECRET, request},
};
use crate::{
    agent::{
        http::{Exposition, scrape},
        monitor::{PATIENCE, interrupt, ok, wait_until},
    },
    end_to_end::{capture::Capture, reference::expected_samples},
};

/// The sessions that a change has to pass, and those of a release (`PPING_EXHAUSTIVE`). This many of them are reported by
/// radclient.
const SESSIONS: usize = 1000;
const EXHAUSTIVE: usize = 5000;
const BY_RADCLIENT: usize = 100;

/// The addresses of a session, one after the other.
const ROUNDS: usize = 4;

/// How long nothing is reported in each round: at least this long, and a millisecond for each session.
const QUIET: Duration = Duration::from_secs(2);

/// The pings that are sent at once, and the pause after their replies.
const PINGS: (usize, Duration) = (40, Duration::ZERO);

/// The requests that wait for answers at a time.
const WINDOW: usize = 64;

/// The clock of records and that of this test may differ by this much, in ns.
const CLOCKS: u64 = 2_000_000;

/// tcpdump and pping may see the same packet this far apart on a busy machine, in ns. An address is pinged far less often.
const SAME_PACKET: u64 = 100_000_000;

/// How long a name may stay after the Stop was sent, in ns.
const LATE: u64 = 1_000_000_000;

/// The time after which a sample is in the metrics, in ns.
const SETTLING: u64 = 3_000_000_000;

/// What hosts have that no session has.
const UNLISTED: &str = "unlisted";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// The address of a number.
fn address(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 12, (number / 200) as u8, (1 + number % 200) as u8)
}

fn user(session: usize) -> String {
    format!("user-{session}")
}

/// When something was reported and when that was answered, ns since 1970.
#[derive(Clone, Copy, Debug)]
struct Reported {
    sent: u64,
    answered: u64,
    /// Whether these are the times of this report, or of many together.
    is_exact: bool,
}

/// From this report on an address has another name.
#[derive(Debug)]
struct Change {
    name: String,
    at: Reported,
}

/// A NAS, which reports sessions one after the other, without waiting for each answer. It is quicker than radclient, and
/// knows the time of each.
struct Nas {
    socket: UdpSocket,
    requests: usize,
}

/// A request on its way.
struct Request {
    packet: Vec<u8>,
    sent: u64,
    answered: Option<u64>,
}

impl Nas {
    fn new(host: &Namespace) -> Self {
        let socket = ok(host.enter(|| UdpSocket::bind("127.0.0.1:0"))).unwrap();
        socket.connect("127.0.0.1:1813").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        Self { socket, requests: 0 }
    }

    /// Reports sessions (`status` is 1 for Start and 2 for Stop), each with its number, and returns when.
    fn report(&mut self, status: u8, sessions: &[(String, String, Ipv4Addr)]) -> Vec<Reported> {
        sessions.chunks(WINDOW).flat_map(|some| self.report_some(status, some)).collect()
    }

    fn report_some(&mut self, status: u8, sessions: &[(String, String, Ipv4Addr)]) -> Vec<Reported> {
        let begin = |(session, user, address): &(String, String, Ipv4Addr)| {
            self.requests += 1;
            let attributes: [(u8, &[u8]); 5] = [
                (40, &[0, 0, 0, status]),
                (32, b"bng2"),
                (44, session.as_bytes()),
                (1, user.as_bytes()),
                (8, &address.octets()),
            ];
            Request { packet: accounting(self.requests as u8, &attributes), sent: now(), answered: None }
        };
        let mut requests: Vec<Request> = sessions.iter().map(begin).collect();
        let deadline = Instant::now() + PATIENCE;
        while requests.iter().any(|request| request.answered.is_none()) {
            assert!(Instant::now() < deadline, "requests are not answered");
            for request in requests.iter_mut().filter(|request| request.answered.is_none()) {
                request.sent = request.sent.min(now());
                self.socket.send(&request.packet).unwrap();
            }
            let mut answer = [0; 100];
            while requests.iter().any(|request| request.answered.is_none()) {
                // What was lost is sent again, and may be answered twice.
                let Ok(length) = self.socket.recv(&mut answer) else { break };
                let is_answered = |request: &&mut Request| is_response(&answer[..length], &request.packet);
                if let Some(request) = requests.iter_mut().find(is_answered) {
                    request.answered.get_or_insert(now());
                }
            }
        }
        let at = |request: &Request| Reported {
            sent: request.sent,
            answered: request.answered.unwrap(),
            is_exact: true,
        };
        requests.iter().map(at).collect()
    }
}

/// An Accounting-Request (RFC 2866, section 4.1).
fn accounting(identifier: u8, attributes: &[(u8, &[u8])]) -> Vec<u8> {
    let mut packet = vec![4, identifier, 0, 0];
    packet.extend([0; 16]);
    for (kind, value) in attributes {
        packet.extend([*kind, value.len() as u8 + 2]);
        packet.extend(*value);
    }
    let length = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    let hash = Md5::new().chain_update(&packet).chain_update(SECRET).finalize();
    packet[4..20].copy_from_slice(&hash);
    packet
}

/// Whether this is the Accounting-Response to a request (RFC 2866, section 4.2).
fn is_response(answer: &[u8], request: &[u8]) -> bool {
    let hash = Md5::new()
        .chain_update(&answer[..4])
        .chain_update(&request[4..20])
        .chain_update(&answer[20..])
        .chain_update(SECRET)
        .finalize();
    answer[0] == 5 && answer[1] == request[1] && answer[4..20] == hash[..]
}

/// All sessions, and what was reported of them.
struct Sessions<'a> {
    agent: &'a Agent,
    radius: &'a Radius,
    nas: Nas,
    count: usize,
    /// Of each address, in order.
    log: BTreeMap<Ipv4Addr, Vec<Change>>,
}

impl Sessions<'_> {
    /// The address of a session in a round: each is another session's in the next one.
    fn address(&self, session: usize, round: usize) -> Ipv4Addr {
        address((session + 7 * round) % self.count)
    }

    /// Reports something of all sessions, and returns when.
    fn report(&mut self, status: &str, round: usize) -> Vec<Reported> {
        let of = |session: usize| (format!("{round}-{session}"), user(session), self.address(session, round));
        let sessions: Vec<_> = (0..self.count).map(of).collect();
        let (some, others) = sessions.split_at(BY_RADCLIENT);
        let requests =
            some.iter().map(|(session, user, address)| request(status, session, user, &address.to_string()));
        let sent = now();
        self.radius.send(self.agent, &requests.collect::<Vec<_>>());
        let mut reported = vec![Reported { sent, answered: now(), is_exact: false }; some.len()];
        reported.extend(self.nas.report(if status == "Start" { 1 } else { 2 }, others));
        reported
    }

    /// Begins all sessions of a round.
    fn start(&mut self, round: usize) {
        for (session, at) in self.report("Start", round).into_iter().enumerate() {
            let address = self.address(session, round);
            self.log.entry(address).or_default().push(Change { name: user(session), at });
        }
    }

    /// Ends all sessions of a round. `is_last` says whether their addresses have no other sessions yet.
    fn stop(&mut self, round: usize, is_last: bool) {
        let reported = self.report("Stop", round);
        for (session, at) in reported.into_iter().enumerate().filter(|_| is_last) {
            let address = self.address(session, round);
            self.log.entry(address).or_default().push(Change { name: UNLISTED.to_owned(), at });
        }
    }

    /// Gives each session one address after the other. Addresses change hands after their Stop, and before it. Returns what
    /// `halfway` says in the middle.
    fn run<T>(&mut self, halfway: impl FnOnce() -> T) -> T {
        let quiet = QUIET.max(Duration::from_millis(self.count as u64));
        self.start(0);
        thread::sleep(quiet);
        self.stop(0, true);
        self.start(1);
        thread::sleep(quiet);
        let said = halfway();
        self.start(2);
        self.stop(1, false);
        thread::sleep(quiet);
        self.stop(2, true);
        self.start(3);
        thread::sleep(quiet);
        self.stop(3, true);
        thread::sleep(QUIET);
        said
    }
}

/// A round trip that pping reported: when, and of whom.
struct Sample {
    time: u64,
    name: String,
}

/// The round trips that pping reported, of each address in order.
fn samples(written: &str) -> BTreeMap<Ipv4Addr, Vec<Sample>> {
    let mut samples: BTreeMap<_, Vec<Sample>> = BTreeMap::new();
    for line in written.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let Some(host) = record["src_ip"].as_str().filter(|host| host.starts_with("10.12.")) else {
            continue;
        };
        if record["type"] != "rtt" {
            continue;
        }
        let name = record["group"].as_str().unwrap_or(UNLISTED).to_owned();
        let sample = Sample { time: record["timestamp"].as_u64().unwrap(), name };
        samples.entry(host.parse().unwrap()).or_default().push(sample);
    }
    for samples in samples.values_mut() {
        samples.sort_by_key(|sample| sample.time);
    }
    samples
}

/// What the comparison found.
#[derive(Debug, Default)]
struct Found {
    /// Samples of which the log says one name only, and those that came while a report was on its way.
    certain: usize,
    during_reports: usize,
    /// The longest time that a name was used after the report of its end was sent, ns; and the same of the reports by
    /// radclient, which sends a hundred at once.
    latest: u64,
    latest_by_radclient: u64,
}

impl Found {
    /// Compares a sample at a time, and its name, with what the log says of its address.
    fn compare(&mut self, host: Ipv4Addr, log: &[Change], time: u64, name: &str) {
        let before =
            Change { name: UNLISTED.to_owned(), at: Reported { sent: 0, answered: 0, is_exact: true } };
        let all: Vec<&Change> = [&before].into_iter().chain(log).collect();
        let is_possible = |index: &usize| {
            let ends = all.get(index + 1).map_or(u64::MAX, |next| next.at.answered.saturating_add(CLOCKS));
            all[*index].at.sent <= time + CLOCKS && time <= ends
        };
        let possible: Vec<usize> = (0..all.len()).filter(is_possible).collect();
        let index = possible.iter().copied().find(|&index| all[index].name == name);
        let Some(index) = index else {
            panic!("{host} at {time} has the name {name}: {possible:?} of {log:?} are possible")
        };
        if possible.len() == 1 {
            self.certain += 1;
        } else {
            self.during_reports += 1;
        }
        if let Some(next) = all.get(index + 1) {
            let latest = if next.at.is_exact { &mut self.latest } else { &mut self.latest_by_radclient };
            *latest = (*latest).max(time.saturating_sub(next.at.sent));
        }
    }
}

/// The samples of each name so far, as metrics have them.
fn counts(host: &Namespace) -> BTreeMap<String, u64> {
    let page = scrape(host).0;
    let lines = page.lines().filter(|line| line.starts_with("pping_rtt_seconds_count{"));
    let page = Exposition(lines.collect::<Vec<_>>().join("\n"));
    let mut counts = BTreeMap::new();
    for series in page.series() {
        if series.labels["method"] == "icmp-echo" && series.labels["matched"] == "ingress" {
            *counts.entry(series.labels["group"].to_owned()).or_default() += series.value as u64;
        }
    }
    counts
}

/// Ends pings, also if an assertion fails before.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn sessions_change_addresses_under_traffic_and_no_sample_has_a_wrong_name() {
    let count = if env::var_os("PPING_EXHAUSTIVE").is_some() { EXHAUSTIVE } else { SESSIONS };
    let options = format!("--format jsonl --prometheus-groups {}", 2 * count);
    let agent = Agent::new(None, &options);
    let (topology, router) = (&agent.topology, agent.topology.router());
    ok(run(topology.server().command("ip").args(["route", "add", "local", "10.12.0.0/16", "dev", "lo"])));
    ok(run(router.command("ip").args(["route", "add", "10.12.0.0/16", "via", "10.11.2.2"])));
    let radius = Radius::start(&agent, "");
    let mut sessions =
        Sessions { agent: &agent, radius: &radius, nas: Nas::new(router), count, log: BTreeMap::new() };
    let addresses: Vec<_> = (0..count).map(address).collect();
    let file = agent.path("reference.pcap");
    let capture = ok(Capture::start(router, Topology::WAN, &file, "icmp and net 10.12.0.0/16"));
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let (Echoes { replies, .. }, (asked, halfway, answered)) = thread::scope(|scope| {
        let client = topology.client();
        let pings =
            scope.spawn(|| ok(ping_in_turn(client, &addresses, PINGS, || is_over.load(Ordering::Relaxed))));
        let over = SetOnDrop(&is_over);
        let halfway = sessions.run(|| (now(), counts(router), now()));
        drop(over);
        (pings.join().unwrap(), halfway)
    });
    let took = began.elapsed();
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    wait_until("all samples", || sum(&counts(router)) >= replies);
    let counted = counts(router);
    let capture = ok(capture.finish());
    let (log, requests) = (sessions.log, 2 * ROUNDS * count);
    radius.stop();
    let samples = samples(&interrupt(agent.process));

    // The reference finds the same samples in the capture, each at its time.
    let mut expected: BTreeMap<Ipv4Addr, Vec<u64>> = BTreeMap::new();
    for sample in expected_samples(&capture, 16, "") {
        let host = sample.tuple.src_ip.to_string().parse().unwrap();
        expected.entry(host).or_default().push(sample.matched_at);
    }
    let (mut found, mut of_names) = (Found::default(), BTreeMap::<&str, Vec<u64>>::new());
    for (host, times) in &mut expected {
        times.sort_unstable();
        let samples = &samples[host];
        assert_eq!(samples.len(), times.len(), "samples of {host}");
        for (Sample { time, name }, expected) in samples.iter().zip(times) {
            assert!(time.abs_diff(*expected) < SAME_PACKET, "{host}: {time} and {expected}");
            found.compare(*host, &log[host], *time, name);
            of_names.entry(name).or_default().push(*time);
        }
    }
    let all: usize = expected.values().map(Vec::len).sum();
    assert_eq!(all, samples.values().map(Vec::len).sum::<usize>(), "samples and those of the reference");
    eprintln!(
        "{count} sessions with {ROUNDS} addresses each and {requests} requests in {took:.1?}: {replies} replies, {all} \
         samples, {} certain, {} during a report; the last one {:.1} ms after the report of the end of its name",
        found.certain,
        found.during_reports,
        found.latest as f64 / 1e6
    );
    assert_eq!(all as u64, replies, "samples and replies");
    assert!(found.latest.max(found.latest_by_radclient) < LATE, "{found:?}");
    assert!(found.certain > 10 * found.during_reports && found.certain > ROUNDS * count, "{found:?}");

    // What is counted of a session goes on from address to address.
    let of_name = |name: &str| of_names.get(name).map_or(&[][..], Vec::as_slice);
    for session in 0..count {
        let name = user(session);
        let times = of_name(&name);
        assert_eq!(counted.get(&name).copied().unwrap_or(0), times.len() as u64, "samples of {name}");
        let until = |end: u64| times.iter().filter(|time| **time < end).count() as u64;
        let then = halfway.get(&name).copied().unwrap_or(0);
        // What came in the last seconds may be counted later.
        let range = until(asked - SETTLING)..=until(answered);
        assert!(range.contains(&then), "{name}: {then} halfway, not {range:?}");
        assert!(times.len() >= ROUNDS, "{name} has {} samples", times.len());
    }
    assert_eq!(counted[UNLISTED], of_name(UNLISTED).len() as u64);
}
