//! Echo requests, many of which are never answered.

use std::net::IpAddr;

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
    }
}

#[test]
fn requests_and_replies_of_both_ends_in_any_order_match_as_in_user_space() {
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
    }
}
