//! The worst flows found by a sweep are those of a replay of the same packets, which keeps all flows.

use std::{collections::HashMap, thread, time::Duration};

use pping_common::{
    abi::{Candidate, Endpoints, Figure},
    method::Method,
    parse::{Direction, LinkType},
};

use super::{
    frames::{ACK, Ip, PSH, TCP, Tcp, v4, v6},
    random::Random,
    rig::{Program, Rig, kernels, samples},
};

/// More flows than one run of the sweep program visits, so that the threshold rises between runs.
const FLOWS: u16 = 1400;

/// How many of the worst to ask for.
const WORST: usize = 20;

/// How many packets each end must have sent to be ranked. Some flows have fewer.
const MIN_SAMPLES: u64 = 3;

/// A flow direction: its endpoints, and the interface direction in which its echoes pass.
type FlowDirection = (Endpoints, u8);

fn flow_direction(candidate: &Candidate) -> FlowDirection {
    (candidate.endpoints, candidate.direction)
}

/// A segment of a flow, with this timestamp and echo.
fn segment(
    rig: &mut Rig,
    flow: u16,
    is_forward: bool,
    (stamp, echo): (u32, u32),
    sequence: u32,
    payload: usize,
) {
    let [a, b] = if flow.is_multiple_of(3) { [v6(1), v6(2)] } else { [v4(1), v4(2)] };
    let (source, destination) = if is_forward { (a, b) } else { (b, a) };
    let ports = if is_forward { (1000 + flow, 443) } else { (443, 1000 + flow) };
    let segment = Tcp { ports, flags: ACK | PSH, sequence, payload, ..Tcp::stamped(stamp, echo) };
    let program = if is_forward { Program::Egress } else { Program::Ingress };
    rig.send(program, &Ip::between(source, destination).frame(TCP, &segment.bytes()));
}

/// Sends a round of segments, and their echoes in another order. Some segments are retransmitted, and their lengths
/// differ.
fn converse(rig: &mut Rig, random: &mut Random, round: u32) {
    let mut order: Vec<u16> = (0..FLOWS).collect();
    for &flow in &order {
        let payload = 1 + usize::from(flow) % 97;
        let is_missing = round > 0 && flow % 11 == 5;
        if !is_missing {
            segment(rig, flow, true, (10 + round, round), 1000 * round + 1, payload);
        }
        for _ in 0..u16::from(flow % 31 == 7) * (flow % 5) {
            segment(rig, flow, true, (10 + round, round), 1000 * round + 1, payload);
        }
    }
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
    for &flow in &order {
        if flow % 400 == 1 {
            thread::sleep(Duration::from_millis(1));
        }
        segment(rig, flow, false, (20 + round, 10 + round), 7 * round + 1, 7);
    }
}

#[test]
fn the_worst_are_those_of_a_replay_that_keeps_all() {
    for settings in kernels() {
        assert_the_worst(Rig::with(settings, LinkType::Ethernet));
    }
}

fn assert_the_worst(mut rig: Rig) {
    let mut random = Random::seeded(23);
    let mut rtts: HashMap<String, (u64, u64)> = HashMap::new();
    for sweeps in 0..2 {
        for round in 4 * sweeps..4 * sweeps + 4 {
            converse(&mut rig, &mut random, round);
            for sample in samples(&rig.agree("a round")) {
                let flow_direction = (sample.endpoints, sample.direction);
                rtts.insert(format!("{flow_direction:?}"), (sample.smoothed_rtt, sample.min_rtt));
            }
        }
        rig.kernel.sweeper.rank(WORST, MIN_SAMPLES);
        rig.sweep();
        rig.twin.tracker.flush();
        // All candidates, with the RTTs of the kernel's own samples, because the two clocks differ.
        let mut all: Vec<(FlowDirection, [u64; Figure::COUNT])> = Vec::new();
        for (candidate, _) in rig.twin.tracker.take_worst() {
            let flow_direction = flow_direction(&candidate);
            let [.., again, bytes] = candidate.figures;
            let (smoothed, min) = rtts.get(&format!("{flow_direction:?}")).copied().unwrap_or((0, 0));
            let has_enough = candidate.packets >= MIN_SAMPLES;
            if has_enough && all.iter().all(|(known, _)| *known != flow_direction) {
                all.push((flow_direction, [smoothed, smoothed - min, again, bytes]));
            }
        }
        assert!(all.len() > usize::from(FLOWS), "{}", all.len());
        let found = rig.kernel.sweeper.worst().unwrap().clone();
        for figure in Figure::ALL {
            let value = |figures: &[u64; Figure::COUNT]| figures[figure as usize];
            let mut expected: Vec<u64> =
                all.iter().map(|(_, figures)| value(figures)).filter(|&it| it > 0).collect();
            expected.sort_unstable_by(|one, other| other.cmp(one));
            expected.truncate(WORST);
            assert_eq!(expected.len(), WORST, "{figure:?}");
            let worst = found.worst(figure);
            let values: Vec<u64> = worst.iter().map(|it| value(&it.figures)).collect();
            assert_eq!(values, expected, "{figure:?}");
            for candidate in worst {
                let known = all.iter().find(|(known, _)| *known == flow_direction(candidate));
                assert_eq!(
                    known.map(|(_, figures)| value(figures)),
                    Some(value(&candidate.figures)),
                    "{candidate:?}"
                );
                assert_eq!(candidate.method, Method::TcpTs as u8);
            }
        }
        // The client's segments have the most bytes, and their echoes pass on ingress.
        let directions: Vec<u8> = found.worst(Figure::Bytes).iter().map(|it| it.direction).collect();
        assert!(directions.contains(&(Direction::Ingress as u8)), "{directions:?}");
    }
    rig.kernel.sweeper.rank(0, MIN_SAMPLES);
    rig.sweep();
    assert!(rig.kernel.sweeper.worst().is_none());
}
