//! Echo requests, many of which are never answered.

use std::{net::IpAddr, thread, time::Duration};

use super::{
    frames::{echo, v4, v6},
    random::Random,
    rig::{Program, Rig, kernels, samples},
};
use pping_common::parse::LinkType;

const PAIRS: fn() -> [[IpAddr; 2]; 2] = || [[v4(1), v4(2)], [v6(1), v6(2)]];
const ID: u16 = 77;

#[test]
fn unanswered_requests_keep_no_later_one_from_being_measured() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for [here, there] in PAIRS() {
            // As mtr does over 12 hops: only the last one answers.
            for round in 0..20 {
                for hop in 0..12 {
                    rig.send(Program::Egress, &echo(here, there, ID, 12 * round + hop, false));
                }
                rig.send(Program::Ingress, &echo(there, here, ID, 12 * round + 11, true));
                let found = samples(&rig.agree("mtr"));
                assert_eq!(found.len(), 1, "{here}, round {round}");
                assert_eq!(found[0].identifier, u32::from(12 * round + 11));
            }
            assert_eq!(rig.twin.counters.pending_full, 0);
            assert!(rig.twin.counters.gave_way > 0);
        }
        let counters = rig.twin.counters;
        assert_eq!((counters.echo_requests, counters.echo_replies), (2 * 20 * 12, 2 * 20));
        assert_eq!(counters.echo_not_awaited, 0);
    }
}

#[test]
fn echoes_match_as_in_user_space() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        let mut random = Random::seeded(3);
        let (mut sent, mut found) = (0_u16, 0);
        for step in 1..=4000 {
            let [here, there] = PAIRS()[random.below(2)];
            let (from, to, program) = if random.chance(80) {
                (here, there, Program::Egress)
            } else {
                (there, here, Program::Ingress)
            };
            if random.chance(60) {
                sent = sent.wrapping_add(1);
                rig.send(program, &echo(from, to, ID, sent, false));
            } else {
                let back = Program::ALL[if program == Program::Egress { 1 } else { 2 }];
                let answered = sent.wrapping_sub(random.below(40) as u16);
                rig.send(back, &echo(to, from, ID, answered, true));
            }
            if step % 500 == 0 {
                found += samples(&rig.agree(&format!("up to step {step}"))).len();
            }
        }
        assert!(found > 200, "{found}");
        assert!(rig.twin.counters.gave_way > 100, "{}", rig.twin.counters.gave_way);
        assert_eq!(rig.twin.counters.echo_replies, found as u64, "there is no limit");
    }
}

#[test]
fn requests_and_replies_are_counted_whatever_becomes_of_samples() {
    for mut settings in kernels() {
        // This is longer than the test takes.
        settings.rules.rate_limit = 3_600_000_000_000;
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for [here, there] in PAIRS() {
            let before = rig.twin.counters;
            // One is sent twice, and one answered twice.
            for sequence in [1, 2, 3, 4, 5, 2] {
                if sequence == 5 {
                    // The next one is no copy.
                    thread::sleep(Duration::from_millis(2));
                }
                rig.send(Program::Egress, &echo(here, there, ID, sequence, false));
            }
            for sequence in [1, 2, 3, 3] {
                rig.send(Program::Ingress, &echo(there, here, ID, sequence, true));
            }
            assert_eq!(samples(&rig.agree("one in an hour")).len(), 1);
            let mut counters = rig.twin.counters;
            counters.subtract(&before);
            assert_eq!((counters.echo_requests, counters.echo_replies), (5, 2), "{here}");
            assert_eq!(counters.echo_not_awaited, 1, "{here}: the one that was sent again");
            // More than there is room for: nobody waits for most of them.
            for sequence in 100..140 {
                rig.send(Program::Egress, &echo(here, there, ID, sequence, false));
            }
            rig.agree("too many");
            assert!(rig.twin.counters.echo_not_awaited >= 20, "{}", rig.twin.counters.echo_not_awaited);
        }
    }
}
