//! DNS queries to a real resolver are timed, and unanswered ones counted.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Namespace, Process, Topology, run, uninterrupted};

use super::{Family, ROUND_TRIP, ok, topology, watch::Watch};

const PATIENCE: Duration = Duration::from_mins(1);
/// How long a query stays pending, plus the time for a sweep and for reading the counters.
const UNANSWERED: Duration = Duration::from_secs(10 + 10);
const LISTEN: &str = "--listen 127.0.0.1:9464";
const METRICS: &str = "http://127.0.0.1:9464/metrics";
/// The pause between queries, short enough for several to be pending.
const PAUSE: Duration = Duration::from_millis(3);

/// A name that the resolver knows, one that it knows not to exist, and one that it has no upstream server for.
const NAMES: [(&str, u8, &str); 3] =
    [("here.test", 0, "NOERROR"), ("nowhere.test", 3, "NXDOMAIN"), ("elsewhere.example", 5, "REFUSED")];

/// Starts dnsmasq, which is killed on drop.
pub(crate) fn resolver(host: &Namespace, port: u16) -> Process {
    let mut command = host.command("dnsmasq");
    command.args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--local=/test/"]);
    command.args(["--host-record=here.test,192.0.2.1,2001:db8::1", &format!("--port={port}")]);
    let mut resolver = ok(Process::spawn(command));
    ok(resolver.wait_for_output("started", PATIENCE));
    resolver
}

/// A query for an address of `name` (RFC 1035, 4.1).
fn query(id: u16, name: &str) -> Vec<u8> {
    const RECURSION_DESIRED_AND_ONE_QUESTION: [u8; 10] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    const TYPE_A_CLASS_IN: [u8; 4] = [0, 1, 0, 1];
    let mut message = id.to_be_bytes().to_vec();
    message.extend(RECURSION_DESIRED_AND_ONE_QUESTION);
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend(TYPE_A_CLASS_IN);
    message
}

fn socket(host: &Namespace, server: SocketAddr) -> UdpSocket {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = ok(host.enter(|| UdpSocket::bind((any, 0)))).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Queries the names in turn, `times` times each, over one socket and with IDs from `first` on. Asserts that each query
/// gets the expected response. Returns by ID how long the client waited.
pub(crate) fn ask(host: &Namespace, server: SocketAddr, first: u16, times: u16) -> BTreeMap<u16, Duration> {
    let socket = socket(host, server);
    let ids = first..first + times * NAMES.len() as u16;
    let name = |id: u16| NAMES[usize::from(id - first) % NAMES.len()];
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let ask = |id| {
                let asked = Instant::now();
                socket.send(&query(id, name(id).0)).unwrap();
                thread::sleep(PAUSE);
                (id, asked)
            };
            ids.clone().map(ask).collect::<BTreeMap<_, _>>()
        });
        let answered: BTreeMap<_, _> = ids.clone().map(|_| response(&socket, name)).collect();
        let asked = asking.join().unwrap();
        asked.into_iter().map(|(id, asked)| (id, answered[&id] - asked)).collect()
    })
}

/// Receives the next response. Returns its ID and arrival time.
fn response(socket: &UdpSocket, name: impl Fn(u16) -> (&'static str, u8, &'static str)) -> (u16, Instant) {
    let mut message = [0; 512];
    let length = uninterrupted(|| socket.recv(&mut message)).unwrap();
    let answered = Instant::now();
    assert!(length >= 12 && message[2] & 0x80 != 0, "{:?}", &message[..length]);
    let id = u16::from_be_bytes([message[0], message[1]]);
    assert_eq!(message[3] & 15, name(id).1, "{}", name(id).0);
    (id, answered)
}

/// Returns the DNS metrics once the sum of `name` is `count`: pping reads counters once a second.
fn counts(host: &Namespace, name: &str, count: u64, patience: Duration) -> BTreeMap<String, u64> {
    let deadline = Instant::now() + patience;
    loop {
        let text = ok(run(host.command("curl").args(["--silent", "--show-error", METRICS])));
        let series = text.lines().filter(|line| line.starts_with("pping_dns_"));
        let counts: BTreeMap<_, _> = series
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(series, value)| (series.to_owned(), value.parse::<f64>().unwrap() as u64))
            .collect();
        let of_name = counts.iter().filter(|(series, _)| series.starts_with(name));
        let sum: u64 = of_name.map(|(_, value)| value).sum();
        if sum >= count {
            assert_eq!(sum, count, "{counts:#?}");
            return counts;
        }
        assert!(Instant::now() < deadline, "{name} is not {count} in {patience:?}: {counts:#?}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the value of the only series of `name` with this label.
#[track_caller]
fn count(counts: &BTreeMap<String, u64>, name: &str, label: &str) -> u64 {
    let mut found = counts.iter().filter(|(series, _)| series.starts_with(name) && series.contains(label));
    let (Some((_, &value)), None) = (found.next(), found.next()) else {
        panic!("not one series {name} with {label}: {counts:#?}");
    };
    value
}

fn queries_are_timed_and_counted(ingress: &str, family: Family) {
    const TIMES: u16 = 30;
    const TWICE: u16 = 2_000;
    let topology = topology();
    let _resolver = resolver(topology.server(), 53);
    let server = SocketAddr::new(family.server(), 53);
    let watch = Watch::start(topology.router(), Topology::WAN, &format!("--ingress {ingress} {LISTEN}"));
    let waited = ask(topology.client(), server, 1_000, TIMES);
    // The query is sent twice before the response. The first response could answer either query, and the second finds
    // no pending query.
    let again = socket(topology.client(), server);
    for _ in 0..2 {
        again.send(&query(TWICE, NAMES[0].0)).unwrap();
        // Late enough to be no copy.
        thread::sleep(Duration::from_millis(3));
    }
    for _ in 0..2 {
        assert_eq!(response(&again, |_| NAMES[0]).0, TWICE);
    }
    let responses = u64::from(TIMES) * NAMES.len() as u64 + 1;
    let counts = counts(topology.router(), "pping_dns_responses_total", responses, PATIENCE);
    let seen = watch.finish();

    seen.assert_agreement();
    let samples = &seen.records.samples;
    let ids: BTreeMap<_, _> = samples.iter().map(|sample| (sample.dns_id, sample)).collect();
    assert_eq!((samples.len(), ids.len()), (waited.len(), waited.len()), "{samples:#?}");
    for (id, waited) in waited {
        let sample = ids[&Some(id)];
        assert_eq!((sample.method.as_str(), sample.protocol.as_str()), ("dns", "DNS"), "{sample:?}");
        assert_eq!((sample.tuple.src_ip, sample.tuple.src_port), (family.server(), 53), "{sample:?}");
        assert_eq!(sample.tuple.dest_ip, family.client(), "{sample:?}");
        assert!(!sample.match_on_egress && sample.rtt() >= ROUND_TRIP, "{sample:?}");
        assert!(sample.rtt() <= waited, "the client waited for {waited:?}: {sample:?}");
    }

    for (name, _, code) in NAMES {
        let asked_again = u64::from(name == NAMES[0].0);
        let responses = count(&counts, "pping_dns_responses_total", &format!("rcode=\"{code}\""));
        assert_eq!(responses, u64::from(TIMES) + asked_again, "{code}: {counts:#?}");
    }
    assert_eq!(count(&counts, "pping_dns_queries_total", "egress"), responses + 1, "{counts:#?}");
    assert_eq!(count(&counts, "pping_dns_queries_total", "ingress"), 0, "{counts:#?}");
    assert_eq!(count(&counts, "pping_dns_unanswered_total", Topology::WAN), 0, "{counts:#?}");
}

#[test]
fn tc_times_and_counts_queries_over_ipv4() {
    queries_are_timed_and_counted("tc", Family::Ipv4);
}

#[test]
fn tc_times_and_counts_queries_over_ipv6() {
    queries_are_timed_and_counted("tc", Family::Ipv6);
}

#[test]
fn xdp_times_and_counts_queries_over_ipv4() {
    queries_are_timed_and_counted("xdp", Family::Ipv4);
}

#[test]
fn xdp_times_and_counts_queries_over_ipv6() {
    queries_are_timed_and_counted("xdp", Family::Ipv6);
}

/// No server listens there. The ICMP error that says so is not a response.
#[test]
fn queries_that_nobody_answers_are_counted() {
    let topology = topology();
    let watch = Watch::start(topology.router(), Topology::WAN, LISTEN);
    for family in [Family::Ipv4, Family::Ipv6] {
        let socket = socket(topology.client(), SocketAddr::new(family.server(), 53));
        socket.send(&query(1, NAMES[0].0)).unwrap();
        socket.recv(&mut [0; 512]).unwrap_err();
    }
    let counts = counts(topology.router(), "pping_dns_unanswered_total", 2, UNANSWERED);
    let seen = watch.finish();
    assert_eq!(count(&counts, "pping_dns_queries_total", "egress"), 2, "{counts:#?}");
    assert!(seen.expected.is_empty() && seen.records.samples.is_empty(), "{:?}", seen.records.samples);
}

#[test]
fn only_the_ports_of_dns_ports_are_those_of_dns() {
    const TIMES: u16 = 10;
    const LISTED: [u16; 2] = [5300, 5353];
    let topology = topology();
    let ports = [LISTED[0], LISTED[1], 53];
    let _resolvers = ports.map(|port| resolver(topology.server(), port));
    let arguments = format!("{LISTEN} --dns-ports 5300,5353");
    let watch = Watch::start(topology.router(), Topology::WAN, &arguments);
    let mut waited = BTreeMap::new();
    for (port, first) in ports.into_iter().zip([100, 200, 300]) {
        for family in [Family::Ipv4, Family::Ipv6] {
            let asked = ask(topology.client(), SocketAddr::new(family.server(), port), first, TIMES);
            let asked = asked.into_iter().map(|(id, waited)| ((family.server(), port, Some(id)), waited));
            waited.extend(asked.filter(|_| LISTED.contains(&port)));
        }
    }
    let counts = counts(topology.router(), "pping_dns_responses_total", waited.len() as u64, PATIENCE);
    let seen = watch.finish();

    assert_eq!(count(&counts, "pping_dns_queries_total", "egress"), waited.len() as u64, "{counts:#?}");
    assert_eq!(seen.records.samples.len(), waited.len(), "{:#?}", seen.records.samples);
    for sample in &seen.records.samples {
        let asked = (sample.tuple.src_ip, sample.tuple.src_port, sample.dns_id);
        let waited =
            waited.remove(&asked).unwrap_or_else(|| panic!("not asked, or reported twice: {sample:?}"));
        assert!(sample.rtt() >= ROUND_TRIP && sample.rtt() <= waited, "{sample:?}");
    }
}
