//! What opens and closes a flow.

use crate::{
    flow::Endpoint,
    flow::{Changes, Lifecycle, Reason},
    testing::{ACK, Conversation, FIN, MS, RST, SYN, data, pure_ack, reply, request, segment},
};

/// The changes when a direction opens.
fn opened(by: Reason, at_ms: u64, is_first: bool) -> Changes {
    Changes { opened: true, opened_by: by, opened_at: at_ms * MS, opened_first: is_first, ..Changes::NONE }
}

/// The changes when a FIN closes a direction.
fn finished(is_last: bool) -> Changes {
    Changes { closed_forward: true, closed_by: Reason::Fin, closed_last: is_last, ..Changes::NONE }
}

/// The changes when a RST closes directions.
fn reset(forward: bool, reverse: bool) -> Changes {
    Changes {
        closed_forward: forward,
        closed_reverse: reverse,
        closed_by: Reason::Rst,
        closed_last: forward || reverse,
        ..Changes::NONE
    }
}

fn lifecycles(talk: &Conversation) -> (Lifecycle, Lifecycle) {
    (talk.flow.hot.state(Endpoint::Low).lifecycle(), talk.flow.hot.state(Endpoint::High).lifecycle())
}

/// A connection after its handshake.
fn connected() -> Conversation {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 1, 0));
    talk.high(30, segment(SYN | ACK, 0, 1, 1));
    talk.low(50, pure_ack(2, 1));
    assert_eq!(lifecycles(&talk), (Lifecycle::OPEN, Lifecycle::OPEN));
    talk
}

#[test]
fn handshake_opens_each_direction_with_its_answer() {
    let mut talk = Conversation::new();
    assert_eq!(talk.low(10, segment(SYN, 0, 1, 0)).changes, Changes::NONE);
    assert_eq!(talk.high(30, segment(SYN | ACK, 0, 1, 1)).changes, opened(Reason::Syn, 10, true));
    assert_eq!(talk.low(50, pure_ack(2, 1)).changes, opened(Reason::SynAck, 30, false));
    assert_eq!(talk.low(51, data(3, 1)).changes, Changes::NONE);
    assert_eq!(talk.high(52, data(3, 3)).changes, Changes::NONE);
}

#[test]
fn mid_stream_opens_by_first_observation() {
    let mut talk = Conversation::new();
    assert_eq!(talk.low(10, data(1, 1)).changes, Changes::NONE);
    assert_eq!(talk.low(20, data(2, 1)).changes, Changes::NONE);
    assert_eq!(talk.high(30, data(1, 1)).changes, opened(Reason::FirstObserved, 10, true));
    assert_eq!(talk.low(40, data(2, 1)).changes, opened(Reason::FirstObserved, 30, false));
}

#[test]
fn flow_that_is_never_answered_never_opens() {
    let mut talk = Conversation::new();
    for ms in 1..10 {
        assert_eq!(talk.low(ms, data(1, 1)).changes, Changes::NONE);
    }
    assert_eq!(lifecycles(&talk), (Lifecycle::UNANSWERED, Lifecycle::UNSEEN));
}

#[test]
fn refused_connection_never_opens() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 1, 0));
    let changes = talk.high(30, segment(RST | ACK, 0, 0, 0)).changes;
    assert_eq!(changes, reset(false, false));
    assert_eq!(lifecycles(&talk), (Lifecycle::CLOSED, Lifecycle::CLOSED));
}

#[test]
fn refused_connection_is_tried_again() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 1, 0));
    talk.high(30, segment(RST | ACK, 0, 0, 0));
    talk.low(1000, segment(SYN, 0, 1000, 0));
    let changes = talk.high(1020, segment(SYN | ACK, 0, 1, 1000)).changes;
    assert_eq!(changes, opened(Reason::Syn, 1000, true));
}

#[test]
fn fin_closes_its_own_direction_and_the_second_the_flow() {
    let mut talk = connected();
    assert_eq!(talk.low(60, segment(FIN | ACK, 0, 3, 1)).changes, finished(false));
    assert_eq!(talk.high(70, data(2, 3)).changes, Changes::NONE);
    assert_eq!(talk.high(80, segment(FIN | ACK, 0, 3, 3)).changes, finished(true));
    assert_eq!(talk.low(90, pure_ack(4, 3)).changes, Changes::NONE);
    assert_eq!(lifecycles(&talk), (Lifecycle::CLOSED, Lifecycle::CLOSED));
}

#[test]
fn repeated_fin_closes_nothing_more() {
    let mut talk = connected();
    talk.low(60, segment(FIN | ACK, 0, 3, 1));
    let again = talk.low(70, segment(FIN | ACK, 0, 4, 1)).changes;
    assert!(!again.closed_forward && !again.closed_reverse && !again.closed_last);
}

#[test]
fn rst_closes_both_directions() {
    let mut talk = connected();
    assert_eq!(talk.high(60, segment(RST, 0, 0, 0)).changes, reset(true, true));
    assert_eq!(lifecycles(&talk), (Lifecycle::CLOSED, Lifecycle::CLOSED));
    assert_eq!(talk.high(61, segment(RST, 0, 0, 0)).changes, reset(false, false));
}

#[test]
fn rst_after_a_fin_closes_the_direction_that_is_left() {
    let mut talk = connected();
    talk.low(60, segment(FIN | ACK, 0, 3, 1));
    assert_eq!(talk.low(61, segment(RST, 0, 0, 0)).changes, reset(false, true));
    let mut talk = connected();
    talk.low(60, segment(FIN | ACK, 0, 3, 1));
    assert_eq!(talk.high(61, segment(RST, 0, 0, 0)).changes, reset(true, false));
}

#[test]
fn fin_that_opens_by_answering_closes_too() {
    let mut talk = Conversation::new();
    talk.low(10, data(1, 1));
    talk.high(20, data(1, 1));
    let changes = talk.low(30, segment(FIN | ACK, 0, 2, 1)).changes;
    assert_eq!((changes.opened, changes.opened_first), (true, false));
    assert_eq!((changes.closed_forward, changes.closed_last), (true, false));
    assert_eq!(lifecycles(&talk), (Lifecycle::CLOSED, Lifecycle::OPEN));
}

#[test]
fn flow_first_seen_by_a_fin_opens_and_closes_once() {
    let mut talk = Conversation::new();
    talk.low(10, segment(FIN | ACK, 0, 1, 1));
    assert_eq!(talk.high(20, data(1, 1)).changes, Changes::NONE);
    // The closed direction was never open, so this one is the first to open.
    assert_eq!(talk.low(30, pure_ack(2, 1)).changes, opened(Reason::FirstObserved, 20, true));
    assert_eq!(talk.high(40, segment(FIN | ACK, 0, 2, 2)).changes, finished(true));
}

#[test]
fn last_ack_does_not_open_the_flow_again() {
    let mut talk = connected();
    talk.low(60, segment(FIN | ACK, 0, 3, 1));
    talk.high(70, segment(FIN | ACK, 0, 2, 3));
    assert_eq!(talk.low(80, pure_ack(4, 2)).changes, Changes::NONE);
    assert_eq!(talk.high(90, pure_ack(3, 4)).changes, Changes::NONE);
    assert_eq!(lifecycles(&talk), (Lifecycle::CLOSED, Lifecycle::CLOSED));
}

#[test]
fn syn_opens_a_closed_flow_again() {
    let fin = |talk: &mut Conversation| {
        talk.low(60, segment(FIN | ACK, 0, 3, 1));
        talk.high(70, segment(FIN | ACK, 0, 2, 3));
    };
    let rst = |talk: &mut Conversation| {
        talk.high(60, segment(RST, 0, 0, 0));
    };
    let closings: [&dyn Fn(&mut Conversation); 2] = [&fin, &rst];
    for close in closings {
        let mut talk = connected();
        close(&mut talk);
        assert_eq!(talk.low(100, segment(SYN, 0, 9, 0)).changes, Changes::NONE);
        let answer = talk.high(110, segment(SYN | ACK, 0, 9, 9)).changes;
        assert_eq!(answer, opened(Reason::Syn, 100, true));
        assert_eq!(talk.low(120, pure_ack(10, 9)).changes, opened(Reason::SynAck, 110, false));
    }
}

#[test]
fn retransmitted_syn_keeps_when_the_first_was_sent() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 1, 0));
    talk.low(1010, segment(SYN, 0, 1001, 0));
    let changes = talk.high(1030, segment(SYN | ACK, 0, 1, 1001)).changes;
    assert_eq!(changes, opened(Reason::Syn, 10, true));
}

#[test]
fn simultaneous_syns_open_both_directions() {
    let mut talk = Conversation::new();
    talk.low(10, segment(SYN, 0, 1, 0));
    assert_eq!(talk.high(11, segment(SYN, 0, 1, 0)).changes, opened(Reason::Syn, 10, true));
    assert_eq!(talk.low(20, segment(SYN | ACK, 0, 2, 1)).changes, opened(Reason::Syn, 11, false));
}

#[test]
fn reply_opens_the_direction_of_the_request_and_never_its_own() {
    let mut talk = Conversation::new();
    assert_eq!(talk.low(10, request(1)).changes, Changes::NONE);
    assert_eq!(talk.low(20, request(2)).changes, Changes::NONE);
    assert_eq!(talk.high(30, reply(2)).changes, opened(Reason::FirstObserved, 10, true));
    assert_eq!(talk.low(40, request(3)).changes, Changes::NONE);
    assert_eq!(lifecycles(&talk), (Lifecycle::OPEN, Lifecycle::UNSEEN));
}

#[test]
fn segment_without_timestamps_still_closes() {
    let mut talk = connected();
    let mut fin = segment(FIN | ACK, 0, 0, 0);
    fin.segment.has_timestamps = false;
    assert_eq!(talk.low(60, fin).changes, finished(false));
}
