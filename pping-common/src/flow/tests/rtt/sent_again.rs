//! Karn's rule for `tcp-ts`: a segment that repeats what was sent, with the `TSval` that is pending, makes its echo
//! ambiguous. A copy does not. Segments of the low end begin with number 1,000.

use crate::{
    flow::Endpoint,
    method::{Method, Methods},
    parse::Transport,
    testing::{
        ACK, Conversation, FIN, MS, PSH, SYN, at, bare, data, pure_ack, request, rtt, samples, segment,
    },
};

/// A conversation whose low end has a lowest RTT of 1 ms.
fn begun() -> Conversation {
    let mut talk = Conversation::in_progress();
    talk.low(10, at(900, data(101, 500)));
    assert_eq!(rtt(talk.high(11, pure_ack(501, 101))), Some((101, 1)));
    talk
}

/// Applies a segment of the low end at a time in µs.
fn low_at(talk: &mut Conversation, us: u64, transport: Transport) {
    talk.packet(Endpoint::Low, us * MS / 1_000, &transport);
}

#[test]
fn a_segment_sent_again_within_its_tick_is_not_timed() {
    // By three duplicate ACKs within a tick of 10 ms; by a timeout within a tick of 500 ms.
    for wait in [5, 300] {
        let mut talk = begun();
        talk.low(20, at(1_000, data(102, 501)));
        talk.low(20 + wait, at(1_000, data(102, 501)));
        assert_eq!(rtt(talk.high(21 + wait, pure_ack(502, 102))), None);
        // What follows is timed.
        talk.low(600, at(1_100, data(103, 502)));
        assert_eq!(rtt(talk.high(602, pure_ack(503, 103))), Some((103, 2)));
    }
}

#[test]
fn another_segment_of_the_tick_sent_again_counts_too() {
    for (sequence, payload) in [(1_100, 100), (1_050, 100), (1_199, 1), (1_150, 200)] {
        let mut talk = begun();
        talk.low(20, at(1_000, data(102, 501)));
        talk.low(20, at(1_100, data(102, 501)));
        talk.low(25, at(sequence, segment(ACK | PSH, payload, 102, 501)));
        assert_eq!(rtt(talk.high(26, pure_ack(502, 102))), None, "{sequence}");
    }
}

#[test]
fn a_timestamp_of_another_tick_stays() {
    let mut talk = begun();
    talk.low(20, at(1_000, data(102, 501)));
    talk.low(22, at(1_100, data(103, 501)));
    talk.low(25, at(1_000, data(103, 501)));
    assert_eq!(rtt(talk.high(26, pure_ack(502, 102))), Some((102, 6)));
    assert_eq!(rtt(talk.high(27, pure_ack(502, 103))), None);
}

#[test]
fn keep_alives_and_window_probes_count_too() {
    // Some have the last byte again, others none.
    for payload in [0, 1] {
        let mut talk = begun();
        talk.low(20, at(1_000, data(102, 501)));
        talk.low(220, at(1_099, segment(ACK, payload, 102, 501)));
        assert_eq!(rtt(talk.high(221, pure_ack(502, 102))), None);
    }
    // An ACK is none of them.
    let mut talk = begun();
    talk.low(20, at(1_000, data(102, 501)));
    talk.low(25, at(1_100, pure_ack(102, 502)));
    assert_eq!(rtt(talk.high(26, pure_ack(502, 102))), Some((102, 6)));
}

#[test]
fn a_copy_makes_nothing_ambiguous() {
    let mut talk = begun();
    talk.low(20, at(1_000, data(102, 501)));
    low_at(&mut talk, 20_005, at(1_000, data(102, 501)));
    low_at(&mut talk, 20_900, at(1_000, data(102, 501)));
    assert_eq!(rtt(talk.high(23, pure_ack(502, 102))), Some((102, 3)));
    // Nothing is sent again before the lowest RTT is over.
    talk.low(30, at(1_100, data(103, 502)));
    low_at(&mut talk, 31_000, at(1_100, data(103, 502)));
    assert_eq!(rtt(talk.high(33, pure_ack(503, 103))), None);
}

#[test]
fn a_copy_comes_soon_whatever_the_lowest_rtt() {
    let mut talk = Conversation::in_progress();
    for (ms, tsval) in [(20, 101), (200, 102)] {
        talk.low(ms, data(tsval, 500));
        assert_eq!(rtt(talk.high(ms + 40, pure_ack(501, tsval))), Some((tsval, 40)));
    }
    talk.low(300, at(1_000, data(103, 501)));
    low_at(&mut talk, 301_100, at(1_000, data(103, 501)));
    assert_eq!(rtt(talk.high(340, pure_ack(502, 103))), None);
}

#[test]
fn a_syn_or_fin_sent_again_within_its_tick_is_not_timed() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 100, 0));
    talk.low(310, segment(SYN, 0, 100, 0));
    assert_eq!(rtt(talk.high(311, segment(SYN | ACK, 0, 500, 100))), None);
    talk.high(511, segment(SYN | ACK, 0, 500, 100));
    assert_eq!(rtt(talk.low(512, pure_ack(101, 500))), None);
    talk.low(600, at(1, segment(FIN | ACK, 0, 102, 500)));
    talk.low(800, at(1, segment(FIN | ACK, 0, 102, 500)));
    assert_eq!(rtt(talk.high(801, pure_ack(501, 102))), None);
}

#[test]
fn a_syn_ack_with_another_number_in_the_same_tick_is_ambiguous() {
    // As by SYN cookies.
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 100, 0));
    talk.high(11, segment(SYN | ACK, 0, 500, 100));
    talk.high(300, at(77, segment(SYN | ACK, 0, 500, 100)));
    assert_eq!(rtt(talk.low(301, pure_ack(101, 500))), None);
}

#[test]
fn a_copy_of_a_syn_does_not_void_its_leg() {
    for methods in [Methods::ALL, Methods::NONE.with(Method::TcpTs)] {
        let mut talk = Conversation::by(methods);
        talk.low(10, segment(SYN, 0, 100, 0));
        low_at(&mut talk, 10_005, segment(SYN, 0, 100, 0));
        let mut syn_ack = segment(SYN | ACK, 0, 500, 100);
        syn_ack.segment.acknowledgement = 1;
        assert_eq!(samples(talk.high(13, syn_ack)).len(), 1);
        talk.packet(Endpoint::High, 13_005 * MS / 1_000, &syn_ack);
        let mut ack = segment(ACK, 0, 100, 500);
        ack.segment.acknowledgement = 1;
        assert_eq!(samples(talk.low(14, ack)).len(), 1);
    }
}

#[test]
fn a_recording_that_was_left_out_is_not_made_up_for() {
    let mut talk = begun();
    talk.rules.rate_limit = 100 * MS;
    talk.low(20, at(1_000, data(102, 501)));
    talk.low(120, at(1_000, data(102, 501)));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn both_methods_forget_what_is_sent_again() {
    let mut talk = Conversation::by(Methods::NONE.with_seq_always().with(Method::TcpTs));
    talk.low(1, at(1_000, segment(SYN, 0, 100, 0)));
    talk.high(2, at(5_000, segment(SYN | ACK, 0, 500, 100)));
    talk.low(20, at(1_001, data(102, 500)));
    talk.low(25, at(1_001, data(102, 500)));
    let mut ack = bare(ACK, 5_001, 0, 1_101);
    ack.segment.has_timestamps = true;
    (ack.segment.timestamps.tsval, ack.segment.timestamps.tsecr) = (501, 102);
    assert_eq!(samples(talk.high(26, ack)), []);
}

#[test]
fn an_echo_request_sent_again_is_timed_anew_at_once() {
    let mut talk = Conversation::new();
    talk.low(1, request(1));
    talk.low(1, request(1));
    assert_eq!(rtt(talk.high(3, crate::testing::reply(1))), Some((1, 2)));
}
