//! Somebody beside the path of honest connections, who knows their addresses and ports but none of their numbers. He sends in
//! the names of both ends: from behind another interface of the router, and as a neighbour of the client.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use pping_lab::{
    Namespace, PacketSocket, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
    veth::{self, End, Offloads},
};
use serde_json::Value;

use super::{Family, HOLD, ROUND_TRIP, capture::Capture, ok, records::Records, topology, watch};
use crate::frames::{ACK, FLOW_LABEL, Ip, PSH, RST, SYN, TCP, Tcp, echo, timestamps};

const CONNECTIONS: usize = 10;
const CHUNKS: u32 = 100;
const PACE: Pace = Pace { chunks: CHUNKS, bytes: 200, pause: Duration::from_millis(15) };
/// The percentage of the segments of samples that must have a time in this host.
const FORWARDED: f64 = 90.0;
/// How many segments of all connections may seem to be sent again because CPUs changed their order.
const REORDERED: u64 = 10;
/// Longer than any honest sample.
const LONG: Duration = Duration::from_millis(900);
const BETWEEN_ROUNDS: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_mins(1);
const METRICS: &str = "http://127.0.0.1:9464/metrics";
/// The interfaces that pping watches.
const INTERFACES: [&str; 2] = [Topology::LAN, Topology::WAN];
/// The interface of the attacker, and the router's towards him.
const SIDE: &str = "side0";
/// Half of all numbers away from what it is added to.
const FAR: u32 = 1 << 31;
const FAMILY: Family = Family::Ipv6;
/// Where the segment begins: behind Ethernet and IPv6 without extension headers.
const TRANSPORT: usize = 14 + 40;

/// The network of the lab, and somebody in it.
struct Network {
    topology: Topology,
    attacker: Namespace,
}

/// What an observer knows of a connection, and the attacker does not.
#[derive(Clone, Copy)]
struct Numbers {
    /// The next number of each end, when the connection began: client, server.
    begin: [u32; 2],
}

impl Network {
    fn new() -> Self {
        let topology = topology();
        let attacker = ok(Namespace::new("attacker"));
        let ends = [End::new(&attacker, Topology::ETH), End::new(topology.router(), SIDE)];
        ok(veth::connect(ends[0], ends[1], Offloads::Off));
        Self { topology, attacker }
    }

    /// Where forged packets are sent: a socket, and the address of the router's interface there.
    fn places(&self) -> [(PacketSocket, [u8; 6]); 2] {
        let router = self.topology.router();
        [(&self.attacker, SIDE), (self.topology.client(), Topology::LAN)].map(|(host, opposite)| {
            (ok(host.enter(|| PacketSocket::sender(Topology::ETH))).unwrap(), mac(router, opposite))
        })
    }
}

fn mac(host: &Namespace, interface: &str) -> [u8; 6] {
    let mut ip = host.command("ip");
    let said: Value =
        serde_json::from_str(&ok(pping_lab::run(ip.args(["-j", "link", "show", interface])))).unwrap();
    let address = said[0]["address"].as_str().unwrap();
    let mut bytes = address.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    [(); 6].map(|()| bytes.next().unwrap())
}

/// Sends a frame to this address.
fn send((socket, router): &(PacketSocket, [u8; 6]), frame: &[u8]) {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(router);
    socket.send(&frame).unwrap();
}

/// A segment in the name of the client or the server. Its checksum is wrong, so no host takes it.
fn forged(is_client: bool, port: u16, server: u16, tcp: &Tcp) -> Vec<u8> {
    let [client, server_ip] = [FAMILY.client(), FAMILY.server()];
    let (from, to, ports) =
        if is_client { (client, server_ip, (port, server)) } else { (server_ip, client, (server, port)) };
    Ip::between(from, to).frame(TCP, &Tcp { ports, ..tcp.clone() }.bytes())
}

/// Reads the numbers of connections off the segments that reach the server, until each has begun.
fn numbers(socket: &mut PacketSocket, count: usize) -> BTreeMap<u16, Numbers> {
    let mut found = BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    while found.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} connections have begun", found.len());
        let Some(received) = socket.receive().unwrap() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let frame = received.frame;
        if frame.len() < TRANSPORT + 20 || frame[14 + 6] != TCP {
            continue;
        }
        let word = |at: usize| u32::from_be_bytes(frame[TRANSPORT + at..][..4].try_into().unwrap());
        let port = u16::from_be_bytes([frame[TRANSPORT], frame[TRANSPORT + 1]]);
        if frame[TRANSPORT + 13] & (SYN | RST) == 0 {
            found.entry(port).or_insert(Numbers { begin: [word(4), word(8)] });
        }
    }
    found
}

/// What pping wrote.
struct Seen {
    records: Vec<Value>,
    metrics: String,
    summary: String,
}

impl Seen {
    fn samples<'a>(
        &'a self,
        interface: &'a str,
        replier: IpAddr,
        port: u16,
    ) -> impl Iterator<Item = Duration> + 'a {
        self.records.iter().filter_map(move |record| {
            let is_it = record["type"] == "rtt"
                && record["interface"] == interface
                && record["src_ip"] == replier.to_string()
                && (record["dest_port"] == port || record["src_port"] == port);
            is_it.then(|| Duration::from_nanos(record["rtt"].as_u64().unwrap()))
        })
    }

    fn untracked(&self, reason: &str) -> u64 {
        self.sum("pping_untracked_packets_total", &format!("reason=\"{reason}\"")) as u64
    }

    /// When a connection closed at an interface, in ns since the epoch. `port` is the client's.
    fn closed_at(&self, interface: &str, port: u16) -> u64 {
        let closings = self.records.iter().filter(|record| {
            record["flow_event"] == "closing"
                && record["interface"] == interface
                && (record["src_port"] == port || record["dest_port"] == port)
        });
        closings.map(|record| record["timestamp"].as_u64().unwrap()).max().unwrap()
    }

    /// Asserts that the samples of these connections at an interface are those of a capture without forged segments.
    #[track_caller]
    fn assert_agreement(&self, interface: &str, ports: impl Iterator<Item = u16>, honest: &Path) {
        let closed: BTreeMap<_, _> =
            ports.map(|port| (u64::from(port), self.closed_at(interface, port))).collect();
        // Once a connection is closed, a forged SYN and SYN-ACK are another one.
        let is_forged = |sample: &Value| {
            let ports = [&sample["src_port"], &sample["dest_port"]].map(|port| port.as_u64().unwrap());
            let closed_at = ports.iter().find_map(|port| closed.get(port)).unwrap();
            sample["method"] == "tcp-handshake" && sample["timestamp"].as_u64().unwrap() > *closed_at
        };
        let samples = self
            .records
            .iter()
            .filter(|record| record["type"] == "rtt" && record["interface"] == interface)
            .filter(|sample| !is_forged(sample));
        let lines: Vec<_> = samples.map(Value::to_string).collect();
        watch::Seen::new(Records::parse(&lines.join("\n")), honest, "", &self.summary).assert_agreement();
    }

    /// Asserts that a connection was measured as without forged segments. `port` is the client's. Returns how many of its
    /// segments seemed to be sent again at each of [`INTERFACES`].
    #[track_caller]
    fn assert_connection(&self, port: u16) -> [u64; 2] {
        let replies: Vec<_> = self.samples(Topology::WAN, FAMILY.server(), port).collect();
        assert!(!replies.is_empty(), "{port}");
        for rtt in replies {
            assert!(rtt >= ROUND_TRIP && rtt < LONG, "{rtt:?} of {port}");
        }
        // The client is near the router. It may delay its ACKs.
        for rtt in self.samples(Topology::LAN, FAMILY.client(), port) {
            assert!(rtt < LONG, "{rtt:?} of {port}");
        }
        let of_flow = |record: &&Value| {
            record["type"] == "flow" && (record["src_port"] == port || record["dest_port"] == port)
        };
        let events: Vec<&Value> = self.records.iter().filter(of_flow).collect();
        assert!(events.iter().all(|event| event["reason"] != "RST"), "{events:#?}");
        INTERFACES.map(|interface| {
            let events = events.iter().filter(|event| event["interface"] == interface);
            let (summaries, events): (Vec<&Value>, Vec<&Value>) =
                events.partition(|event| event["flow_event"] == "summary");
            assert_eq!(summaries.len(), 1, "{port} at {interface}: {summaries:#?}");
            // Each direction opens once and closes once. After that, a forged SYN may seem to begin another one, and a FIN that is
            // sent again to end it.
            let mut kinds = events.iter().map(|event| event["flow_event"].as_str().unwrap()).peekable();
            let mut count = |kind| std::iter::from_fn(|| kinds.next_if_eq(&kind)).count();
            assert_eq!((count("opening"), count("closing")), (2, 2), "{port}: {events:#?}");
            let of_ways = ["sent", "rec"].map(|way| {
                let again = summaries[0][format!("{way}_retransmissions")].as_u64().unwrap();
                let bytes = summaries[0][format!("{way}_bytes")].as_u64().unwrap();
                let most = u64::from(CHUNKS) * PACE.bytes as u64 + 1500 * again;
                assert!(bytes <= most, "{}", summaries[0]);
                again
            });
            of_ways.iter().sum()
        })
    }

    /// The sum of the series of a metric with this label.
    fn sum(&self, metric: &str, label: &str) -> f64 {
        let is_it = |line: &&str| {
            line.split_once('{').is_some_and(|(name, _)| name == metric) && line.contains(label)
        };
        let values = self.metrics.lines().filter(is_it).map(|line| line.rsplit_once(' ').unwrap().1);
        values.map(|value| value.parse::<f64>().unwrap()).sum()
    }
}

/// The time in ns since the epoch.
fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

fn watch(network: &Network, arguments: &str, meanwhile: impl FnOnce()) -> Seen {
    let mut command = network.topology.router().command(env!("CARGO_BIN_EXE_pping"));
    command.args(["-v", "-i", Topology::LAN, "-i", Topology::WAN, "--rate-limit", "0", "--format", "jsonl"]);
    command.args(["--flow-summary", "--with-samples", "--listen", "127.0.0.1:9464"]);
    let mut pping = ok(Process::spawn({
        command.args(arguments.split_whitespace());
        command
    }));
    ok(pping.wait_for_output("measuring round-trip times", PATIENCE));
    meanwhile();
    // Counters are read once a second.
    thread::sleep(Duration::from_secs(3));
    let mut curl = network.topology.router().command("curl");
    let metrics = ok(pping_lab::run(curl.args(["-s", METRICS])));
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let records = ok(pping.stdout()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Seen { records, metrics, summary: ok(pping.stderr()) }
}

/// How many segments a host has sent again, and took for lost.
fn sent_again(host: &Namespace) -> u64 {
    let counters = ok(host.enter(|| fs::read_to_string("/proc/thread-self/net/snmp"))).unwrap();
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let [names, values] = [(); 2].map(|()| lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "RetransSegs").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Lets hosts talk while `lies` are sent in the names of both, and asserts that they are measured as if they were not.
/// `lies` returns segments from the next number of their sender and of the other end, and from a number of the round.
fn assert_unmoved(has_timestamps: bool, lies: impl Fn([u32; 2], u32) -> Vec<Tcp>) {
    let network = Network::new();
    let client = network.topology.client();
    if !has_timestamps {
        ok(client.sysctl("net.ipv4.tcp_timestamps", "0"));
    }
    let server = ok(Server::start(network.topology.server(), 0, Behaviour::Echo));
    let address = SocketAddr::new(FAMILY.server(), server.port());
    let places = network.places();
    let directory = tempfile::tempdir().unwrap();
    let honest = INTERFACES.map(|interface| (interface, directory.path().join(interface)));
    let filter = format!("ip6[0:4] & 0xfffff != {FLOW_LABEL}");
    let mut known = BTreeMap::new();
    // When each forged segment of a connection was sent, by the client's port, in ns since the epoch.
    let mut forged_at: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    let seen = watch(&network, "--residence --residence-every 0", || {
        let captures = honest
            .each_ref()
            .map(|(interface, file)| ok(Capture::start(network.topology.router(), interface, file, &filter)));
        let mut at_server =
            ok(network.topology.server().enter(|| PacketSocket::open(Topology::ETH))).unwrap();
        thread::scope(|scope| {
            let talks: Vec<_> =
                (0..CONNECTIONS).map(|_| scope.spawn(|| ok(traffic::echo(client, address, PACE)))).collect();
            known = numbers(&mut at_server, CONNECTIONS);
            let mut round = 0;
            while talks.iter().any(|talk| !talk.is_finished()) {
                for (&port, Numbers { begin: [of_client, of_server] }) in &known {
                    for (is_client, begin) in
                        [(true, [*of_client, *of_server]), (false, [*of_server, *of_client])]
                    {
                        for lie in lies(begin, round) {
                            let frame = forged(is_client, port, server.port(), &lie);
                            for place in &places {
                                send(place, &frame);
                                forged_at.entry(port).or_default().push(now());
                            }
                        }
                    }
                }
                round += 1;
                thread::sleep(BETWEEN_ROUNDS);
            }
        });
        for capture in captures {
            ok(capture.finish());
        }
    });

    for (interface, file) in &honest {
        seen.assert_agreement(interface, known.keys().copied(), file);
    }
    let retransmissions = sent_again(client) + sent_again(network.topology.server());
    let mut again_at = INTERFACES.map(|interface| (interface, 0));
    for &port in known.keys() {
        for ((_, all), again) in again_at.iter_mut().zip(seen.assert_connection(port)) {
            *all += again;
        }
    }
    for (interface, again) in again_at {
        // Forged SYNs to a connection that is closed are those of another one.
        let late = forged_at.iter().map(|(&port, times)| {
            let closed_at = seen.closed_at(interface, port);
            times.iter().filter(|&&at| at > closed_at).count() as u64
        });
        let most = retransmissions + late.sum::<u64>() + REORDERED;
        assert!(again <= most, "{again} sent again at {interface}, {retransmissions} by the hosts");
    }
    // Only what is recorded has a time in this host: what leaves towards the host that answers.
    let far = [(Topology::WAN, FAMILY.server()), (Topology::LAN, FAMILY.client())];
    let of_far = far.map(|(interface, replier)| seen.samples(interface, replier, server.port()).count());
    let timed = of_far.iter().sum::<usize>() as f64;
    let segments = 2.0 * f64::from(CHUNKS) * CONNECTIONS as f64;
    let (forwarded, seconds) =
        (seen.sum("pping_forwarding_seconds_count", ""), seen.sum("pping_forwarding_seconds_sum", ""));
    assert!(forwarded <= segments * 1.1, "{forwarded} of {segments} segments");
    assert_eq!(has_timestamps, forwarded * 100.0 >= timed * FORWARDED, "{forwarded} of {timed}");
    assert!(seconds <= forwarded * LONG.as_secs_f64(), "{seconds} s");
    let counted = seen.untracked("out_of_window") + seen.untracked("other_hook");
    let sent = forged_at.values().map(Vec::len).sum::<usize>() as u64;
    assert!(counted >= sent, "{counted} of {sent}");
}

/// The timestamps of lies, if the connection has any. Those of a clock that nobody can have come first.
fn stamps(has_timestamps: bool, tsval: u32) -> Vec<u8> {
    if has_timestamps { [&[1, 1][..], &timestamps(tsval, 0)].concat() } else { Vec::new() }
}

fn segment(flags: u8, sequence: u32, acknowledgement: u32, options: Vec<u8>) -> Tcp {
    Tcp { flags, sequence, acknowledgement, payload: 0, ..Tcp::with_options(options) }
}

#[test]
fn segments_with_numbers_half_the_space_away_change_nothing() {
    for has_timestamps in [true, false] {
        assert_unmoved(has_timestamps, |[own, other], round| {
            let far = own.wrapping_add(FAR).wrapping_add(round * 1_000);
            let data = segment(ACK | PSH, far, other, stamps(has_timestamps, 1));
            let clocks = [0x4000_0000, 0xc000_0000]
                .map(|tsval| segment(ACK, far, other, stamps(has_timestamps, tsval)));
            [vec![Tcp { payload: 100, ..data }], clocks.to_vec()].concat()
        });
    }
}

#[test]
fn resets_outside_of_the_window_close_nothing() {
    for has_timestamps in [true, false] {
        assert_unmoved(has_timestamps, |[own, other], round| {
            let far = |number: u32| number.wrapping_add(FAR).wrapping_add(round * 1_000);
            vec![segment(RST, far(own), 0, Vec::new()), segment(RST | ACK, far(own), far(other), Vec::new())]
        });
    }
}

#[test]
fn syns_of_established_connections_restart_nothing() {
    for has_timestamps in [true, false] {
        assert_unmoved(has_timestamps, |[own, other], round| {
            let far = |number: u32| number.wrapping_add(FAR).wrapping_add(round * 1_000);
            vec![
                segment(SYN, far(own), 0, stamps(has_timestamps, round)),
                segment(SYN | ACK, far(own), far(other), stamps(has_timestamps, round)),
            ]
        });
    }
}

/// A SYN to a victim and, a second later, its SYN-ACK, both from the network behind one interface.
#[test]
fn connection_forged_from_one_side_gives_no_sample() {
    const PORTS: std::ops::Range<u16> = 20_000..20_040;
    for arms in ["auto", "two"] {
        let network = Network::new();
        let server = ok(Server::start(network.topology.server(), 0, Behaviour::Echo));
        let address = SocketAddr::new(FAMILY.server(), server.port());
        let behind_wan = ok(network.topology.server().enter(|| PacketSocket::sender(Topology::ETH))).unwrap();
        let place = (behind_wan, mac(network.topology.router(), Topology::WAN));
        let seen = watch(&network, &format!("--arms {arms}"), || {
            // What passes tells what the interface does.
            ok(traffic::echo(network.topology.client(), address, PACE));
            let stamped = |flags, numbers: [u32; 2], stamps: [u32; 2]| Tcp {
                flags,
                sequence: numbers[0],
                acknowledgement: numbers[1],
                payload: 0,
                ..Tcp::stamped(stamps[0], stamps[1])
            };
            for port in PORTS {
                send(&place, &forged(false, port, 443, &stamped(SYN, [1_000, 0], [7, 0])));
            }
            thread::sleep(Duration::from_secs(1));
            for port in PORTS {
                send(&place, &forged(true, port, 443, &stamped(SYN | ACK, [9_000, 1_001], [500, 7])));
            }
            thread::sleep(2 * HOLD);
        });
        let invented: Vec<_> =
            PORTS.flat_map(|port| seen.samples(Topology::WAN, FAMILY.client(), port)).collect();
        assert_eq!(invented, [] as [Duration; 0], "--arms {arms}");
        let honest = seen.records.iter().filter(|record| record["type"] == "rtt").count();
        assert!(honest > CHUNKS as usize, "{honest} honest samples");
        assert!(seen.untracked("same_hook") >= PORTS.len() as u64, "{}", seen.untracked("same_hook"));
    }
}

#[test]
fn echo_replies_that_nobody_asked_for_give_no_sample() {
    const PINGS: u16 = 100;
    let network = Network::new();
    let places = network.places();
    let [client, server] = [FAMILY.client(), FAMILY.server()];
    let mut said = String::new();
    let seen = watch(&network, "", || {
        said = thread::scope(|scope| {
            let pings = scope.spawn(|| {
                let mut ping = network.topology.client().command("ping");
                let count = PINGS.to_string();
                ping.args(["-n", "-e", "4711", "-i", "0.02", "-c", &count, &server.to_string()]);
                ok(pping_lab::run(&mut ping))
            });
            // ping has its process number for an identifier, or another one.
            for round in 0_u16.. {
                if pings.is_finished() {
                    break;
                }
                for sequence in 0..PINGS {
                    let id = 0x8000 | round.wrapping_mul(31).wrapping_add(sequence) & 0xff;
                    let reply = echo(server, client, id, sequence, true);
                    for place in &places {
                        send(place, &reply);
                    }
                }
                thread::sleep(BETWEEN_ROUNDS);
            }
            pings.join().unwrap()
        });
    });
    let of_wan = |record: &&Value| record["type"] == "rtt" && record["interface"] == Topology::WAN;
    let samples: Vec<&Value> = seen.records.iter().filter(of_wan).collect();
    // What pping skips because another CPU had the flow may cost the two that are pending.
    let skipped = seen.sum("pping_recordings_skipped_total", "contended") as usize;
    let received: usize =
        said.split(", ").find_map(|part| part.strip_suffix(" received")?.parse().ok()).unwrap();
    assert!(
        (received.saturating_sub(2 * skipped)..=received).contains(&samples.len()),
        "{} samples, {received} replies, {skipped} skipped: {samples:#?}",
        samples.len()
    );
    for sample in samples {
        let rtt = Duration::from_nanos(sample["rtt"].as_u64().unwrap());
        assert!(rtt >= ROUND_TRIP && rtt < LONG, "{sample}");
    }
}
