//! An interface that forwards to itself: each packet passes both of its hooks, and counts once.

use std::net::IpAddr;

use pping_common::parse::{Direction, LinkType, Untracked};

use super::{
    frames::{echo, v4, v6},
    random::Random,
    rig::{Program, Rig, Timeless, kernels, samples},
    talk::{Connection, Ping, Temper},
};

/// How many packets come in before the first of them goes out.
const BATCHES: [usize; 2] = [1, 8];

fn pairs() -> [[IpAddr; 2]; 2] {
    [[v4(1), v4(9)], [v6(9), v6(3)]]
}

fn copies(rig: &Rig) -> u64 {
    rig.twin.counters.untracked[Untracked::OtherHook as usize]
}

/// The same frames for each seed.
fn frames(seed: u64, temper: Temper) -> Vec<Vec<u8>> {
    let mut random = Random::seeded(seed);
    let mut connections: Vec<Connection> =
        pairs().into_iter().map(|hosts| Connection::new(hosts, 40_000, temper, &mut random)).collect();
    let mut pings: Vec<Ping> = pairs().into_iter().map(|hosts| Ping::new(hosts, 77)).collect();
    (0..1500)
        .map(|_| {
            let number = random.below(2);
            if random.chance(10) {
                pings[number].next(&mut random).1
            } else {
                connections[number].next(&mut random).1
            }
        })
        .collect()
}

#[test]
fn packets_at_both_hooks_count_once() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for temper in [Temper::Calm, Temper::Wild] {
            let frames = frames(7, temper);
            rig.start_over();
            for frame in &frames {
                rig.send(Program::Ingress, frame);
            }
            let once: Vec<Timeless> = rig.agree("once").iter().map(Timeless::from).collect();
            rig.agree_on_series("once");
            let counted_once = rig.twin.counters;
            assert!(once.len() > 100, "{temper:?}: {counted_once:?}");
            // A calm host sends nothing again.
            assert_eq!(counted_once.retransmissions[0] > 0, temper == Temper::Wild, "{counted_once:?}");
            assert_eq!(copies(&rig), 0);

            for batch in BATCHES {
                let what = format!("{temper:?}, {batch} at a time");
                rig.start_over();
                // Until each flow has begun, packets that belong to none come in between.
                let (first, others) = frames.split_at(100);
                for batch in first.chunks(1).chain(others.chunks(batch)) {
                    for program in [Program::Ingress, Program::Egress] {
                        for frame in batch {
                            rig.send(program, frame);
                        }
                    }
                }
                let twice: Vec<Timeless> = rig.agree(&what).iter().map(Timeless::from).collect();
                rig.agree_on_series(&what);
                let counted = rig.twin.counters;
                assert_eq!(once, twice, "{what}");
                assert_eq!(counted.retransmissions, counted_once.retransmissions, "{what}");
                assert_eq!(counted.reordered, counted_once.reordered, "{what}");
                assert_eq!(counted.samples, counted_once.samples, "{what}");
                // The interface itself carried each packet twice.
                let packets = Direction::ALL.map(|direction| counted.packets(direction));
                assert_eq!(packets, [frames.len() as u64; 2], "{what}");
                // Other packets are of no flow, or not measured, at either hook. What the other end would not take is a
                // packet of its flow.
                let refused = counted_once.untracked[Untracked::OutOfWindow as usize];
                let not_measured = counted_once.untracked.iter().sum::<u64>() - refused;
                assert_eq!(copies(&rig), frames.len() as u64 - not_measured, "{what}");
            }
        }
    }
}

#[test]
fn moved_host_is_measured_after_a_second() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for [here, there] in pairs() {
            // A second ends, and with it what was sent in it.
            let second = |rig: &mut Rig| rig.agree_on_series("a second");
            let mut sequence = 0;
            let mut ping = |rig: &mut Rig, there_and_back: [Program; 2]| {
                sequence += 1;
                let [out, back] = there_and_back;
                rig.send(out, &echo(here, there, 7, sequence, false));
                rig.send(back, &echo(there, here, 7, sequence, true));
                samples(&rig.agree("a ping")).len()
            };
            let (before, after) = ([Program::Ingress, Program::Egress], [Program::Egress, Program::Ingress]);
            assert_eq!(ping(&mut rig, before), 1);
            assert_eq!(ping(&mut rig, after), 0, "as if forged");
            second(&mut rig);
            assert_eq!(ping(&mut rig, before), 1, "some of this second came where they did before");
            second(&mut rig);
            rig.send(Program::Ingress, &echo(here, there, 7, 1000, false));
            second(&mut rig);
            assert_eq!(ping(&mut rig, after), 0);
            second(&mut rig);
            assert_eq!(ping(&mut rig, after), 1);
            assert_eq!(ping(&mut rig, before), 0);
            // What was sent before the move may have been answered meanwhile.
            rig.send(Program::Ingress, &echo(there, here, 7, 1000, true));
            assert_eq!(samples(&rig.agree("a late reply")).len(), 0);
            second(&mut rig);
        }
    }
}
