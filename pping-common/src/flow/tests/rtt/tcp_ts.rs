//! `tcp-ts`. In a conversation in progress the newest `TSval` is 100 on the low end and 500 on the high end.

use crate::{
    flow::Endpoint,
    limits::TSVAL_SLACK,
    method::Method,
    parse::Transport,
    rtt::{RttSummary, Sample, TsvalState, missed},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, at, data, pure_ack, rtt, segment, snapshot},
};

#[test]
fn tsval_is_timed_from_its_segment_to_its_echo() {
    let mut talk = Conversation::in_progress();
    assert_eq!(rtt(talk.low(10, data(101, 500))), None);
    let sample = talk.high(30, pure_ack(501, 101)).measured.sample();
    assert_eq!(sample, Some(Sample { method: Method::TcpTs, identifier: 101, rtt: 20 * MS, side_rtt: 0 }));
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, 20 * MS);
    assert_eq!(talk.flow.rtt(Endpoint::High).smoothed, 0);
}

#[test]
fn both_directions_are_timed() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(30, data(501, 101))), Some((101, 20)));
    assert_eq!(rtt(talk.low(35, pure_ack(102, 501))), Some((501, 5)));
}

#[test]
fn segments_of_one_tick_are_timed_from_the_first() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.low(13, data(101, 500));
    talk.low(16, data(101, 500));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(30, pure_ack(501, 101))), Some((101, 20)));
    talk.low(31, data(101, 500));
    assert_eq!(rtt(talk.high(50, pure_ack(502, 101))), None);
}

#[test]
fn newest_advances_on_pure_acks() {
    let mut talk = Conversation::in_progress();
    talk.low(10, pure_ack(101, 500));
    talk.low(15, data(101, 500));
    assert_eq!(talk.pending_count(), 0);
    talk.low(16, data(102, 500));
    assert_eq!(rtt(talk.high(30, pure_ack(501, 102))), Some((102, 14)));
}

#[test]
fn segments_of_no_connection_change_nothing() {
    let mut talk = Conversation::in_progress();
    for flags in [0, FIN, PSH, FIN | PSH] {
        talk.low(10, segment(flags, 0, 101, 0));
        talk.high(10, segment(flags, 0, 501, 100));
    }
    talk.low(15, data(101, 500));
    assert_eq!(rtt(talk.high(30, pure_ack(501, 101))), Some((101, 15)));
}

#[test]
fn older_tsval_is_not_recorded() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(105, 500));
    talk.low(11, data(103, 500));
    talk.low(12, data(100, 500));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(30, pure_ack(501, 103))), None);
    assert_eq!(rtt(talk.high(31, pure_ack(501, 105))), Some((105, 21)));
}

#[test]
fn mid_stream_waits_for_the_first_change() {
    let mut talk = Conversation::new();
    talk.low(10, data(101, 500));
    talk.low(12, data(101, 500));
    assert_eq!(rtt(talk.high(30, pure_ack(501, 101))), None);
    talk.low(31, data(102, 500));
    assert_eq!(rtt(talk.high(50, pure_ack(502, 102))), Some((102, 19)));
}

#[test]
fn syn_and_syn_ack_are_timed_at_once() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 100, 0));
    assert_eq!(rtt(talk.high(30, segment(SYN | ACK, 0, 500, 100))), Some((100, 20)));
    assert_eq!(rtt(talk.low(35, pure_ack(101, 500))), Some((500, 5)));
}

#[test]
fn fin_is_timed() {
    let mut talk = Conversation::in_progress();
    talk.low(10, segment(FIN | ACK, 0, 101, 500));
    assert_eq!(rtt(talk.high(30, pure_ack(501, 101))), Some((101, 20)));
}

#[test]
fn pure_ack_is_never_recorded() {
    let mut talk = Conversation::in_progress();
    talk.low(10, pure_ack(101, 500));
    talk.low(11, segment(ACK | PSH, 0, 102, 500));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(30, data(501, 102))), None);
}

#[test]
fn match_needs_ack() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(20, segment(PSH, 10, 501, 101))), None);
    // Its `TSecr` frees nothing, either.
    assert_eq!(rtt(talk.high(21, segment(PSH, 10, 501, 105))), None);
    assert_eq!(rtt(talk.high(30, pure_ack(502, 101))), Some((101, 20)));
}

#[test]
fn rst_never_matches_and_frees_nothing() {
    for flags in [RST, RST | ACK] {
        let mut talk = Conversation::in_progress();
        talk.low(10, data(101, 500));
        assert_eq!(rtt(talk.high(20, segment(flags, 0, 501, 101))), None);
        talk.high(21, segment(flags, 0, 502, 300));
        assert_eq!(talk.pending_count(), 1);
    }
}

#[test]
fn rst_is_never_recorded() {
    let mut talk = Conversation::in_progress();
    talk.low(10, segment(RST | ACK, 10, 101, 500));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn slot_matches_once() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(30, pure_ack(501, 101))), Some((101, 20)));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(31, pure_ack(501, 101))), None);
    assert_eq!(rtt(talk.high(32, data(502, 101))), None);
}

#[test]
fn match_frees_older_slots() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.low(20, data(102, 500));
    talk.low(30, data(103, 500));
    assert_eq!(rtt(talk.high(50, pure_ack(501, 102))), Some((102, 30)));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(55, pure_ack(501, 101))), None);
    assert_eq!(rtt(talk.high(60, pure_ack(501, 103))), Some((103, 30)));
}

#[test]
fn tsecr_that_matches_nothing_frees_older_slots() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.low(20, data(104, 500));
    assert_eq!(rtt(talk.high(50, pure_ack(501, 103))), None);
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(51, pure_ack(501, 101))), None);
    assert_eq!(rtt(talk.high(60, pure_ack(501, 104))), Some((104, 40)));
}

#[test]
fn tsecr_older_than_all_slots_changes_nothing() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(105, 500));
    talk.high(15, pure_ack(501, 100));
    let before = snapshot(&talk);
    assert_eq!(rtt(talk.high(20, pure_ack(501, 104))), None);
    assert_eq!(before, snapshot(&talk));
}

#[test]
fn tsval_wraps_around() {
    let mut talk = Conversation::in_progress();
    talk.flow.hot.direction_mut(Endpoint::Low).newest_tsval = u32::MAX - 1;
    talk.low(10, data(u32::MAX, 500));
    talk.low(20, data(0, 500));
    talk.low(30, data(1, 500));
    talk.low(40, data(u32::MAX, 500));
    assert_eq!(talk.pending_count(), 3);
    // An echo from before the wrap-around frees nothing from after it. One from after it frees those from before.
    assert_eq!(rtt(talk.high(50, pure_ack(501, u32::MAX))), Some((u32::MAX, 40)));
    assert_eq!(talk.pending_count(), 2);
    assert_eq!(rtt(talk.high(60, pure_ack(501, 1))), Some((1, 30)));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn newer_is_no_further_ahead_than_a_clock_can_be() {
    // The clock may have advanced by one tick in 512 ns, for 9 ms.
    let most = TSVAL_SLACK + 17_578;
    for (ahead, recorded) in [
        (1, 1),
        (most, 1),
        (most + 1, 0),
        (0x7fff_ffff, 0),
        (0x8000_0000, 0),
        (0x8000_0001, 0),
        (u32::MAX, 0),
    ] {
        let mut talk = Conversation::in_progress();
        talk.low(10, data(100_u32.wrapping_add(ahead), 500));
        assert_eq!(talk.pending_count(), recorded, "{ahead:#x}");
    }
}

#[test]
fn retransmission_is_timed_by_its_own_tsval() {
    let mut talk = Conversation::in_progress();
    talk.low(10, at(1_000, data(101, 500)));
    talk.low(210, at(1_000, data(301, 500)));
    assert_eq!(rtt(talk.high(230, pure_ack(501, 301))), Some((301, 20)));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn packet_is_matched_against_what_waited_before_it() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(501, 500));
    // Both ends happen to be at the same TSval: this segment's own must not count as the one that it echoes.
    assert_eq!(rtt(talk.high(30, data(501, 501))), Some((501, 20)));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 1));
    assert_eq!(rtt(talk.low(37, data(502, 501))), Some((501, 7)));
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, 20 * MS);
    assert_eq!(talk.flow.rtt(Endpoint::High).smoothed, 7 * MS);
}

#[test]
fn segment_without_timestamps_neither_matches_nor_records() {
    let without = |mut transport: Transport| {
        transport.segment.has_timestamps = false;
        transport
    };
    let mut talk = Conversation::in_progress();
    talk.low(10, without(data(101, 500)));
    assert_eq!(talk.pending_count(), 0);
    talk.low(11, data(101, 500));
    assert_eq!(rtt(talk.high(20, without(pure_ack(501, 101)))), None);
    assert_eq!(rtt(talk.high(21, pure_ack(501, 101))), Some((101, 10)));
}

#[test]
fn contention_skips_one_tsval() {
    for endpoint in [Endpoint::Low, Endpoint::High] {
        let mut talk = Conversation::in_progress();
        talk.flow.hot.contended = 1;
        let base = if endpoint == Endpoint::Low { 100 } else { 500 };
        let mut recorded = |ms, tsval| {
            talk.packet(endpoint, ms * MS, &data(tsval, 0));
            assert_eq!(talk.flow.hot.contended, 0);
            talk.flow.pending(endpoint).count()
        };
        assert_eq!(recorded(10, base), 0);
        assert_eq!(recorded(11, base + 1), 0);
        assert_eq!(recorded(12, base + 1), 0);
        assert_eq!(recorded(13, base + 2), 1);
    }
}

#[test]
fn contention_puts_both_directions_in_doubt() {
    let mut talk = Conversation::in_progress();
    talk.flow.hot.contended = 1;
    talk.low(10, data(101, 500));
    talk.high(11, data(501, 100));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 0));
    talk.low(12, data(102, 500));
    talk.high(13, data(502, 100));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (1, 1));
}

#[test]
fn contention_frees_what_waits_since_its_echo_may_have_gone_by() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    assert_eq!(talk.pending_count(), 1);
    // The echo was in the missed packet. This one comes after a pause of the application.
    talk.flow.hot.contended = 1;
    assert_eq!(rtt(talk.high(3010, data(501, 101))), None);
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn new_syn_on_used_ports_begins_anew() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.high(30, data(501, 101));
    talk.low(31, data(102, 500));
    talk.low(40, segment(RST, 0, 0, 0));
    // The clocks of the new connection are older than those before.
    talk.low(1000, segment(SYN, 0, 50, 0));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (1, 0));
    assert_eq!(
        (talk.flow.rtt(Endpoint::Low).min, talk.flow.rtt(Endpoint::Low).smoothed),
        (RttSummary::NO_RTT, 0)
    );
    assert_eq!(rtt(talk.high(1030, segment(SYN | ACK, 0, 400, 50))), Some((50, 30)));
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 30 * MS);
    assert_eq!(rtt(talk.low(1035, pure_ack(51, 400))), Some((400, 5)));
}

#[test]
fn new_syn_of_the_other_side_begins_anew_too() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.low(40, segment(RST, 0, 0, 0));
    talk.high(1000, segment(SYN, 0, 50, 0));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 1));
    assert_eq!(rtt(talk.low(1030, segment(SYN | ACK, 0, 40, 50))), Some((50, 30)));
}

#[test]
fn retransmitted_syn_does_not_begin_anew() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 100, 0));
    talk.low(1010, segment(SYN, 0, 1100, 0));
    assert_eq!(talk.pending_count(), 2);
    // This is a late answer to the first SYN.
    assert_eq!(rtt(talk.high(1015, segment(SYN | ACK, 0, 500, 100))), Some((100, 1005)));
    talk.low(2010, segment(SYN, 0, 2100, 0));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (2, 1));
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 1005 * MS);
}

#[test]
fn rtt_of_nothing_is_the_lowest_there_is() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(10, pure_ack(501, 101))), Some((101, 0)));
    assert_eq!((talk.flow.rtt(Endpoint::Low).min, talk.flow.rtt(Endpoint::Low).smoothed), (0, 0));
    talk.low(20, data(102, 501));
    assert_eq!(rtt(talk.high(28, pure_ack(502, 102))), Some((102, 8)));
    assert_eq!((talk.flow.rtt(Endpoint::Low).min, talk.flow.rtt(Endpoint::Low).smoothed), (0, MS));
}

#[test]
fn echo_from_before_what_it_echoes_is_no_sample() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(9, pure_ack(501, 101))), None);
    assert_eq!((talk.pending_count(), talk.flow.rtt(Endpoint::Low).min), (0, RttSummary::NO_RTT));
    assert_eq!(rtt(talk.high(20, pure_ack(502, 101))), None);
}

#[test]
fn missed_segment_still_updates_the_newest_tsval() {
    let missed = |state, transport: Transport| missed(100, state, &transport.segment);
    assert_eq!(missed(TsvalState::KNOWN, data(101, 500)), Some(101));
    assert_eq!(missed(TsvalState::INVALIDATED, pure_ack(102, 500)), Some(102));
    for old in [99, 100, 100 + (1 << 31)] {
        assert_eq!(missed(TsvalState::KNOWN, data(old, 500)), None);
    }
    assert_eq!(missed(TsvalState::UNKNOWN, data(101, 500)), None);
    for flags in [SYN, RST, RST | ACK] {
        assert_eq!(missed(TsvalState::KNOWN, segment(flags, 0, 101, 500)), None);
    }
}
