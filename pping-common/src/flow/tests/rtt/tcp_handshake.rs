//! `tcp-handshake`. The low end begins with sequence number 999; the high end answers with 4,999.

use std::vec::Vec;

use crate::{
    flow::{Endpoint, Outcome},
    limits::AHEAD,
    method::{Method, Methods},
    parse::{Timestamps, Transport},
    rtt::{RttSummary, Sample},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, bare, samples, segment},
};

const ONLY: Methods = Methods::NONE.with(Method::TcpHandshake);

fn begun() -> Conversation {
    Conversation::by(ONLY)
}

fn syn() -> Transport {
    bare(SYN, 999, 0, 0)
}

fn syn_ack() -> Transport {
    bare(SYN | ACK, 4_999, 0, 1_000)
}

fn ack() -> Transport {
    bare(ACK, 1_000, 0, 5_000)
}

/// The identifier of the leg, and the RTT in ms.
fn rtt(outcome: Outcome) -> Option<(u32, u64)> {
    let samples = samples(outcome);
    assert!(samples.iter().all(|&(method, _, _)| method == Method::TcpHandshake));
    samples.first().map(|&(_, identifier, rtt)| (identifier, rtt))
}

#[test]
fn each_leg_is_timed() {
    let mut talk = begun();
    assert_eq!(rtt(talk.low(10, syn())), None);
    let sample = talk.high(30, syn_ack()).measured.sample();
    let expected = Sample { method: Method::TcpHandshake, identifier: 1_000, rtt: 20 * MS, side_rtt: 0 };
    assert_eq!(sample, Some(expected));
    assert_eq!(rtt(talk.low(35, ack())), Some((5_000, 5)));
    assert_eq!((talk.flow.rtt(Endpoint::Low).min, talk.flow.rtt(Endpoint::High).min), (20 * MS, 5 * MS));
    assert_eq!(
        (talk.flow.rtt(Endpoint::Low).smoothed, talk.flow.rtt(Endpoint::High).smoothed),
        (20 * MS, 5 * MS)
    );
}

#[test]
fn h1_a_syn_sent_again_voids_its_leg() {
    let mut talk = begun();
    talk.low(10, syn());
    talk.low(1_010, syn());
    assert_eq!(rtt(talk.high(1_030, syn_ack())), None);
    // The other leg is not affected.
    assert_eq!(rtt(talk.low(1_035, ack())), Some((5_000, 5)));
}

#[test]
fn h1_a_syn_ack_sent_again_voids_its_leg() {
    let mut talk = begun();
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(30, syn_ack())), Some((1_000, 20)));
    assert_eq!(rtt(talk.high(1_030, syn_ack())), None);
    assert_eq!(rtt(talk.low(1_035, ack())), None);
}

#[test]
fn h1_a_void_leg_stays_void() {
    let mut talk = begun();
    for ms in [10, 1_010, 3_010, 7_010] {
        talk.low(ms, syn());
    }
    assert_eq!(rtt(talk.high(7_030, syn_ack())), None);
}

#[test]
fn h1_a_leg_that_is_done_stays_done() {
    let mut talk = begun();
    talk.low(10, syn());
    talk.high(30, syn_ack());
    // The client retransmitted its SYN before it got the reply.
    talk.low(31, syn());
    assert_eq!(rtt(talk.high(50, syn_ack())), None);
}

#[test]
fn h1_a_syn_with_another_number_begins_another_leg() {
    let mut talk = begun();
    talk.low(10, syn());
    talk.low(20, syn());
    talk.low(1_000, bare(SYN, 1_999, 0, 0));
    assert_eq!(rtt(talk.high(1_010, syn_ack())), None);
    assert_eq!(rtt(talk.high(1_020, bare(SYN | ACK, 4_999, 0, 2_000))), Some((2_000, 20)));
}

#[test]
fn h1_a_syn_ack_with_another_number_begins_another_leg() {
    let mut talk = begun();
    talk.low(10, syn());
    talk.high(30, syn_ack());
    talk.high(40, bare(SYN | ACK, 77, 0, 1_000));
    assert_eq!(rtt(talk.low(45, bare(ACK, 1_000, 0, 78))), Some((78, 5)));
}

#[test]
fn h1_ports_that_are_used_again_have_new_legs() {
    let mut talk = begun();
    talk.low(10, syn());
    talk.high(30, syn_ack());
    talk.low(35, ack());
    talk.low(40, bare(FIN | ACK, 1_000, 0, 5_000));
    talk.high(45, bare(FIN | ACK, 5_000, 0, 1_001));
    // A new connection is timed even with the same number, once that can be no copy any more.
    talk.low(11_000, syn());
    assert_eq!(rtt(talk.high(11_007, syn_ack())), Some((1_000, 7)));
    assert_eq!(rtt(talk.low(11_010, ack())), Some((5_000, 3)));
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 7 * MS);
    // So is one that the other end begins.
    talk.low(11_500, bare(RST, 1_000, 0, 0));
    talk.high(12_000, bare(SYN, 10, 0, 0));
    assert_eq!(rtt(talk.low(12_004, bare(SYN | ACK, 20, 0, 11))), Some((11, 4)));
}

#[test]
fn h1_retry_after_a_refusal_is_timed() {
    let mut talk = begun();
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(20, bare(RST | ACK, 0, 0, 1_000))), None);
    talk.low(1_000, syn());
    assert_eq!(rtt(talk.high(1_020, syn_ack())), Some((1_000, 20)));
}

#[test]
fn h2_a_syn_is_replied_to_by_syn_and_ack_alone() {
    for flags in [ACK, PSH | ACK, FIN | ACK, SYN] {
        let mut talk = begun();
        talk.low(10, syn());
        assert_eq!(rtt(talk.high(20, bare(flags, 4_999, 0, 1_000))), None, "{flags:#x}");
    }
    let mut talk = begun();
    talk.low(10, syn());
    talk.high(20, bare(ACK, 7_000, 0, 1_000));
    assert_eq!(rtt(talk.high(30, syn_ack())), Some((1_000, 20)), "it waits on");
}

#[test]
fn h2_a_syn_ack_is_replied_to_by_the_first_ack_without_syn() {
    for (flags, payload) in [(ACK, 0), (ACK | PSH, 100), (ACK | FIN, 0)] {
        let mut talk = begun();
        talk.low(10, syn());
        talk.high(30, syn_ack());
        assert_eq!(rtt(talk.low(33, bare(PSH, 1_000, 10, 5_000))), None, "without ACK");
        assert_eq!(rtt(talk.low(35, bare(flags, 1_000, payload, 5_000))), Some((5_000, 5)));
        assert_eq!(rtt(talk.low(36, bare(flags, 1_000, payload, 5_000))), None);
    }
}

#[test]
fn h2_a_syn_ack_is_timed_although_its_syn_was_not_seen() {
    let mut talk = begun();
    assert_eq!(rtt(talk.high(30, syn_ack())), None);
    assert_eq!(rtt(talk.low(35, ack())), Some((5_000, 5)));
}

#[test]
fn h2_what_came_with_the_syn_is_acknowledged_or_not() {
    for (acknowledgement, expected) in [
        (1_000, Some((1_000, 20))),
        (1_050, Some((1_000, 20))),
        (999, None),
        (1_001, None),
        (1_049, None),
        (1_051, None),
    ] {
        let mut talk = begun();
        talk.low(10, bare(SYN, 999, 50, 0));
        let syn_ack = bare(SYN | ACK, 4_999, 0, acknowledgement);
        assert_eq!(rtt(talk.high(30, syn_ack)), expected, "{acknowledgement}");
    }
    // Data in a SYN-ACK works the same way.
    let mut talk = begun();
    talk.high(30, bare(SYN | ACK, 4_999, 50, 1_000));
    assert_eq!(rtt(talk.low(35, bare(ACK, 1_000, 0, 5_050))), Some((5_000, 5)));
}

#[test]
fn h2_an_older_number_changes_nothing() {
    for number in [4_999, 0, 5_000_u32.wrapping_sub(1 << 31)] {
        let mut talk = begun();
        talk.high(30, syn_ack());
        assert_eq!(rtt(talk.low(31, bare(ACK, 1_000, 0, number))), None);
        assert_eq!(rtt(talk.low(35, ack())), Some((5_000, 5)), "{number}");
    }
}

#[test]
fn h2_a_newer_number_ends_the_leg() {
    for number in [5_001, 5_000 + AHEAD] {
        let mut talk = begun();
        talk.high(30, syn_ack());
        assert_eq!(rtt(talk.low(31, bare(ACK, 1_000, 0, number))), None);
        assert_eq!(rtt(talk.low(35, ack())), None, "{number}");
    }
}

#[test]
fn h2_a_number_within_what_came_with_the_syn_changes_nothing() {
    let mut talk = begun();
    talk.high(30, bare(SYN | ACK, 4_999, 50, 1_000));
    assert_eq!(rtt(talk.low(31, bare(ACK, 1_000, 0, 5_020))), None);
    assert_eq!(rtt(talk.low(35, bare(ACK, 1_000, 0, 5_050))), Some((5_000, 5)));
}

#[test]
fn h2_numbers_wrap_around() {
    let mut talk = begun();
    talk.low(10, bare(SYN, u32::MAX, 0, 0));
    talk.high(30, bare(SYN | ACK, u32::MAX - 20, 50, 0));
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 20 * MS);
    assert_eq!(rtt(talk.low(35, bare(ACK, 0, 0, 30))), Some((u32::MAX - 19, 5)));
}

#[test]
fn h2_simultaneous_syns_are_replied_to_once() {
    let mut talk = begun();
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(12, bare(SYN, 4_999, 0, 0))), None);
    assert_eq!(rtt(talk.low(20, bare(SYN | ACK, 999, 0, 5_000))), Some((5_000, 8)));
    // With this segment, the low end has sent its SYN twice.
    assert_eq!(rtt(talk.high(22, syn_ack())), None);
    assert_eq!(rtt(talk.low(25, ack())), None);
}

#[test]
fn h3_a_rst_of_either_side_ends_both_legs() {
    for is_low in [true, false] {
        for flags in [RST, RST | ACK] {
            let mut talk = begun();
            talk.low(10, syn());
            let rst = bare(flags, 999, 0, 5_000);
            if is_low {
                talk.low(20, rst)
            } else {
                talk.high(20, rst)
            };
            // Who has not sent anything must show that it knows what the other end sent (RFC 9293, 3.10.7.3).
            assert_eq!(rtt(talk.high(30, syn_ack())), (!is_low && flags == RST).then_some((1_000, 20)));
            let mut talk = begun();
            talk.high(10, syn_ack());
            if is_low {
                talk.low(20, rst)
            } else {
                talk.high(20, rst)
            };
            assert_eq!(rtt(talk.low(30, ack())), (is_low && flags == RST).then_some((5_000, 20)));
        }
    }
}

#[test]
fn h3_legs_take_no_part_in_limits_and_slots() {
    let mut talk = Conversation::by(ONLY.with(Method::TcpSeq));
    talk.rules.rate_limit = 1_000 * MS;
    talk.low(10, syn());
    talk.high(30, syn_ack());
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 0));
    assert_eq!((talk.flow.rtt(Endpoint::Low).recorded_at, talk.flow.rtt(Endpoint::High).recorded_at), (0, 0));
    talk.low(35, bare(ACK, 1_000, 100, 5_000));
    assert_eq!(talk.pending_count(), 1, "the first that counts");
    // This recording does not limit the next connection.
    talk.low(38, bare(RST, 1_100, 0, 0));
    talk.low(40, bare(SYN, 77, 0, 0));
    assert_eq!(rtt(talk.high(45, bare(SYN | ACK, 88, 0, 78))), Some((78, 5)));
}

#[test]
fn h3_legs_to_a_local_address_are_not_timed() {
    let mut talk = begun();
    talk.flow.locked.facts = crate::testing::local(2);
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(30, syn_ack())), None);
    assert_eq!(rtt(talk.low(35, ack())), Some((5_000, 5)));
    let mut talk = begun();
    talk.flow.locked.facts = crate::testing::local(1);
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(30, syn_ack())), Some((1_000, 20)));
    assert_eq!(rtt(talk.low(35, ack())), None);
    let mut talk = begun();
    talk.flow.locked.facts = crate::testing::local(3);
    talk.rules.include_local = true;
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(30, syn_ack())), Some((1_000, 20)));
    assert_eq!(rtt(talk.low(35, ack())), Some((5_000, 5)));
}

#[test]
fn h3_a_reply_from_before_its_leg_is_no_sample() {
    let mut talk = begun();
    talk.low(10, syn());
    assert_eq!(rtt(talk.high(9, syn_ack())), None);
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, RttSummary::NO_RTT);
    assert_eq!(rtt(talk.high(30, bare(SYN | ACK, 5_555, 0, 1_000))), None, "it is done");
}

#[test]
fn h3_legs_do_not_outlive_packets_that_were_missed() {
    for is_missed in [true, false] {
        let mut talk = begun();
        talk.low(10, syn());
        if is_missed {
            talk.flow.hot.contended = 1;
        } else {
            talk.flow.set_clock_back(6);
        }
        assert_eq!(rtt(talk.high(30, syn_ack())), None);
        assert_eq!(rtt(talk.low(35, ack())), Some((5_000, 5)), "those that follow are timed");
    }
}

/// A handshake with timestamps.
fn with_timestamps() -> [Transport; 3] {
    let mut all = [syn(), syn_ack(), ack()];
    for (transport, (tsval, tsecr)) in all.iter_mut().zip([(100, 0), (500, 100), (101, 500)]) {
        transport.segment.has_timestamps = true;
        transport.segment.timestamps = Timestamps { tsval, tsecr };
    }
    all
}

#[test]
fn h4_syns_are_left_to_their_legs() {
    let seq = Methods::NONE.with_seq_always();
    let auto = Methods::NONE.with(Method::TcpTs).with(Method::TcpSeq);
    for methods in [auto, seq, seq.with(Method::TcpTs)] {
        for [syn, syn_ack, ack] in [[syn(), syn_ack(), ack()], with_timestamps()] {
            let mut talk = Conversation::by(methods.with(Method::TcpHandshake));
            assert_eq!(samples(talk.low(10, syn)), []);
            assert_eq!(talk.pending_count(), 0);
            assert_eq!(samples(talk.high(30, syn_ack)), [(Method::TcpHandshake, 1_000, 20)]);
            assert_eq!(talk.flow.pending(Endpoint::High).count(), 0);
            assert_eq!(samples(talk.low(35, ack)), [(Method::TcpHandshake, 5_000, 5)]);
        }
    }
}

#[test]
fn h4_tsvals_of_syns_are_seen_all_the_same() {
    let mut talk = Conversation::by(ONLY.with(Method::TcpTs));
    for (transport, ms) in with_timestamps().into_iter().zip(1..) {
        if ms == 2 {
            talk.high(ms, transport)
        } else {
            talk.low(ms, transport)
        };
    }
    // This `TSval` is that of the SYN-ACK, so it is not the first of its tick. The next one is.
    talk.high(10, segment(ACK, 10, 500, 101));
    assert_eq!(talk.flow.pending(Endpoint::High).count(), 0);
    talk.high(11, segment(ACK, 10, 501, 101));
    assert_eq!(talk.flow.pending(Endpoint::High).count(), 1);
}

#[test]
fn h5_a_reply_gives_one_sample_and_frees_the_rest() {
    for methods in [Methods::NONE.with(Method::TcpTs), Methods::NONE.with_seq_always().with(Method::TcpTs)] {
        let has_both = methods.has_both();
        let mut talk = Conversation::by(methods.with(Method::TcpHandshake));
        let [syn, syn_ack, mut ack] = with_timestamps();
        talk.low(1, syn);
        talk.high(2, syn_ack);
        // The server may send data before the handshake is complete.
        let mut data = bare(ACK, 5_000, 100, 1_000);
        data.segment.has_timestamps = true;
        data.segment.timestamps = Timestamps { tsval: 501, tsecr: 100 };
        talk.high(3, data);
        assert_eq!(talk.flow.pending(Endpoint::High).count(), if has_both { 2 } else { 1 });
        ack.segment.timestamps.tsecr = 501;
        assert_eq!(samples(talk.low(10, ack)), [(Method::TcpHandshake, 5_000, 8)]);
        // The ACK acknowledges only the SYN-ACK, not the data.
        assert_eq!(talk.flow.pending(Endpoint::High).count(), usize::from(has_both));
    }
}

#[test]
fn h5_what_follows_is_timed_as_ever() {
    let mut talk = Conversation::by(ONLY.with(Method::TcpSeq));
    talk.low(1, syn());
    // 100 bytes come with the SYN-ACK of a server that knows the client.
    talk.high(2, bare(SYN | ACK, 4_999, 100, 1_000));
    assert_eq!(talk.flow.pending(Endpoint::High).count(), 0);
    talk.high(4, bare(ACK, 5_100, 50, 1_000));
    assert_eq!(samples(talk.low(10, bare(ACK, 1_000, 0, 5_100))), [(Method::TcpHandshake, 5_000, 8)]);
    assert_eq!(samples(talk.low(20, bare(ACK, 1_000, 0, 5_150))), [(Method::TcpSeq, 5_150, 16)]);
}

#[test]
fn h6_lowest_and_smoothed_rtt_are_of_all_methods() {
    let mut talk = Conversation::by(ONLY.with(Method::TcpSeq));
    talk.low(10, syn());
    talk.high(18, syn_ack());
    talk.low(20, ack());
    talk.low(30, bare(ACK, 1_000, 100, 5_000));
    assert_eq!(samples(talk.high(46, bare(ACK, 5_000, 0, 1_100))), [(Method::TcpSeq, 1_100, 16)]);
    assert_eq!((talk.flow.rtt(Endpoint::Low).min, talk.flow.rtt(Endpoint::Low).smoothed), (8 * MS, 9 * MS));
}

#[test]
fn without_tcp_handshake_there_are_no_legs() {
    let mut talk = Conversation::by(Methods::ALL.without(Method::TcpHandshake).without(Method::TcpSeq));
    let found: Vec<_> = [talk.low(10, syn()), talk.high(30, syn_ack()), talk.low(35, ack())]
        .into_iter()
        .flat_map(samples)
        .collect();
    assert_eq!(found, []);
    assert!(!talk.flow.hot.state(Endpoint::Low).is_leg_pending());
}
