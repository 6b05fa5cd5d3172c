//! Rate limits, and the RTTs that a flow direction keeps.

use crate::{
    flow::Endpoint,
    rtt::RttBasis,
    testing::{ACK, Conversation, MS, RST, SYN, data, pure_ack, rtt, segment},
};

/// One RTT, in the unit of `Rules::rtt_rate`.
const ONE: u64 = 1 << 16;

/// A conversation whose low end has samples of 20 and 100 ms: the lowest is 20, the smoothed 30. Its last recording was
/// at 100 ms, of `TSval` 102.
fn with_samples() -> Conversation {
    let mut talk = Conversation::in_progress();
    talk.low(10, data(101, 500));
    talk.high(30, pure_ack(500, 101));
    talk.low(100, data(102, 500));
    talk.high(200, pure_ack(500, 102));
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 20 * MS);
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, 30 * MS);
    talk
}

/// Whether a `TSval` is recorded `since` ms after another one, which was recorded at 1000 ms.
fn is_recorded_after(talk: &Conversation, since: u64) -> bool {
    let mut talk = Conversation { flow: talk.flow, rules: talk.rules };
    talk.low(1000, data(103, 500));
    assert_eq!(talk.pending_count(), 1);
    talk.low(1000 + since, data(104, 500));
    talk.pending_count() == 2
}

#[test]
fn rate_limit_is_from_recording_to_recording() {
    let mut talk = Conversation::in_progress();
    talk.rules.rate_limit = 100 * MS;
    let mut recorded = |ms, tsval| {
        let before = talk.pending_count();
        talk.low(ms, data(tsval, 500));
        talk.pending_count() > before
    };
    assert!(recorded(10, 101));
    assert!(!recorded(50, 102));
    assert!(!recorded(109, 103));
    assert!(recorded(110, 104));
    assert!(!recorded(209, 105));
}

#[test]
fn rate_limit_only_delays_to_the_next_first_of_its_tick() {
    let mut talk = Conversation::in_progress();
    talk.rules.rate_limit = 100 * MS;
    talk.low(10, data(101, 500));
    talk.high(30, pure_ack(501, 101));
    talk.low(109, data(102, 500));
    // The limit would allow it, but this is not the first segment of its tick.
    talk.low(111, data(102, 500));
    assert_eq!(talk.pending_count(), 0);
    talk.low(113, data(103, 500));
    assert_eq!(rtt(talk.high(133, pure_ack(501, 103))), Some((103, 20)));
}

#[test]
fn rate_limit_is_per_direction() {
    let mut talk = Conversation::in_progress();
    talk.rules.rate_limit = 100 * MS;
    talk.low(10, data(101, 500));
    talk.high(11, data(501, 100));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (1, 1));
}

#[test]
fn rate_limit_of_zero_is_none() {
    let mut talk = Conversation::in_progress();
    for tsval in 101..=108 {
        talk.low(10, data(tsval, 500));
    }
    assert_eq!(talk.pending_count(), 8);
}

#[test]
fn rate_limit_does_not_outlive_the_connection() {
    let mut talk = Conversation::in_progress();
    talk.rules.rate_limit = 100 * MS;
    talk.low(10, data(101, 500));
    talk.low(15, segment(RST, 0, 0, 0));
    talk.low(20, segment(SYN, 0, 900, 0));
    assert_eq!(rtt(talk.high(25, segment(SYN | ACK, 0, 800, 900))), Some((900, 5)));
}

#[test]
fn rtt_rate_counts_in_the_smoothed_rtt() {
    let mut talk = with_samples();
    talk.rules.rtt_rate = 2 * ONE;
    assert!(!is_recorded_after(&talk, 59));
    assert!(is_recorded_after(&talk, 60));
    talk.rules.rtt_rate = ONE / 2;
    assert!(!is_recorded_after(&talk, 14));
    assert!(is_recorded_after(&talk, 15));
}

#[test]
fn rtt_rate_counts_in_the_lowest_rtt() {
    let mut talk = with_samples();
    talk.rules.rtt_rate = 2 * ONE;
    talk.rules.rtt_basis = RttBasis::Min;
    assert!(!is_recorded_after(&talk, 39));
    assert!(is_recorded_after(&talk, 40));
}

#[test]
fn rtt_rate_limits_nothing_before_the_first_sample() {
    let mut talk = Conversation::in_progress();
    talk.rules.rtt_rate = 2 * ONE;
    assert!(is_recorded_after(&talk, 0));
}

#[test]
fn stricter_limit_wins() {
    let mut talk = with_samples();
    talk.rules.rtt_rate = 2 * ONE;
    talk.rules.rate_limit = 50 * MS;
    assert!(!is_recorded_after(&talk, 59));
    assert!(is_recorded_after(&talk, 60));
    talk.rules.rate_limit = 70 * MS;
    assert!(!is_recorded_after(&talk, 69));
    assert!(is_recorded_after(&talk, 70));
}

#[test]
fn largest_limits_do_not_overflow() {
    let mut talk = with_samples();
    talk.rules.rtt_rate = 0x00ff_ffff;
    let (min, _) = talk.flow.locked.rtts(Endpoint::Low);
    talk.flow.locked.set_rtts(Endpoint::Low, (min, u64::MAX));
    talk.low(1000, data(103, 500));
    talk.low(2000, data(104, 500));
    assert_eq!(talk.pending_count(), 0);
    // A little more than 256 times 18 minutes later.
    talk.low(300_000_000, data(105, 500));
    assert_eq!(talk.pending_count(), 1);
}

#[test]
fn smoothed_rtt_moves_by_an_eighth_after_the_first() {
    let mut talk = Conversation::in_progress();
    let mut smoothed_after = |ms, tsval, rtt| {
        talk.low(ms, data(tsval, 500));
        talk.high(ms + rtt, pure_ack(501, tsval));
        (talk.flow.rtt(Endpoint::Low).smoothed / 1000, talk.flow.rtt(Endpoint::Low).min / 1000)
    };
    assert_eq!(smoothed_after(1000, 101, 80), (80_000, 80_000));
    assert_eq!(smoothed_after(2000, 102, 40), (75_000, 40_000));
    assert_eq!(smoothed_after(3000, 103, 115), (80_000, 40_000));
    assert_eq!(smoothed_after(4000, 104, 800), (170_000, 40_000));
    assert_eq!(smoothed_after(5000, 105, 10), (150_000, 10_000));
}
