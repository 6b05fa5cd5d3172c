//! Somebody beside the path of honest connections, who knows their addresses and ports but none of their numbers. He sends in
//! the names of both ends: from behind another interface of the router, and as a neighbour of the client.

mod network;
mod seen;

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    thread,
    time::{Duration, UNIX_EPOCH},
};

use pping_lab::{
    Namespace, PacketSocket, Topology,
    traffic::{self, Behaviour, Pace, Server},
};
use serde_json::Value;

use self::{
    network::{Network, Numbers, forged, mac, numbers, send},
    seen::watch,
};
use super::{Family, HOLD, ROUND_TRIP, capture::Capture, ok};
use crate::frames::{ACK, FLOW_LABEL, PSH, RST, SYN, Tcp, echo, timestamps};

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
/// The interfaces that pping watches.
const INTERFACES: [&str; 2] = [Topology::LAN, Topology::WAN];
/// Half of all numbers away from what it is added to.
const FAR: u32 = 1 << 31;
const FAMILY: Family = Family::Ipv6;

/// The time in ns since the epoch.
fn now() -> u64 {
    UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

/// How many segments a host has sent again, and took for lost.
fn sent_again(host: &Namespace) -> u64 {
    let counters = ok(host.enter(|| fs::read_to_string("/proc/thread-self/net/snmp"))).unwrap();
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let [names, values] = [(); 2].map(|()| lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "RetransSegs").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Lets hosts talk while forged segments are sent in the names of both, and asserts that they are measured as if they were
/// not. `segments` returns them from the next number of their sender and of the other end, and from a number of the round.
fn assert_unmoved(has_timestamps: bool, segments: impl Fn([u32; 2], u32) -> Vec<Tcp>) {
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
                        for segment in segments(begin, round) {
                            let frame = forged(is_client, port, server.port(), &segment);
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

/// The timestamps of forged segments, if the connection has any. Those of a clock that nobody can have come first.
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
