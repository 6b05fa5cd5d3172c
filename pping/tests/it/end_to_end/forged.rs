//! Somebody beside the path of honest connections, who knows their addresses and ports but none of their numbers. He sends in
//! the names of both ends: from behind another interface of the router, and as a neighbour of the client.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{
    Namespace, PacketSocket, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
    veth::{self, End, Offloads},
};
use serde_json::Value;

use super::{Family, HOLD, ROUND_TRIP, ok, topology};
use crate::frames::{ACK, Ip, PSH, RST, SYN, TCP, Tcp, echo, timestamps};

const CONNECTIONS: usize = 10;
const CHUNKS: u32 = 100;
const PACE: Pace = Pace { chunks: CHUNKS, bytes: 200, pause: Duration::from_millis(15) };
/// The percentage of chunks that must be timed. A host that waits for its CPU sends two at once.
const TIMED: usize = 90;
/// The most segments of a connection that a host that waits for its CPU may send again.
const MAY_BE_SENT_AGAIN: u64 = 10;
/// Longer than any honest sample.
const LONG: Duration = Duration::from_millis(900);
const BETWEEN_ROUNDS: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_mins(1);
const METRICS: &str = "http://127.0.0.1:9464/metrics";
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

    /// The sum of the series of a metric with this label.
    fn sum(&self, metric: &str, label: &str) -> f64 {
        let is_it = |line: &&str| {
            line.split_once('{').is_some_and(|(name, _)| name == metric) && line.contains(label)
        };
        let values = self.metrics.lines().filter(is_it).map(|line| line.rsplit_once(' ').unwrap().1);
        values.map(|value| value.parse::<f64>().unwrap()).sum()
    }
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
    Seen { records, metrics }
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
    let mut known = BTreeMap::new();
    let mut sent = 0;
    let seen = watch(&network, "--residence --residence-every 0", || {
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
                            }
                            sent += places.len() as u64;
                        }
                    }
                }
                round += 1;
                thread::sleep(BETWEEN_ROUNDS);
            }
        });
    });

    for &port in known.keys() {
        let replies: Vec<_> = seen.samples(Topology::WAN, FAMILY.server(), port).collect();
        assert!(replies.len() * 100 >= CHUNKS as usize * TIMED, "{} samples of {port}", replies.len());
        for rtt in replies {
            assert!(rtt >= ROUND_TRIP && rtt < LONG, "{rtt:?} of {port}");
        }
        // The client is near the router. It may delay its ACKs.
        for rtt in seen.samples(Topology::LAN, FAMILY.client(), port) {
            assert!(rtt < LONG, "{rtt:?} of {port}");
        }
        let of_flow = |record: &&Value| {
            record["type"] == "flow" && (record["src_port"] == port || record["dest_port"] == port)
        };
        let events: Vec<&Value> = seen.records.iter().filter(of_flow).collect();
        let summaries: Vec<&&Value> =
            events.iter().filter(|event| event["flow_event"] == "summary").collect();
        assert_eq!(summaries.len(), 2, "one of each interface: {events:#?}");
        for summary in summaries {
            for way in ["sent", "rec"] {
                let again = summary[format!("{way}_retransmissions")].as_u64().unwrap();
                assert!(again <= MAY_BE_SENT_AGAIN, "{summary}");
                let bytes = summary[format!("{way}_bytes")].as_u64().unwrap();
                let most = u64::from(CHUNKS) * PACE.bytes as u64 + 1500 * again;
                assert!(bytes <= most, "{summary}");
            }
        }
        // At each interface each direction opens once and closes once. After that, a forged SYN may seem to begin another one,
        // and a FIN that is sent again to end it.
        for interface in [Topology::LAN, Topology::WAN] {
            let kinds = events.iter().filter(|event| event["interface"] == interface);
            let mut kinds = kinds.map(|event| event["flow_event"].as_str().unwrap()).peekable();
            let mut count = |kind| std::iter::from_fn(|| kinds.next_if_eq(&kind)).count();
            assert_eq!((count("opening"), count("closing")), (2, 2), "{port}: {events:#?}");
        }
        assert!(events.iter().all(|event| event["reason"] != "RST"), "{events:#?}");
    }
    // Only what is recorded has a time in this host. Both ends send a segment for each chunk.
    let segments = 2.0 * f64::from(CHUNKS) * CONNECTIONS as f64;
    let (forwarded, seconds) =
        (seen.sum("pping_forwarding_seconds_count", ""), seen.sum("pping_forwarding_seconds_sum", ""));
    assert!(forwarded <= segments * 1.1, "{forwarded} of {segments} segments");
    assert_eq!(has_timestamps, forwarded * 100.0 >= segments * TIMED as f64, "{forwarded} of {segments}");
    assert!(seconds <= forwarded * LONG.as_secs_f64(), "{seconds} s");
    let counted = seen.untracked("out_of_window") + seen.untracked("other_hook");
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
