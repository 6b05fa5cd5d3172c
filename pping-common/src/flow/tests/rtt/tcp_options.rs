//! T1 and T2: which flows have timestamps, and which method measures what.

use std::vec::Vec;

use crate::{
    flow::Endpoint,
    method::{Method, Methods},
    parse::{Timestamps, Transport},
    rtt::{RttSummary, TimestampOption},
    testing::{ACK, Conversation, FIN, RST, SYN, bare, samples, segment},
};

const AUTO: Methods = Methods::NONE.with(Method::TcpTs).with(Method::TcpSeq);
const SEQ: Methods = Methods::NONE.with_seq_always();
const BOTH: Methods = SEQ.with(Method::TcpTs);

/// Adds timestamps to a segment.
fn with_timestamps(mut transport: Transport, tsval: u32, tsecr: u32) -> Transport {
    transport.segment.has_timestamps = true;
    transport.segment.timestamps = Timestamps { tsval, tsecr };
    transport
}

/// Returns what is known of a flow after some segments of the low end.
fn options(segments: &[Transport]) -> TimestampOption {
    let mut talk = Conversation::by(AUTO);
    for (segment, ms) in segments.iter().zip(1..) {
        talk.low(ms, *segment);
    }
    talk.flow.hot.protocol_state.timestamps()
}

fn with() -> Transport {
    segment(ACK, 10, 1, 1)
}

fn without() -> Transport {
    bare(ACK, 1, 0, 1)
}

#[test]
fn t1_a_segment_with_timestamps_tells_at_once() {
    assert_eq!(options(&[]), TimestampOption::UNKNOWN);
    assert_eq!(options(&[with()]), TimestampOption::PRESENT);
    assert_eq!(options(&[without(), without(), with()]), TimestampOption::PRESENT);
    assert_eq!(options(&[without(), without(), without(), with()]), TimestampOption::PRESENT);
}

#[test]
fn t1_the_third_segment_without_timestamps_tells() {
    assert_eq!(options(&[without()]), TimestampOption::UNKNOWN);
    assert_eq!(options(&[without(), without()]), TimestampOption::UNKNOWN);
    assert_eq!(options(&[without(), without(), without()]), TimestampOption::ABSENT);
    // The segments of both ends count.
    let mut talk = Conversation::by(AUTO);
    talk.low(1, without());
    talk.high(2, without());
    talk.low(3, without());
    assert_eq!(talk.flow.hot.protocol_state.timestamps(), TimestampOption::ABSENT);
}

#[test]
fn t1_a_syn_without_timestamps_tells_at_once() {
    assert_eq!(options(&[bare(SYN, 1, 0, 0)]), TimestampOption::ABSENT);
    assert_eq!(options(&[bare(SYN | ACK, 1, 0, 1)]), TimestampOption::ABSENT);
    assert_eq!(options(&[segment(SYN, 0, 1, 0), bare(SYN | ACK, 1, 0, 1)]), TimestampOption::ABSENT);
}

#[test]
fn t1_a_flow_with_timestamps_may_lack_them_now_and_then() {
    assert_eq!(options(&[with(), without(), without(), without(), without()]), TimestampOption::PRESENT);
}

#[test]
fn t1_a_rst_tells_nothing() {
    assert_eq!(options(&[bare(RST, 1, 0, 0); 5]), TimestampOption::UNKNOWN);
    assert_eq!(options(&[segment(RST | ACK, 0, 1, 1)]), TimestampOption::UNKNOWN);
    assert_eq!(options(&[with(), bare(RST | SYN, 1, 0, 0)]), TimestampOption::PRESENT);
}

#[test]
fn t1_a_syn_that_begins_a_connection_begins_anew() {
    let earlier = [with(), segment(FIN | ACK, 0, 2, 1)];
    assert_eq!(options(&[earlier[0], earlier[1], bare(SYN, 900, 0, 0)]), TimestampOption::ABSENT);
    let earlier = [bare(SYN, 1, 0, 0), without()];
    assert_eq!(options(&[earlier[0], earlier[1], segment(SYN, 0, 9, 0)]), TimestampOption::PRESENT);
}

#[test]
fn t1_what_waits_is_forgotten_when_the_kind_changes() {
    let mut talk = Conversation::by(AUTO);
    talk.low(1, segment(SYN, 0, 100, 0));
    assert_eq!(talk.pending_count(), 1);
    talk.high(2, bare(SYN | ACK, 1, 0, 1));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(talk.flow.pending(Endpoint::High).count(), 1);
    talk.low(3, segment(ACK, 0, 101, 0));
    assert_eq!(talk.flow.pending(Endpoint::High).count(), 0);
}

#[test]
fn t1_what_waits_is_kept_by_both() {
    let mut talk = Conversation::by(BOTH);
    talk.low(1, segment(SYN, 0, 100, 0));
    talk.high(2, bare(SYN | ACK, 7, 0, 0));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (2, 1));
    let ack = with_timestamps(bare(ACK, 1, 0, 8), 101, 0);
    assert_eq!(samples(talk.low(5, ack)), [(Method::TcpSeq, 8, 3)]);
    let echo = with_timestamps(bare(ACK, 8, 0, 1), 900, 100);
    assert_eq!(samples(talk.high(9, echo)), [(Method::TcpTs, 100, 8), (Method::TcpSeq, 1, 8)]);
}

/// A connection whose handshake was seen. At 10 ms the low end continues with 1,000 and the high end with 5,000.
fn connected(methods: Methods, has_timestamps: bool) -> Conversation {
    let mut talk = Conversation::by(methods);
    let mut is_low = true;
    for (transport, ms) in
        [bare(SYN, 999, 0, 0), bare(SYN | ACK, 4_999, 0, 1_000), bare(ACK, 1_000, 0, 5_000)]
            .into_iter()
            .zip(1..)
    {
        let (tsval, tsecr) = if is_low { (100, 500) } else { (500, 100) };
        let transport = if has_timestamps { with_timestamps(transport, tsval, tsecr) } else { transport };
        if is_low {
            talk.low(ms, transport)
        } else {
            talk.high(ms, transport)
        };
        is_low = !is_low;
    }
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 0));
    talk
}

/// Returns the samples of 100 bytes that are acknowledged 20 ms later.
fn measured(talk: &mut Conversation, has_timestamps: bool) -> Vec<(Method, u32, u64)> {
    let (mut sent, mut back) = (bare(ACK, 1_000, 100, 5_000), bare(ACK, 5_000, 0, 1_100));
    if has_timestamps {
        (sent, back) = (with_timestamps(sent, 101, 500), with_timestamps(back, 501, 101));
    }
    talk.low(10, sent);
    samples(talk.high(30, back))
}

#[test]
fn t2_auto_measures_by_timestamps_where_there_are_some() {
    let by_timestamps = (Method::TcpTs, 101, 20);
    let by_numbers = (Method::TcpSeq, 1_100, 20);
    for (methods, has_timestamps, expected) in [
        (AUTO, true, &[by_timestamps][..]),
        (AUTO, false, &[by_numbers]),
        (Methods::NONE.with(Method::TcpTs), true, &[by_timestamps]),
        (Methods::NONE.with(Method::TcpTs), false, &[]),
        (SEQ, true, &[by_numbers]),
        (SEQ, false, &[by_numbers]),
        (BOTH, true, &[by_timestamps, by_numbers]),
        (BOTH, false, &[by_numbers]),
        (Methods::NONE.with(Method::TcpSeq), true, &[]),
        (Methods::NONE.with(Method::TcpSeq), false, &[by_numbers]),
        (Methods::NONE.with(Method::TcpHandshake), true, &[]),
        (Methods::NONE.with(Method::TcpHandshake), false, &[]),
    ] {
        let mut talk = connected(methods, has_timestamps);
        assert_eq!(measured(&mut talk, has_timestamps), expected, "{methods:?}, {has_timestamps}");
    }
}

#[test]
fn t2_unknown_kind_waits_for_the_third_segment() {
    let mut talk = Conversation::by(AUTO);
    for (sequence, ms) in [1_000, 1_100, 1_200].into_iter().zip(1..) {
        assert_eq!(talk.pending_count(), 0);
        talk.low(ms, bare(ACK, sequence, 100, 5_000));
    }
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(samples(talk.high(30, bare(ACK, 5_000, 0, 1_300))), [(Method::TcpSeq, 1_300, 27)]);
}

#[test]
fn t2_seq_always_does_not_wait_for_the_kind() {
    for methods in [SEQ, BOTH] {
        let mut talk = Conversation::by(methods);
        talk.low(1, bare(ACK, 1_000, 100, 5_000));
        talk.low(2, bare(ACK, 1_100, 100, 5_000));
        assert_eq!(talk.flow.hot.protocol_state.timestamps(), TimestampOption::UNKNOWN);
        assert_eq!(samples(talk.high(30, bare(ACK, 5_000, 0, 1_200))), [(Method::TcpSeq, 1_200, 28)]);
    }
}

#[test]
fn t2_segment_without_timestamps_in_a_timestamp_flow() {
    let mut talk = connected(AUTO, true);
    assert_eq!(measured(&mut talk, false), []);
    assert_eq!(talk.pending_count(), 0);
    // Sequence numbers give a sample, if they are for all flows.
    let mut talk = connected(BOTH, true);
    assert_eq!(measured(&mut talk, false), [(Method::TcpSeq, 1_100, 20)]);
}

#[test]
fn both_methods_have_four_slots_each() {
    let mut talk = connected(BOTH, true);
    for count in 1..=4 {
        let sent = with_timestamps(bare(ACK, 900 + 100 * count, 100, 5_000), 100 + count, 500);
        let outcome = talk.low(10 + u64::from(count), sent);
        assert!(!outcome.measured.pending_full && !outcome.second.pending_full);
        assert_eq!(talk.pending_count(), 2 * count as usize);
    }
    let outcome = talk.low(15, with_timestamps(bare(ACK, 1_400, 100, 5_000), 105, 500));
    assert!(outcome.measured.pending_full && outcome.second.pending_full);
    // An echo of the first two timestamps leaves the sequence numbers pending.
    let echo = with_timestamps(bare(ACK, 5_000, 0, 1_000), 501, 102);
    assert_eq!(samples(talk.high(30, echo)), [(Method::TcpTs, 102, 18)]);
    assert_eq!(talk.pending_count(), 6);
    let outcome = talk.low(31, with_timestamps(bare(ACK, 1_500, 100, 5_000), 106, 500));
    assert!(!outcome.measured.pending_full && outcome.second.pending_full);
}

#[test]
fn other_methods_have_all_eight_slots() {
    for (methods, has_timestamps) in [(AUTO, true), (AUTO, false), (SEQ, true), (SEQ, false)] {
        let mut talk = connected(methods, has_timestamps);
        for count in 1..=9 {
            let mut sent = bare(ACK, 900 + 100 * count, 100, 5_000);
            if has_timestamps {
                sent = with_timestamps(sent, 100 + count, 500);
            }
            assert_eq!(talk.low(10 + u64::from(count), sent).measured.pending_full, count == 9);
        }
        assert_eq!(talk.pending_count(), 8);
    }
}

#[test]
fn both_samples_of_a_packet_count_for_the_smoothed_rtt() {
    let mut talk = connected(BOTH, true);
    talk.flow.locked.set_rtts(Endpoint::Low, (RttSummary::NO_RTT, 0));
    talk.low(10, with_timestamps(bare(ACK, 1_000, 100, 5_000), 101, 500));
    // This segment is of the same tick, and is acknowledged with the first.
    talk.low(14, with_timestamps(bare(ACK, 1_100, 100, 5_000), 101, 500));
    let both = samples(talk.high(30, with_timestamps(bare(ACK, 5_000, 0, 1_200), 501, 101)));
    assert_eq!(both, [(Method::TcpTs, 101, 20), (Method::TcpSeq, 1_200, 16)]);
    let ms = crate::testing::MS;
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 16 * ms);
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, 20 * ms - 20 * ms / 8 + 2 * ms);
}
