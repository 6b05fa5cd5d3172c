//! What somebody beside the path can send who knows addresses and ports, but not the numbers of the packets: the samples of
//! honest hosts stay as they were, in kernel and user space.

use std::net::IpAddr;

use pping_common::{
    method::Method,
    parse::{LinkType, Untracked},
};

use super::{
    connections::{PAIRS, Talk},
    frames::{ACK, FIN, Ip, PSH, RST, SYN, TCP, Tcp, echo, v4},
    random::Random,
    rig::{Program, Rig, flow_events, kernels, samples},
};

const ROUNDS: u32 = 10;

fn counted(talk: &Talk<'_>, reason: Untracked) -> u64 {
    talk.rig.twin.counters.untracked[reason as usize]
}

/// Lets two hosts talk, with `forged` between data and its ACK, and asserts that each round has its sample and nothing else.
fn assert_unchanged(has_timestamps: bool, forged: impl Fn(&mut Talk<'_>, &mut Random, u32)) {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for hosts in PAIRS() {
            rig.start_over();
            rig.set_two_arms(true);
            let mut random = Random::seeded(3);
            let mut talk = Talk { rig: &mut rig, hosts };
            let stamps = |tsval, tsecr| has_timestamps.then_some((tsval, tsecr));
            talk.shake(1_000, stamps(7_000, 400));
            talk.send(1, ACK | PSH, (9_001, 10, 1_001), stamps(401, 7_001));
            talk.send(0, ACK, (1_001, 0, 9_011), stamps(7_002, 401));
            talk.rig.agree("a handshake");
            for round in 0..ROUNDS {
                let sequence = 1_001 + 100 * round;
                talk.send(0, ACK | PSH, (sequence, 100, 9_011), stamps(7_100 + round, 401));
                forged(&mut talk, &mut random, sequence);
                talk.send(1, ACK, (9_011, 0, sequence + 100), stamps(402 + round, 7_100 + round));
                let events = talk.rig.agree("forged packets");
                assert_eq!(flow_events(&events), [], "round {round}");
                let methods: Vec<u8> = samples(&events).iter().map(|sample| sample.method).collect();
                let expected = if has_timestamps { Method::TcpTs } else { Method::TcpSeq };
                assert_eq!(methods, [expected as u8], "round {round}");
            }
            let counters = &talk.rig.twin.counters;
            assert_eq!((counters.retransmissions, counters.reordered), ([0; 2], [0; 2]));
        }
    }
}

#[test]
fn segments_with_other_numbers_change_nothing() {
    for has_timestamps in [true, false] {
        assert_unchanged(has_timestamps, |talk, random, sequence| {
            let before = counted(talk, Untracked::OutOfWindow);
            let half = sequence ^ 1 << 31;
            let stamps = |tsval| has_timestamps.then_some((tsval, 0));
            talk.send(0, ACK | PSH, (half, 100, 9_011), stamps(7_100));
            talk.send(0, ACK, (half, 0, 9_011), stamps(0x4000_0000));
            talk.send(0, ACK, (half, 0, 9_011), stamps(0xc000_0000));
            talk.send(0, FIN | ACK, (half, 0, 9_011), stamps(7_100));
            talk.send(1, ACK, (0x7000_0000, 0, half), stamps(402));
            talk.send(1, ACK | PSH, (0x9000_0000, 100, sequence + 100), stamps(402));
            talk.send(0, RST, (half, 0, 0), None);
            talk.send(0, SYN, (random.next() as u32, 0, 0), stamps(1));
            talk.send(1, SYN | ACK, (random.next() as u32, 0, 4_711), stamps(1));
            assert_eq!(counted(talk, Untracked::OutOfWindow) - before, 9);
        });
    }
}

#[test]
fn timestamps_that_no_clock_can_have_change_nothing() {
    // Somebody who has guessed the other numbers, but not the clock.
    assert_unchanged(true, |talk, _, sequence| {
        talk.send(0, ACK, (sequence + 100, 0, 9_011), Some((0x4000_0000, 401)));
        talk.send(1, ACK, (9_011, 0, sequence), Some((0x4000_0000, 0)));
    });
}

#[test]
fn packets_from_the_wrong_side_change_nothing() {
    assert_unchanged(true, |talk, _, sequence| {
        let before = counted(talk, Untracked::OtherHook);
        let hosts = talk.hosts;
        // They come in by the interface by which those of the other host come in.
        let segment = Tcp {
            ports: (40_000, 443),
            flags: ACK | PSH,
            sequence: sequence + 100,
            acknowledgement: 9_011,
            payload: 100,
            ..Tcp::stamped(7_150, 401)
        };
        talk.rig.send(Program::Ingress, &Ip::between(hosts[0], hosts[1]).frame(TCP, &segment.bytes()));
        assert_eq!(counted(talk, Untracked::OtherHook) - before, 1);
    });
}

/// Sends a handshake, data and pings between two hosts, all by `hooks`. Returns how many samples there are.
fn conversation(rig: &mut Rig, hosts: [IpAddr; 2], hooks: [&[Program]; 2]) -> usize {
    let mut send = |from: usize, frame: &[u8]| {
        for &hook in hooks[from] {
            rig.send(hook, frame);
        }
    };
    let mut segment =
        |from: usize, flags: u8, (sequence, payload, acknowledgement): (u32, usize, u32), stamps| {
            let ports = if from == 0 { (40_000, 443) } else { (443, 40_000) };
            let (tsval, tsecr) = stamps;
            let tcp = Tcp { ports, flags, sequence, acknowledgement, payload, ..Tcp::stamped(tsval, tsecr) };
            send(from, &Ip::between(hosts[from], hosts[1 - from]).frame(TCP, &tcp.bytes()));
        };
    segment(0, SYN, (1_000, 0, 0), (10, 0));
    segment(1, SYN | ACK, (9_000, 0, 1_001), (500, 10));
    segment(0, ACK, (1_001, 0, 9_001), (11, 500));
    for round in 0..5 {
        segment(0, ACK | PSH, (1_001 + 100 * round, 100, 9_001), (20 + round, 500));
        segment(1, ACK, (9_001, 0, 1_101 + 100 * round), (510 + round, 20 + round));
    }
    for sequence in 0..5 {
        send(0, &echo(hosts[0], hosts[1], 9, sequence, false));
        send(1, &echo(hosts[1], hosts[0], 9, sequence, true));
    }
    samples(&rig.agree("a conversation")).len()
}

#[test]
fn same_hook_gives_no_sample_between_two_arms() {
    const IN: &[Program] = &[Program::Ingress];
    const OUT: &[Program] = &[Program::Egress];
    /// As a router with one arm forwards.
    const BOTH: &[Program] = &[Program::Ingress, Program::Egress];
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for hosts in PAIRS() {
            for (has_two_arms, hooks, expected) in [
                (true, [OUT, IN], 12),
                (true, [IN, OUT], 12),
                (true, [IN, IN], 0),
                (true, [OUT, OUT], 0),
                // The forged answer is forwarded to him who forged the question.
                (true, [IN, BOTH], 0),
                (true, [BOTH, IN], 0),
                // Two hosts behind one interface: all but what comes before a copy of each was seen.
                (true, [BOTH, BOTH], 9),
                (false, [BOTH, BOTH], 12),
                (false, [IN, IN], 12),
            ] {
                rig.start_over();
                rig.set_two_arms(has_two_arms);
                let found = conversation(&mut rig, hosts, hooks);
                assert_eq!(found, expected, "two arms: {has_two_arms}, {hooks:?}");
                let refused = rig.twin.counters.untracked[Untracked::SameHook as usize];
                assert_eq!(refused > 0, expected < 12, "{refused}");
            }
        }
    }
}

#[test]
fn an_answer_that_nobody_asked_for_gives_no_sample() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        rig.set_two_arms(true);
        let [here, there] = [v4(1), v4(2)];
        for sequence in 0..20 {
            rig.send(Program::Egress, &echo(here, there, 9, sequence, false));
            for guess in 1..5 {
                rig.send(Program::Ingress, &echo(there, here, 9, sequence + 100 * guess, true));
                rig.send(Program::Ingress, &echo(there, here, 9 + guess, sequence, true));
            }
        }
        assert_eq!(samples(&rig.agree("guesses")).len(), 0);
    }
}
