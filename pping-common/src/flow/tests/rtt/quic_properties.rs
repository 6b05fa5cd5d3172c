//! Spin bits as two hosts send them, through a network that delays, reorders and loses packets; and spin bits without
//! meaning.

use std::{collections::BTreeSet, vec, vec::Vec};

use proptest::prelude::*;

use super::quic::{connected, short};
use crate::{
    flow::Endpoint,
    rtt::{PossibleChange, Sample},
    testing::{MS, Random},
};

/// Nanoseconds in a microsecond.
const US: u64 = 1000;

/// The network on one side of the observer, and the host there.
#[derive(Clone, Debug)]
struct Way {
    /// The delay between the observer and the host, one way, us.
    delay: u64,
    /// The time between two packets of the host, us: at least `gap`, and up to `jitter` more.
    gap: u64,
    jitter: u64,
    /// One packet in `loss` is lost, and one in `reordered` is late by up to `late` us. 0 is none.
    loss: u64,
    reordered: u64,
    late: u64,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    at: u64,
    place: Place,
    from: usize,
    number: u64,
    value: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Host,
    Observer,
    Other,
}

/// What the observer saw.
struct Seen {
    /// The time (us), the sender and the spin bit of each packet.
    packets: Vec<(u64, usize, bool)>,
    /// The longest gaps between packets of each sender, us: at the other host among those in order, and at the observer.
    longest_gaps: [u64; 4],
}

/// Simulates a client (0) and a server (1) that send for `duration` us by RFC 9000, 17.4.
fn genuine(ways: &[Way; 2], duration: u64, seed: u64) -> Seen {
    let mut random = Random(seed | 1);
    let mut events = BTreeSet::new();
    for from in 0..2 {
        events.insert(Packet { at: from as u64 * 7, place: Place::Host, from, number: 0, value: false });
    }
    let mut values = [false; 2];
    let mut newest = [None; 2];
    let mut gaps = [(0, 0); 4];
    let mut packets = vec![];
    while let Some(packet) = events.pop_first() {
        let Packet { at, place, from, number, .. } = packet;
        let mut travel = |way: &Way, place, random: &mut Random, value| {
            if random.one_in(way.loss) {
                return;
            }
            let late = if random.one_in(way.reordered) { random.below(way.late) } else { 0 };
            events.insert(Packet { at: at + way.delay + late, place, from, number, value });
        };
        match place {
            Place::Host => {
                travel(&ways[from], Place::Observer, &mut random, values[from]);
                let next = at + ways[from].gap + random.below(ways[from].jitter);
                if next < duration {
                    events.insert(Packet {
                        at: next,
                        place: Place::Host,
                        from,
                        number: number + 1,
                        value: false,
                    });
                }
            }
            Place::Observer => {
                packets.push((at, from, packet.value));
                gaps[2 + from] = (at, gaps[2 + from].1.max(at - gaps[2 + from].0));
                travel(&ways[1 - from], Place::Other, &mut random, packet.value);
            }
            Place::Other if newest[from].is_none_or(|newest| newest < number) => {
                newest[from] = Some(number);
                gaps[from] = (at, gaps[from].1.max(at - gaps[from].0));
                // The server reflects, the client inverts.
                values[1 - from] = packet.value ^ (from == 1);
            }
            Place::Other => {}
        }
    }
    Seen { packets, longest_gaps: gaps.map(|(_, longest)| longest) }
}

/// Returns the samples of these packets, each with its sender, and the number of changes of the spin bit.
fn measure(packets: &[(u64, usize, bool)]) -> (Vec<(usize, Sample)>, usize) {
    let mut talk = connected();
    let mut samples = vec![];
    let mut changes = 0;
    let mut values = [None; 2];
    for &(at, from, value) in packets {
        changes += usize::from(values[from].is_some_and(|before| before != value));
        values[from] = Some(value);
        let endpoint = if from == 0 { Endpoint::Low } else { Endpoint::High };
        let (now, transport) = (20 * MS + at * US, short(value));
        let counted = talk.flow.count(endpoint, &transport, 0, 0);
        if talk.flow.possible_change(endpoint, &transport, counted, &talk.rules) != PossibleChange::Nothing {
            let outcome = talk.flow.step(endpoint, &transport, counted.progress, now, &talk.rules);
            samples.extend(outcome.measured.sample().map(|sample| (from, sample)));
        }
    }
    (samples, changes)
}

/// A way on which packets are late by at most `late` 64ths of `round_trip`.
fn way(late: u64) -> impl Strategy<Value = Way> {
    let loss = prop_oneof![2 => Just(0), 1 => 10..200_u64];
    let reordered = prop_oneof![1 => Just(0), 2 => 5..100_u64];
    (100..20_000_u64, 100..4000_u64, 0..4000_u64, loss, reordered, 0..=late).prop_map(
        |(delay, gap, jitter, loss, reordered, late)| Way { delay, gap, jitter, loss, reordered, late },
    )
}

fn round_trip(ways: &[Way; 2]) -> u64 {
    2 * (ways[0].delay + ways[1].delay)
}

proptest! {
    /// Samples lie between the RTT and the RTT plus all delays. No packet is late by more than an eighth of the RTT.
    #[test]
    fn genuine_spin_bits_give_right_samples(ways in [way(8), way(8)], seed in any::<u64>()) {
        let round_trip = round_trip(&ways);
        let ways = ways.map(|way| Way { late: way.late * round_trip / 64, ..way });
        let seen = genuine(&ways, 40 * round_trip, seed);
        let (samples, changes) = measure(&seen.packets);
        let late = 2 * (ways[0].late + ways[1].late);
        let gaps = seen.longest_gaps;
        for (from, sample) in &samples {
            let rtt = sample.rtt / US;
            prop_assert!(rtt >= round_trip, "{} of {}", rtt, round_trip);
            let most = round_trip + late + gaps[0] + gaps[1] + gaps[2 + from];
            prop_assert!(rtt <= most, "{} of {}", rtt, most);
            prop_assert!(sample.side_rtt <= sample.rtt && sample.side_rtt / US >= 2 * ways[*from].delay);
        }
        // All edges but the first ones give samples, if no interval is less than half another.
        let is_even = gaps[0] + gaps[1] + gaps[2].max(gaps[3]) < round_trip;
        if is_even && ways.iter().all(|way| way.reordered == 0 || way.late == 0) && changes > 6 {
            prop_assert_eq!(samples.len(), changes - 6);
        }
    }

    /// However late packets are, no sample is of two RTTs, as it would be after a false edge.
    #[test]
    fn genuine_spin_bits_give_no_doubled_samples(ways in [way(64), way(64)], seed in any::<u64>()) {
        let round_trip = round_trip(&ways);
        let ways = ways.map(|way| Way { late: way.late * round_trip / 64, ..way });
        let seen = genuine(&ways, 40 * round_trip, seed);
        let late = 2 * (ways[0].late + ways[1].late);
        let gaps = seen.longest_gaps;
        for (from, sample) in measure(&seen.packets).0 {
            let most = round_trip + late + gaps[0] + gaps[1] + gaps[2 + from];
            prop_assert!(sample.rtt / US <= most, "{} of {}", sample.rtt / US, most);
        }
    }

    /// A single flow may pass for a genuine one for a while, but few do.
    #[test]
    fn random_spin_bits_give_hardly_a_sample(seed in any::<u64>(), share in 1..10_u64) {
        let mut random = Random(seed | 1);
        let (mut samples, mut changes) = (0, 0);
        for _ in 0..30 {
            let mut at = 0;
            let packets: Vec<_> = (0..300).map(|_| {
                at += 1 + random.below(3000);
                (at, usize::from(random.below(10) < share), random.one_in(2))
            }).collect();
            let measured = measure(&packets);
            samples += measured.0.len();
            changes += measured.1;
        }
        prop_assert!(samples * 100 < changes, "{} of {}", samples, changes);
    }

    /// Firefox and Cloudflare do this.
    #[test]
    fn random_spin_bits_of_one_side_give_no_sample(seed in any::<u64>(), share in 1..10_u64) {
        let mut random = Random(seed | 1);
        let packets: Vec<_> = (0..2000).map(|number| {
            let from = usize::from(random.below(10) < share);
            (number * 500, from, from == 0 && random.one_in(2))
        }).collect();
        prop_assert_eq!(measure(&packets).0, vec![]);
    }
}
