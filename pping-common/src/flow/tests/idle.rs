//! How long a flow may be idle, in sweeps.

use crate::{
    flow::Flow,
    testing::{ACK, Conversation, FIN, RST, SYN, reply, request, segment},
};

const TCP: u8 = 6;
const ICMP: u8 = 1;

/// Asserts that the flow outlives this many idle sweeps and not one more.
#[track_caller]
fn assert_idle_limit(flow: &Flow, number: u8, limit: u32) {
    assert!(!flow.hot.is_expired(number, 0));
    assert!(!flow.hot.is_expired(number, limit));
    assert!(flow.hot.is_expired(number, limit + 1));
}

#[test]
fn answered_connection_may_be_idle_for_300_s() {
    assert_idle_limit(&Conversation::in_progress().flow, TCP, 300);
}

#[test]
fn unanswered_connection_may_be_idle_for_30_s() {
    let mut talk = Conversation::new();
    talk.low(1, segment(SYN, 0, 1, 0));
    assert_idle_limit(&talk.flow, TCP, 30);
}

#[test]
fn half_closed_connection_may_be_idle_as_long_as_an_open_one() {
    let mut talk = Conversation::in_progress();
    talk.low(10, segment(FIN | ACK, 0, 101, 500));
    assert_idle_limit(&talk.flow, TCP, 300);
}

#[test]
fn closed_connection_is_kept_for_10_s() {
    let mut talk = Conversation::in_progress();
    talk.low(10, segment(FIN | ACK, 0, 101, 500));
    talk.high(11, segment(FIN | ACK, 0, 501, 101));
    assert_idle_limit(&talk.flow, TCP, 10);
    let mut talk = Conversation::in_progress();
    talk.high(10, segment(RST, 0, 0, 0));
    assert_idle_limit(&talk.flow, TCP, 10);
}

#[test]
fn echoes_may_be_idle_for_30_s() {
    let mut talk = Conversation::new();
    talk.low(1, request(1));
    assert_idle_limit(&talk.flow, ICMP, 30);
    talk.high(2, reply(1));
    assert_idle_limit(&talk.flow, ICMP, 30);
}
