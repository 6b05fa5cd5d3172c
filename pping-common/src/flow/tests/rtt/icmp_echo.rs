//! `icmp-echo`. The identifier is part of the flow key, so a flow only knows sequence numbers.

use crate::{
    flow::Endpoint,
    rtt::{Method, Sample},
    testing::{Conversation, MS, reply, request, rtt},
};

#[test]
fn request_is_timed_to_its_reply() {
    let mut talk = Conversation::new();
    talk.low(10, request(1));
    let sample = talk.high(30, reply(1)).measured.sample();
    assert_eq!(sample, Some(Sample { method: Method::IcmpEcho, identifier: 1, rtt: 20 * MS, side_rtt: 0 }));
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, 20 * MS);
}

#[test]
fn reply_with_another_sequence_number_does_not_match() {
    let mut talk = Conversation::new();
    talk.low(10, request(1));
    assert_eq!(rtt(talk.high(30, reply(2))), None);
    assert_eq!(rtt(talk.high(30, reply(0x101))), None);
    assert_eq!(rtt(talk.high(31, reply(1))), Some((1, 21)));
}

#[test]
fn sequence_number_zero_is_one_like_any_other() {
    let mut talk = Conversation::new();
    assert_eq!(rtt(talk.high(5, reply(0))), None);
    talk.low(10, request(0));
    assert_eq!(rtt(talk.high(30, reply(0))), Some((0, 20)));
}

#[test]
fn duplicate_reply_gives_no_second_sample() {
    let mut talk = Conversation::new();
    talk.low(10, request(1));
    assert_eq!(rtt(talk.high(30, reply(1))), Some((1, 20)));
    assert_eq!(rtt(talk.high(31, reply(1))), None);
}

#[test]
fn repeated_request_replaces_the_recording() {
    let mut talk = Conversation::new();
    talk.low(10, request(1));
    talk.low(1010, request(1));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(1030, reply(1))), Some((1, 20)));
    assert_eq!(rtt(talk.high(1031, reply(1))), None);
}

#[test]
fn repeated_request_replaces_even_when_slots_are_full_or_the_rate_is_limited() {
    let mut talk = Conversation::new();
    for sequence in 1..=8 {
        talk.low(u64::from(sequence), request(sequence));
    }
    talk.rules.rate_limit = 1000 * MS;
    assert!(!talk.low(10, request(3)).measured.pending_full);
    assert_eq!(rtt(talk.high(30, reply(3))), Some((3, 20)));
    assert_eq!(rtt(talk.high(31, reply(2))), Some((2, 29)));
}

#[test]
fn reply_leaves_older_requests_waiting() {
    let mut talk = Conversation::new();
    talk.low(10, request(1));
    talk.low(20, request(2));
    assert_eq!(rtt(talk.high(40, reply(2))), Some((2, 20)));
    assert_eq!(rtt(talk.high(45, reply(1))), Some((1, 35)));
}

#[test]
fn reply_of_the_requesting_side_does_not_match() {
    let mut talk = Conversation::new();
    talk.low(10, request(1));
    assert_eq!(rtt(talk.low(20, reply(1))), None);
    assert_eq!(rtt(talk.high(30, request(1))), None);
    assert_eq!(rtt(talk.high(31, reply(1))), Some((1, 21)));
    assert_eq!(rtt(talk.low(32, reply(1))), Some((1, 2)));
}

#[test]
fn reply_is_not_recorded() {
    let mut talk = Conversation::new();
    talk.low(10, reply(1));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn rate_limit_holds_for_requests() {
    let mut talk = Conversation::new();
    talk.rules.rate_limit = 100 * MS;
    talk.low(10, request(1));
    talk.low(50, request(2));
    talk.low(110, request(3));
    assert_eq!(talk.pending_count(), 2);
    assert_eq!(rtt(talk.high(120, reply(2))), None);
    assert_eq!(rtt(talk.high(121, reply(3))), Some((3, 11)));
}
