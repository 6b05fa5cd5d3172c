//! Which SYNs begin a connection anew, and which are copies. The low end begins with sequence number 1,000 and `TSval` 7,000,
//! the high end with 9,000 and 500.

use std::vec::Vec;

use crate::{
    flow::Endpoint,
    method::{Method, Methods},
    parse::{Timestamps, Transport},
    rtt::Progress,
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, bare, samples},
};

const SEQ: Methods = Methods::NONE.with(Method::TcpSeq).with(Method::TcpHandshake);

/// Adds timestamps to a segment.
fn stamped(tsval: u32, tsecr: u32, mut transport: Transport) -> Transport {
    transport.segment.has_timestamps = true;
    transport.segment.timestamps = Timestamps { tsval, tsecr };
    transport
}

fn handshake() -> [Transport; 3] {
    [
        stamped(7_000, 0, bare(SYN, 1_000, 0, 0)),
        stamped(500, 7_000, bare(SYN | ACK, 9_000, 0, 1_001)),
        stamped(7_003, 500, bare(ACK, 1_001, 0, 9_001)),
    ]
}

fn without_timestamps(mut all: [Transport; 3]) -> [Transport; 3] {
    for transport in &mut all {
        transport.segment.has_timestamps = false;
    }
    all
}

/// Applies a handshake from a time in ms on, with this many µs between its segments. Returns the RTTs in ms.
fn shake(talk: &mut Conversation, ms: u64, us: u64, handshake: &[Transport; 3]) -> Vec<(Method, u64)> {
    let mut found = Vec::new();
    for (transport, number) in handshake.iter().zip(0..) {
        let from = if number == 1 { Endpoint::High } else { Endpoint::Low };
        let outcome = talk.packet(from, ms * MS + number * us * MS / 1_000, transport);
        found.extend(samples(outcome).into_iter().map(|(method, _, rtt)| (method, rtt)));
    }
    found
}

/// The samples of 100 bytes of each end.
fn exchange(talk: &mut Conversation, ms: u64, tsval: u32, sequence: u32) -> Vec<(Method, u64)> {
    let sent = [
        (Endpoint::Low, 0, stamped(tsval, 600, bare(ACK | PSH, sequence, 100, 9_001))),
        (Endpoint::High, 3, stamped(600 + ms as u32, tsval, bare(ACK | PSH, 9_001, 100, sequence + 100))),
        (Endpoint::Low, 4, stamped(tsval + 4, 600 + ms as u32, bare(ACK, sequence + 100, 0, 9_101))),
    ];
    let each = sent.map(|(from, wait, transport)| samples(talk.packet(from, (ms + wait) * MS, &transport)));
    each.into_iter().flatten().map(|(method, _, rtt)| (method, rtt)).collect()
}

const BOTH_LEGS: [(Method, u64); 2] = [(Method::TcpHandshake, 3), (Method::TcpHandshake, 3)];
const BOTH_ENDS: [(Method, u64); 2] = [(Method::TcpTs, 3), (Method::TcpTs, 1)];

#[test]
fn copies_of_a_handshake_change_nothing() {
    for wait in [6, 100, 2_000] {
        let mut talk = Conversation::by(Methods::ALL);
        assert_eq!(shake(&mut talk, 10, 3_000, &handshake()), BOTH_LEGS);
        assert_eq!(shake(&mut talk, 20 + wait, 6, &handshake()), []);
        assert_eq!(talk.flow.rtt(Endpoint::Low).min, 3 * MS);
        assert_eq!(exchange(&mut talk, 3_000, 9_990, 1_001), BOTH_ENDS);
        assert_eq!(shake(&mut talk, 4_000, 6, &handshake()), [], "after data");
        assert_eq!(exchange(&mut talk, 5_000, 11_990, 1_101), BOTH_ENDS);
    }
}

#[test]
fn copies_of_a_handshake_after_its_end_change_nothing() {
    for with_timestamps in [true, false] {
        let mut talk = Conversation::by(Methods::ALL);
        let all = if with_timestamps { handshake() } else { without_timestamps(handshake()) };
        shake(&mut talk, 10, 3_000, &all);
        talk.low(30, stamped(7_020, 500, bare(FIN | ACK, 1_001, 0, 9_001)));
        assert_eq!(shake(&mut talk, 40, 6, &all), []);
        talk.high(50, bare(RST, 9_001, 0, 0));
        assert_eq!(shake(&mut talk, 60, 6, &all), []);
    }
}

#[test]
fn copies_without_timestamps_change_nothing() {
    let mut talk = Conversation::by(SEQ);
    let all = without_timestamps(handshake());
    assert_eq!(shake(&mut talk, 10, 3_000, &all), BOTH_LEGS);
    talk.low(30, bare(ACK, 1_001, 100, 9_001));
    assert_eq!(shake(&mut talk, 40, 6, &all), []);
    // What was pending is, and the highest numbers are those of the data.
    assert_eq!(samples(talk.high(50, bare(ACK, 9_001, 0, 1_101))), [(Method::TcpSeq, 1_101, 20)]);
    talk.low(60, bare(ACK, 1_001, 100, 9_001));
    assert_eq!(samples(talk.high(61, bare(ACK, 9_001, 0, 1_101))), [], "sent again");
}

#[test]
fn copies_of_a_syn_with_data_change_nothing() {
    let mut talk = Conversation::by(SEQ);
    let mut all = without_timestamps(handshake());
    all[0].segment.payload = 50;
    all[1].segment.acknowledgement = 1_051;
    all[2].segment.sequence = 1_051;
    assert_eq!(shake(&mut talk, 10, 3_000, &all), BOTH_LEGS);
    talk.low(30, bare(ACK, 1_051, 100, 9_001));
    assert_eq!(shake(&mut talk, 40, 6, &all), []);
    assert_eq!(samples(talk.high(50, bare(ACK, 9_001, 0, 1_151))), [(Method::TcpSeq, 1_151, 20)]);
}

#[test]
fn a_syn_sent_again_without_its_data_leaves_the_data_behind() {
    let mut talk = Conversation::by(SEQ);
    talk.low(10, bare(SYN, 1_000, 50, 0));
    talk.low(1_010, bare(SYN, 1_000, 0, 0));
    talk.high(1_020, bare(SYN | ACK, 9_000, 0, 1_001));
    talk.low(1_021, bare(ACK, 1_001, 50, 9_001));
    assert_eq!(samples(talk.high(1_030, bare(ACK, 9_001, 0, 1_051))), [], "this was sent twice");
}

#[test]
fn a_syn_with_another_number_begins_anew_however_low_its_tsval() {
    for is_answered in [false, true] {
        for is_established in [false, true] {
            let mut talk = Conversation::by(Methods::ALL);
            talk.low(0, stamped(1_852_516_352, 0, bare(SYN, 900_000, 0, 0)));
            talk.low(1_000, stamped(1_852_517_352, 0, bare(SYN, 900_000, 0, 0)));
            if is_answered {
                talk.high(1_020, stamped(4_000_000, 1_852_517_352, bare(SYN | ACK, 77, 0, 900_001)));
            }
            if is_established {
                talk.low(1_030, stamped(1_852_517_382, 4_000_000, bare(ACK, 900_001, 0, 78)));
                talk.low(1_040, bare(RST, 900_001, 0, 0));
            }
            // An open connection goes on until the other end accepts the next one.
            let legs = if is_answered && !is_established { &BOTH_LEGS[1..] } else { &BOTH_LEGS };
            assert_eq!(shake(&mut talk, 5_000, 3_000, &handshake()), legs);
            assert_eq!(exchange(&mut talk, 5_100, 8_000, 1_001), BOTH_ENDS);
        }
    }
}

#[test]
fn a_syn_begins_anew_after_segments_of_the_other_end_alone() {
    let mut talk = Conversation::by(Methods::ALL);
    talk.high(0, stamped(1_852_516_352, 5, bare(ACK | PSH, 900_000, 100, 1)));
    assert_eq!(shake(&mut talk, 5_000, 3_000, &handshake()), BOTH_LEGS);
    assert_eq!(exchange(&mut talk, 5_100, 8_000, 1_001), BOTH_ENDS);
}

#[test]
fn a_syn_that_was_refused_begins_anew_with_the_same_number() {
    let mut talk = Conversation::by(Methods::ALL);
    talk.low(10, handshake()[0]);
    talk.high(11, bare(RST | ACK, 0, 0, 1_001));
    assert_eq!(shake(&mut talk, 511, 3_000, &handshake()), BOTH_LEGS);
}

#[test]
fn a_syn_sent_again_before_an_answer_voids_its_leg() {
    let mut talk = Conversation::by(Methods::ALL);
    talk.low(10, handshake()[0]);
    assert_eq!(shake(&mut talk, 1_010, 3_000, &handshake()), BOTH_LEGS[1..]);
}

#[test]
fn the_same_number_with_a_newer_tsval_is_another_connection() {
    let mut talk = Conversation::by(Methods::ALL);
    shake(&mut talk, 10, 3_000, &handshake());
    exchange(&mut talk, 100, 8_000, 1_001);
    talk.low(200, bare(RST, 1_101, 0, 0));
    let mut all = handshake();
    all[0].segment.timestamps.tsval = 9_000;
    all[1].segment.timestamps = Timestamps { tsval: 5_000, tsecr: 9_000 };
    all[2].segment.timestamps = Timestamps { tsval: 9_003, tsecr: 5_000 };
    assert_eq!(shake(&mut talk, 2_000, 3_000, &all), BOTH_LEGS);
}

#[test]
fn a_syn_with_rst_begins_nothing() {
    let mut talk = Conversation::by(Methods::ALL);
    shake(&mut talk, 10, 3_000, &handshake());
    talk.low(30, stamped(7_030, 500, bare(ACK, 1_001, 100, 9_001)));
    talk.low(31, bare(SYN | RST, 77, 0, 0));
    let echo = stamped(600, 7_030, bare(ACK, 9_001, 0, 1_101));
    assert_eq!(samples(talk.high(40, echo)), [(Method::TcpTs, 7_030, 10)]);
}

#[test]
fn a_copy_has_no_progress() {
    let mut talk = Conversation::by(SEQ);
    let all = without_timestamps(handshake());
    shake(&mut talk, 10, 3_000, &all);
    talk.low(30, bare(ACK, 1_001, 100, 9_001));
    let counted = talk.flow.count(Endpoint::Low, &all[0], 0, 1);
    assert_eq!(counted.progress, Progress::First, "until the connection is looked at");
    assert_eq!(talk.flow.hot.direction(Endpoint::Low).sequence_end, 1_101);
}
