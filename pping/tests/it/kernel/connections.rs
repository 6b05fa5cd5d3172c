//! Segments sent again and copied, SYNs that come again, and timestamps that cannot be used: in the fast path, in the slow
//! path, and under the rate limit, both families, as in user space.

use std::net::IpAddr;

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    method::{Method, Methods},
    parse::{LinkType, Untracked},
    rtt::Rules,
};

use super::{
    frames::{ACK, FIN, Ip, PSH, RST, SYN, TCP, Tcp, v4, v6},
    rig::{Program, Rig, flow_events, kernels, samples},
};

pub(super) const PAIRS: fn() -> [[IpAddr; 2]; 2] = || [[v4(1), v4(2)], [v6(1), v6(2)]];

/// A client and a server. The client's sequence numbers begin at 1,000, the server's at 9,000.
pub(super) struct Talk<'a> {
    pub(super) rig: &'a mut Rig,
    pub(super) hosts: [IpAddr; 2],
}

impl Talk<'_> {
    /// Sends a segment of the client (0) or the server (1). Without stamps it has no timestamps.
    pub(super) fn send(
        &mut self,
        from: usize,
        flags: u8,
        (sequence, payload, acknowledgement): (u32, usize, u32),
        stamps: Option<(u32, u32)>,
    ) {
        let ports = if from == 0 { (40_000, 443) } else { (443, 40_000) };
        let options =
            stamps.map_or_else(|| Tcp::with_options([]), |(tsval, tsecr)| Tcp::stamped(tsval, tsecr));
        let segment = Tcp { ports, flags, sequence, acknowledgement, payload, ..options };
        let frame = Ip::between(self.hosts[from], self.hosts[1 - from]).frame(TCP, &segment.bytes());
        self.rig.send([Program::Egress, Program::Ingress][from], &frame);
    }

    pub(super) fn shake(&mut self, number: u32, stamps: Option<(u32, u32)>) {
        let (low, high) = stamps.unzip();
        self.send(0, SYN, (number, 0, 0), low.map(|low| (low, 0)));
        self.send(1, SYN | ACK, (9_000, 0, number + 1), high.zip(low));
        self.send(0, ACK, (number + 1, 0, 9_001), low.map(|low| low + 1).zip(high));
    }

    /// Data of the client with a new `TSval`, and its echo.
    fn exchange(&mut self, sequence: u32, tsval: u32, echo: u32) {
        self.send(0, ACK | PSH, (sequence, 100, 9_001), Some((tsval, 500)));
        self.send(1, ACK, (9_001, 0, sequence + 100), Some((echo, tsval)));
    }

    /// The methods of the samples since the last call, in which kernel and user space must agree.
    fn found(&mut self) -> Vec<Method> {
        let number = |sample: &pping_common::abi::RttEvent| Method::ALL[usize::from(sample.method)];
        samples(&self.rig.agree("a connection")).iter().map(number).collect()
    }
}

/// Runs a test on both kinds of kernels, for both families.
fn each(rules: impl Fn(Rules) -> Rules, test: impl Fn(&mut Talk<'_>)) {
    for settings in kernels() {
        let rules = rules(settings.rules);
        let mut rig = Rig::with(LoadOptions { rules, ..settings }, LinkType::Ethernet);
        for hosts in PAIRS() {
            rig.start_over();
            test(&mut Talk { rig: &mut rig, hosts });
        }
    }
}

const LEGS: [Method; 2] = [Method::TcpHandshake; 2];

#[test]
fn what_is_sent_again_within_its_tick_gives_no_sample() {
    each(
        |rules| rules,
        |talk| {
            talk.shake(1_000, Some((7_000, 400)));
            assert_eq!(talk.found(), LEGS);
            // The segment itself, another one of its tick, one that repeats it in part, a keep-alive, a FIN.
            for (round, (sequence, payload, flags)) in
                [(0, 100, ACK | PSH), (100, 100, ACK), (150, 100, ACK), (199, 0, ACK), (200, 0, FIN | ACK)]
                    .into_iter()
                    .enumerate()
            {
                let (first, tsval) = (1_001 + 1_000 * round as u32, 7_100 + round as u32);
                let flagged =
                    if flags & FIN == 0 { (first + 100, 100, ACK) } else { (first + 200, 0, FIN | ACK) };
                talk.send(0, ACK | PSH, (first, 100, 9_001), Some((tsval, 400)));
                talk.send(0, flagged.2, (flagged.0, flagged.1, 9_001), Some((tsval, 400)));
                talk.send(0, flags, (first + sequence, payload, 9_001), Some((tsval, 400)));
                talk.send(1, ACK, (9_001, 0, first + 200), Some((401 + round as u32, tsval)));
                assert_eq!(talk.found(), [], "round {round}");
            }
        },
    );
}

#[test]
fn what_is_sent_again_in_another_tick_gives_one_from_then_on() {
    each(
        |rules| Rules { rate_limit: 0, ..rules },
        |talk| {
            talk.shake(1_000, Some((7_000, 400)));
            talk.exchange(1_001, 7_100, 401);
            talk.send(0, ACK | PSH, (1_101, 100, 9_001), Some((7_200, 401)));
            talk.send(0, ACK | PSH, (1_101, 100, 9_001), Some((7_300, 401)));
            talk.send(1, ACK, (9_001, 0, 1_201), Some((402, 7_300)));
            assert_eq!(
                talk.found(),
                [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs, Method::TcpTs]
            );
        },
    );
}

#[test]
fn retransmission_does_not_bypass_the_rate_limit() {
    each(
        |rules| Rules { rate_limit: 60_000_000_000, ..rules },
        |talk| {
            talk.shake(1_000, Some((7_000, 400)));
            talk.exchange(1_001, 7_100, 401);
            assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
            talk.send(0, ACK | PSH, (1_101, 100, 9_001), Some((7_200, 401)));
            talk.send(0, ACK | PSH, (1_101, 100, 9_001), Some((7_200, 401)));
            talk.send(1, ACK, (9_001, 0, 1_201), Some((402, 7_200)));
            assert_eq!(talk.found(), []);
        },
    );
}

#[test]
fn copies_of_each_frame_void_nothing() {
    for (methods, expected) in [
        (Methods::ALL, &[Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs][..]),
        (Methods::NONE.with(Method::TcpTs), &[Method::TcpTs; 3]),
    ] {
        each(
            // With the lowest RTT unknown, only this time counts.
            |rules| Rules { copy_within: 10_000_000_000, methods, ..rules },
            |talk| {
                let twice = |talk: &mut Talk<'_>, from, flags, numbers, stamps| {
                    talk.send(from, flags, numbers, Some(stamps));
                    talk.send(from, flags, numbers, Some(stamps));
                };
                twice(talk, 0, SYN, (1_000, 0, 0), (7_000, 0));
                twice(talk, 1, SYN | ACK, (9_000, 0, 1_001), (400, 7_000));
                twice(talk, 0, ACK, (1_001, 0, 9_001), (7_001, 400));
                // The server's data has no RTT before it.
                talk.send(1, ACK | PSH, (9_001, 100, 1_001), Some((402, 7_001)));
                talk.send(0, ACK, (1_001, 0, 9_101), Some((7_002, 402)));
                assert_eq!(talk.found(), expected);
            },
        );
    }
}

#[test]
fn a_handshake_that_passes_once_more_changes_nothing() {
    for stamps in [Some((7_000, 400)), None] {
        each(
            |rules| rules,
            |talk| {
                talk.shake(1_000, stamps);
                assert_eq!(talk.found(), LEGS);
                for round in 0..3 {
                    talk.shake(1_000, stamps);
                    assert_eq!(talk.found(), []);
                    let (sequence, tick) = (1_001 + 100 * round, 10 + round);
                    talk.send(0, ACK | PSH, (sequence, 100, 9_001), stamps.map(|_| (7_000 + tick, 400)));
                    talk.shake(1_000, stamps);
                    talk.send(1, ACK, (9_001, 0, sequence + 100), stamps.map(|_| (400 + tick, 7_000 + tick)));
                    let expected = if stamps.is_some() { Method::TcpTs } else { Method::TcpSeq };
                    assert_eq!(talk.found(), [expected], "round {round}");
                }
                talk.send(0, FIN | ACK, (1_301, 0, 9_001), stamps.map(|_| (7_100, 412)));
                talk.shake(1_000, stamps);
                assert_eq!(talk.found(), []);
            },
        );
    }
}

#[test]
fn a_syn_with_another_number_begins_anew_however_low_its_tsval() {
    each(
        |rules| rules,
        |talk| {
            talk.send(0, SYN, (900_000, 0, 0), Some((1_852_516_352, 0)));
            talk.send(0, SYN, (900_000, 0, 0), Some((1_852_517_352, 0)));
            talk.shake(1_000, Some((77, 400)));
            talk.exchange(1_001, 200, 401);
            assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
            // The same after a RST, and for a connection that was refused.
            talk.send(0, RST, (1_101, 0, 0), None);
            talk.shake(5_000, Some((20, 300)));
            talk.exchange(5_001, 200, 301);
            assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
            talk.send(1, RST, (9_001, 0, 0), None);
            talk.send(0, SYN, (8_000, 0, 0), Some((4, 0)));
            talk.send(1, RST | ACK, (0, 0, 8_001), None);
            talk.shake(8_000, Some((4, 300)));
            talk.exchange(8_001, 200, 301);
            assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
        },
    );
}

#[test]
fn reused_ports_are_measured_from_the_syn_ack_on() {
    for stamps in [Some((20, 300)), None] {
        each(
            |rules| rules,
            |talk| {
                talk.shake(1_000, Some((7_000, 400)));
                talk.exchange(1_001, 7_100, 401);
                assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
                talk.shake(700_000_000, stamps);
                talk.send(0, ACK | PSH, (700_000_001, 100, 9_001), stamps.map(|_| (200, 300)));
                talk.send(1, ACK, (9_001, 0, 700_000_101), stamps.map(|_| (301, 200)));
                let expected = if stamps.is_some() { Method::TcpTs } else { Method::TcpSeq };
                assert_eq!(talk.found(), [Method::TcpHandshake, expected]);
            },
        );
    }
}

#[test]
fn forged_rst_and_syn_do_not_affect_connections() {
    const FORGED: u64 = 5;
    for stamps in [Some((7_000, 400)), None] {
        each(
            |rules| rules,
            |talk| {
                let before = talk.rig.twin.counters.untracked[Untracked::OutOfWindow as usize];
                talk.shake(1_000, stamps);
                talk.send(1, ACK | PSH, (9_001, 10, 1_001), stamps.map(|_| (401, 7_001)));
                talk.send(0, ACK, (1_001, 0, 9_011), stamps.map(|_| (7_002, 401)));
                talk.rig.agree("a handshake");
                for round in 0..10 {
                    let sequence = 1_001 + 100 * round;
                    let [tsval, echo] = [7_100 + round, 402 + round];
                    talk.send(0, ACK | PSH, (sequence, 100, 9_011), stamps.map(|_| (tsval, 401)));
                    talk.send(0, RST, (sequence + 65_700, 0, 0), None);
                    talk.send(1, RST | ACK, (0x9000_0000, 0, 0x7000_0000), None);
                    talk.send(0, SYN, (77_000 * round, 0, 0), stamps.map(|_| (round, 0)));
                    talk.send(1, SYN, (500_000 + round, 0, 0), Some((round, 0)));
                    talk.send(1, SYN | ACK, (60_000_000 + round, 0, 4_711), Some((round, 0)));
                    talk.send(1, ACK, (9_011, 0, sequence + 100), stamps.map(|_| (echo, tsval)));
                    let events = talk.rig.agree("forged segments");
                    assert_eq!(flow_events(&events), [], "round {round}");
                    assert_eq!(samples(&events).len(), 1, "round {round}");
                }
                let counted = talk.rig.twin.counters.untracked[Untracked::OutOfWindow as usize] - before;
                assert_eq!(counted, 10 * FORGED);
                talk.send(0, RST, (2_001, 0, 0), None);
                assert_eq!(flow_events(&talk.rig.agree("the RST of the client")).len(), 2);
            },
        );
    }
}

#[test]
fn timestamps_that_stop_give_way_to_sequence_numbers() {
    each(
        |rules| rules,
        |talk| {
            talk.shake(1_000, Some((7_000, 400)));
            talk.exchange(1_001, 7_100, 401);
            assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
            for round in 0..10 {
                talk.send(0, ACK | PSH, (1_101 + 100 * round, 100, 9_001), None);
                talk.send(1, ACK, (9_001, 0, 1_201 + 100 * round), None);
            }
            assert_eq!(talk.found(), [Method::TcpSeq; 8]);
            // They do not come back.
            for round in 0..3 {
                talk.exchange(2_101 + 100 * round, 9_000 + round, 500 + round);
            }
            assert_eq!(talk.found(), [Method::TcpSeq; 3]);
        },
    );
}

#[test]
fn still_clock_falls_back_to_sequence_numbers() {
    for constant in [0, 4_711] {
        each(
            |rules| Rules { still_clock: 0, ..rules },
            |talk| {
                talk.shake(1_000, Some((7_000, constant)));
                talk.exchange(1_001, 7_100, constant);
                assert_eq!(talk.found(), [Method::TcpHandshake, Method::TcpHandshake, Method::TcpTs]);
                talk.send(1, ACK | PSH, (9_001, 100, 1_101), Some((constant, 7_100)));
                talk.send(0, ACK | PSH, (1_101, 100, 9_101), Some((7_300, constant)));
                talk.send(1, ACK, (9_101, 0, 1_201), Some((constant, 7_300)));
                assert_eq!(talk.found(), [Method::TcpSeq; 2]);
            },
        );
    }
}

#[test]
fn clock_stopped_after_handshake_falls_back_to_seq() {
    each(
        |rules| Rules { still_clock: 0, ..rules },
        |talk| {
            // As behind a SYN proxy, which answers by its own clock.
            talk.shake(1_000, Some((7_000, 4_711)));
            talk.send(1, ACK | PSH, (9_001, 100, 1_001), Some((5_000, 7_001)));
            talk.send(0, ACK | PSH, (1_001, 100, 9_101), Some((7_100, 5_000)));
            talk.found();
            talk.send(1, ACK | PSH, (9_101, 100, 1_101), Some((5_000, 7_100)));
            talk.found();
            talk.send(0, ACK | PSH, (1_101, 100, 9_201), Some((7_300, 5_000)));
            talk.send(1, ACK, (9_201, 0, 1_201), Some((5_000, 7_300)));
            assert_eq!(talk.found(), [Method::TcpSeq; 2]);
        },
    );
}

#[test]
fn unusable_timestamps_are_counted_without_tcp_seq() {
    each(
        |rules| Rules { methods: Methods::NONE.with(Method::TcpTs), still_clock: 0, ..rules },
        |talk| {
            talk.shake(1_000, Some((7_000, 0)));
            for round in 0..5 {
                talk.send(1, ACK | PSH, (9_001 + 100 * round, 100, 1_001), Some((0, 7_001)));
            }
            // The other end is measured still.
            talk.send(0, ACK | PSH, (1_001, 100, 9_501), Some((9_300, 0)));
            talk.send(1, ACK, (9_501, 0, 1_101), Some((0, 9_300)));
            assert_eq!(talk.found().len(), 3);
            assert_eq!(talk.rig.twin.counters.untracked[Untracked::UnusableTimestamp as usize], 4);
        },
    );
}
