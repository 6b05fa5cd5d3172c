//! Whole conversations match in the kernel as they do in user space.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use pping::{
    groups::Networks,
    kernel::{drain::Event, labels, load_options::LoadOptions},
};
use pping_common::{
    abi::{Emit, Endpoints, RttEvent},
    group::{GroupKey, Grouping},
    limits::IDLE_SECONDS,
    parse::LinkType,
    rtt::{RttBasis, Rules},
};

use super::{
    frames::{v4, v6},
    random::Random,
    rig::{Program, Rig, SETTINGS, Timeless, events, samples},
    talk::{Connection, Ping, Temper, program},
    twin::Twin,
};

const PACKETS: usize = 6000;

/// How long a busy machine may take until the limits have let enough samples through.
const PATIENCE: Duration = Duration::from_mins(1);

/// The number of packets between two reads of the events.
const STRIDE: usize = 500;

fn pairs() -> [[IpAddr; 2]; 4] {
    // Both families, with the lower address at either end.
    [[v4(1), v4(9)], [v4(9), v4(3)], [v6(1), v6(9)], [v6(9), v6(3)]]
}

/// Sends conversations, and returns the events reported.
fn talk(rig: &mut Rig, seed: u64, temper: Temper, ingress: Program) -> Vec<Event> {
    let mut random = Random::seeded(seed);
    let mut connections: Vec<Connection> = (0..12)
        .map(|number| Connection::new(pairs()[number % 4], 40_000 + number as u16 / 4, temper, &mut random))
        .collect();
    let mut pings: Vec<Ping> = pairs().into_iter().map(|hosts| Ping::new(hosts, 77)).collect();
    let mut reported = Vec::new();
    for packet in 1..=PACKETS {
        let (from, frame) = if random.chance(10) {
            let number = random.below(pings.len());
            let (from, frame) = pings[number].next(&mut random);
            // In half of the conversations an outside host sends first.
            (from ^ (number & 1), frame)
        } else {
            let number = random.below(connections.len());
            connections[number].next(&mut random)
        };
        // A route may change, so a host may appear on the other side of the interface.
        let program = if random.chance(3) { random.pick(&Program::ALL) } else { program(from, ingress) };
        rig.send(program, &frame);
        if packet % STRIDE == 0 {
            let what = format!("seed {seed}, {temper:?}, {ingress:?}, packet {packet}");
            reported.extend(rig.agree(&what));
            rig.agree_on_series(&what);
        }
    }
    reported
}

#[test]
fn conversations_match_as_in_user_space() {
    let mut rig = Rig::new();
    for ingress in [Program::Xdp, Program::Ingress] {
        for temper in [Temper::Calm, Temper::Wild] {
            for seed in 1..=4 {
                rig.start_over();
                let reported = talk(&mut rig, seed, temper, ingress);
                let samples = samples(&reported);
                assert!(samples.len() > PACKETS / 7, "only {} samples", samples.len());
                for method in 0..2 {
                    for direction in 0..2 {
                        let count =
                            samples.iter().filter(|e| (e.method, e.direction) == (method, direction)).count();
                        assert!(count > 3, "{count} samples of method {method} at direction {direction}");
                    }
                }
            }
        }
    }
}

#[test]
fn conversations_are_in_the_same_groups_and_end_the_same() {
    let nets = Grouping { v4_len: 31, v6_len: 127, ..Grouping::NONE };
    for (grouping, groups) in [
        (Grouping { by_source: 1, ..nets }, 3..),
        (Grouping { by_destination: 1, by_dscp: 1, ..nets }, 3..),
        (Grouping { by_source: 1, by_destination: 1, ..nets }, 6..),
    ] {
        let emit = Emit::SAMPLES.with(Emit::FLOWS).with(Emit::ENDS);
        let settings = LoadOptions { grouping, emit, max_groups: 30, ..SETTINGS };
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        talk(&mut rig, 5, Temper::Wild, Program::Ingress);
        assert!(groups.contains(&rig.kernel.series.fill().groups), "{:?}", rig.kernel.series.fill());
        let refused = rig.twin.counters.groups_refused;
        assert_eq!(refused > 0, grouping.by_dscp != 0, "there are more classes than there is room for");
        let mut ended = 0;
        for _ in 0..=IDLE_SECONDS {
            rig.sweep();
            let events = rig.agree_in_any_order("a sweep");
            ended += events.iter().filter(|event| matches!(event, Event::End(_))).count();
        }
        assert_eq!(rig.twin.tracker.flows(), 0);
        assert_eq!(ended as u64, rig.twin.counters.entries_deleted.iter().sum::<u64>());
        assert!(
            rig.twin.counters.retransmissions.iter().all(|&count| count > 100),
            "{:?}",
            rig.twin.counters
        );
        rig.agree_on_series("when all is over");
    }
}

#[test]
fn conversations_are_with_the_same_networks() {
    let prefix = |host: IpAddr, len, number: u32| (IpNet::new(host, len).unwrap().trunc(), number);
    // Some hosts are in one of these, some in a longer one, and some in none.
    let prefixes = vec![prefix(v4(9), 32, 70), prefix(v4(1), 30, 71), prefix(v6(1), 127, 72)];
    for (grouping, max_networks) in [
        (Grouping::NONE, 100),
        // Fewer than there are, so that some are among the others.
        (Grouping { by_source: 1, v4_len: 31, v6_len: 127, ..Grouping::NONE }, 2),
    ] {
        let settings =
            LoadOptions { grouping, max_groups: 30, max_networks, emit: Emit::NOTHING, ..SETTINGS };
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        labels::add(&mut rig.kernel.networks, 0, prefixes.iter().copied()).unwrap();
        let networks = Networks::of_prefixes(&prefixes);
        rig.twin = Twin::with_networks(settings, LinkType::Ethernet, rig.twin.interface_id, networks);
        talk(&mut rig, 23, Temper::Wild, Program::Ingress);
        rig.agree_on_series("groups and networks");
        let of_networks = rig.kernel.series.keys().filter(|key| key.group.is_network()).count();
        let others = rig.kernel.series.keys().filter(|key| key.group == GroupKey::OTHER_NETWORKS).count();
        assert!(of_networks > others && others > 0, "{of_networks} {others}");
        assert_eq!(rig.kernel.series.fill().groups > 1, grouping.is_on());
    }
}

#[test]
fn conversations_match_the_same_with_the_log_on() {
    let mut rig = Rig::with(LoadOptions { log: true, ..SETTINGS }, LinkType::Ethernet);
    assert!(!talk(&mut rig, 9, Temper::Wild, Program::Xdp).is_empty());
}

/// Sends conversations under limits until `is_enough`. Returns the reported samples, and those that would be reported
/// without limits.
fn talk_limited(rules: Rules, is_enough: impl Fn(&[RttEvent]) -> bool) -> (Vec<RttEvent>, Vec<RttEvent>) {
    let mut rig = Rig::with(LoadOptions { rules, ..SETTINGS }, LinkType::Ethernet);
    rig.twin = Twin::new(SETTINGS, LinkType::Ethernet, rig.twin.interface_id);
    let mut random = Random::seeded(11);
    let mut connections: Vec<Connection> =
        pairs().into_iter().map(|hosts| Connection::new(hosts, 40_000, Temper::Calm, &mut random)).collect();
    let (mut reported, began) = (Vec::new(), Instant::now());
    while !is_enough(&reported) {
        assert!(began.elapsed() < PATIENCE, "{} samples only", reported.len());
        for connection in &mut connections {
            let (from, frame) = connection.next(&mut random);
            rig.send(program(from, Program::Ingress), &frame);
        }
        std::thread::sleep(Duration::from_micros(200));
        reported.extend(samples(&events(&mut rig.kernel)));
    }
    // If pending timestamps had run out, limits could lead to samples that do not exist without them.
    assert_eq!(rig.twin.counters.pending_full, 0);
    (reported, samples(&rig.twin.events))
}

/// Groups samples by flow direction.
fn by_direction(samples: &[RttEvent]) -> Vec<Vec<RttEvent>> {
    let mut directions: HashMap<[u8; 36], Vec<RttEvent>> = HashMap::new();
    for sample in samples {
        let Endpoints { source, destination, source_port, destination_port, .. } = sample.endpoints;
        let mut key = [0; 36];
        key[..16].copy_from_slice(&source);
        key[16..32].copy_from_slice(&destination);
        key[32..34].copy_from_slice(&source_port.to_be_bytes());
        key[34..].copy_from_slice(&destination_port.to_be_bytes());
        directions.entry(key).or_default().push(*sample);
    }
    directions.into_values().collect()
}

fn recorded_at(sample: &RttEvent) -> u64 {
    sample.timestamp - sample.rtt
}

#[test]
fn a_rate_limit_leaves_some_samples_out_and_adds_none() {
    let limit = Duration::from_millis(100);
    let rules = Rules { rate_limit: limit.as_nanos() as u64, ..SETTINGS.rules };
    let (limited, unlimited) = talk_limited(rules, |reported| {
        let directions = by_direction(reported);
        directions.len() == 8 && directions.iter().all(|samples| samples.len() > 4)
    });
    assert!(limited.len() < unlimited.len(), "{} of {} samples", limited.len(), unlimited.len());
    let unlimited: Vec<Timeless> =
        unlimited.into_iter().map(|sample| Timeless::from(&Event::Rtt(sample))).collect();
    for sample in &limited {
        assert!(unlimited.contains(&Timeless::from(&Event::Rtt(*sample))), "{sample:?}");
    }
    for samples in by_direction(&limited) {
        for pair in samples.windows(2) {
            let distance = recorded_at(&pair[1]) - recorded_at(&pair[0]);
            assert!(distance >= limit.as_nanos() as u64, "{distance} ns apart: {pair:?}");
        }
    }
}

#[test]
fn a_limit_in_rtts_spaces_recordings_by_as_many_of_them() {
    for basis in [RttBasis::Smoothed, RttBasis::Min] {
        let rules = Rules { rtt_rate: 20 << 16, rtt_basis: basis, ..SETTINGS.rules };
        let (limited, unlimited) = talk_limited(rules, |reported| reported.len() > 100);
        assert!(limited.len() < unlimited.len(), "{} of {} samples", limited.len(), unlimited.len());
        for samples in by_direction(&limited) {
            for pair in samples.windows(2) {
                let rtt = match basis {
                    RttBasis::Smoothed => pair[0].smoothed_rtt,
                    RttBasis::Min => pair[0].min_rtt,
                };
                let distance = recorded_at(&pair[1]) - recorded_at(&pair[0]);
                // No RTT is known before the first sample.
                if recorded_at(&pair[1]) > pair[0].timestamp {
                    assert!(distance >= 20 * rtt, "{distance} ns apart: {pair:?}");
                }
            }
        }
    }
}
