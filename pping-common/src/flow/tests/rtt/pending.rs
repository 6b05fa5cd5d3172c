//! How many identifiers can be pending, and for how long.

use crate::{
    limits::LATEST,
    testing::{Conversation, MS, data, pure_ack, request, rtt},
};

const LIFETIME_MS: u64 = 10_000;

/// Eight `TSval`s are pending: 101 since 101 ms, and so on.
fn full() -> Conversation {
    let mut talk = Conversation::in_progress();
    for tsval in 101..=108 {
        assert!(!talk.low(u64::from(tsval), data(tsval, 500)).measured.pending_full);
    }
    assert_eq!(talk.pending_count(), 8);
    talk
}

#[test]
fn ninth_is_counted_and_not_recorded() {
    let mut talk = full();
    assert!(talk.low(109, data(109, 500)).measured.pending_full);
    assert_eq!(talk.pending_count(), 8);
    assert_eq!(rtt(talk.high(120, pure_ack(501, 101))), Some((101, 19)));
    assert_eq!(rtt(talk.high(121, pure_ack(501, 108))), Some((108, 13)));
    assert_eq!(rtt(talk.high(122, pure_ack(501, 109))), None);
}

#[test]
fn full_is_counted_for_first_segments_of_a_tick_only() {
    let mut talk = full();
    assert!(!talk.low(109, data(108, 500)).measured.pending_full);
    assert!(!talk.low(110, pure_ack(109, 500)).measured.pending_full);
}

#[test]
fn full_is_not_counted_where_the_rate_limit_forbids_anyway() {
    let mut talk = full();
    talk.rules.rate_limit = 100 * MS;
    assert!(!talk.low(109, data(109, 500)).measured.pending_full);
}

#[test]
fn what_found_no_slot_does_not_count_for_the_rate_limit() {
    let mut talk = full();
    talk.rules.rate_limit = 100 * MS;
    assert!(talk.low(300, data(109, 500)).measured.pending_full);
    talk.high(301, pure_ack(501, 108));
    assert!(!talk.low(310, data(110, 500)).measured.pending_full);
    assert_eq!(talk.pending_count(), 1);
}

#[test]
fn freed_slot_is_used_again() {
    let mut talk = full();
    talk.high(120, pure_ack(501, 104));
    assert_eq!(talk.pending_count(), 4);
    for tsval in 109..=112 {
        assert!(!talk.low(130, data(tsval, 500)).measured.pending_full);
    }
    assert!(talk.low(131, data(113, 500)).measured.pending_full);
    assert_eq!(rtt(talk.high(140, pure_ack(502, 105))), Some((105, 35)));
    assert_eq!(rtt(talk.high(141, pure_ack(502, 112))), Some((112, 11)));
}

#[test]
fn slot_is_overwritten_once_it_has_waited_ten_seconds() {
    let mut talk = full();
    assert!(talk.low(101 + LIFETIME_MS - 1, data(109, 500)).measured.pending_full);
    let replaced = talk.low(101 + LIFETIME_MS, data(110, 500)).measured;
    assert!(!replaced.pending_full && replaced.gave_way);
    // Only the oldest was replaced. The next has not been pending for long enough.
    assert!(talk.low(101 + LIFETIME_MS, data(111, 500)).measured.pending_full);
    assert_eq!(rtt(talk.high(101 + LIFETIME_MS, pure_ack(501, 101))), None);
    assert_eq!(rtt(talk.high(101 + LIFETIME_MS, pure_ack(501, 102))), Some((102, LIFETIME_MS - 1)));
    assert_eq!(rtt(talk.high(151 + LIFETIME_MS, pure_ack(501, 110))), Some((110, 50)));
}

#[test]
fn slot_waits_on_while_there_is_room() {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.low(60_000, data(102, 500));
    assert_eq!(rtt(talk.high(60_010, pure_ack(501, 101))), Some((101, 60_000)));
}

#[test]
fn times_near_the_highest_have_room() {
    let mut talk = Conversation::new();
    for sequence in 1..=8 {
        assert!(!talk.low((LATEST + 1) / MS, request(sequence)).measured.pending_full);
    }
    assert_eq!(talk.pending_count(), 8);
}
