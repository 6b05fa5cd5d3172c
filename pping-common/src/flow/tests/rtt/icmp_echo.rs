//! `icmp-echo`. The identifier is part of the flow key, so a flow only knows sequence numbers.

use core::ops::RangeInclusive;

use crate::{
    flow::Endpoint,
    limits::COPY_WITHIN,
    method::Method,
    parse::Transport,
    rtt::{Measured, Sample},
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
fn reply_with_other_data_does_not_match() {
    let with_data = |mut echo: Transport, data| {
        echo.echo.data = data;
        echo
    };
    let mut talk = Conversation::new();
    talk.low(10, with_data(request(1), 0x1234));
    for data in [0, 1, 0x1235, 0x5234] {
        assert_eq!(rtt(talk.high(30, with_data(reply(1), data))), None);
    }
    // A request with other data is another one.
    talk.low(31, with_data(request(1), 0x4321));
    assert_eq!(rtt(talk.high(40, with_data(reply(1), 0x1234))), Some((1, 30)));
    assert_eq!(rtt(talk.high(40, with_data(reply(1), 0x4321))), Some((1, 9)));
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
fn a_repeated_request_makes_both_ambiguous() {
    for later in [2, 6, 1_000, 20_000] {
        let mut talk = Conversation::new();
        talk.low(10, request(1));
        talk.low(10 + later, request(1));
        assert_eq!(talk.pending_count(), 0, "{later}");
        assert_eq!(rtt(talk.high(30 + later, reply(1))), None, "{later}");
        talk.low(50 + later, request(1));
        assert_eq!(rtt(talk.high(70 + later, reply(1))), Some((1, 20)), "{later}");
    }
}

#[test]
fn a_copy_of_a_request_changes_nothing() {
    for later in [0, 1, COPY_WITHIN - 1] {
        let mut talk = Conversation::new();
        talk.packet(Endpoint::Low, 10 * MS, &request(1));
        talk.packet(Endpoint::Low, 10 * MS + later, &request(1));
        assert_eq!(talk.pending_count(), 1, "{later}");
        assert_eq!(rtt(talk.high(30, reply(1))), Some((1, 20)), "{later}");
    }
}

#[test]
fn a_repeated_request_is_found_wherever_it_is_pending() {
    let mut talk = Conversation::new();
    requests(&mut talk, 1..=16);
    // Requests 1 to 8 are kept, and 9 to 16 are the latest.
    for sequence in [3, 12] {
        let measured = talk.low(20, request(sequence)).measured;
        assert!(!measured.pending_full && !measured.gave_way);
        assert_eq!(rtt(talk.high(30, reply(sequence))), None);
    }
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

/// Sends requests a millisecond apart, and asserts that none is given up.
fn requests(talk: &mut Conversation, sequences: RangeInclusive<u16>) {
    for sequence in sequences {
        let measured = talk.low(u64::from(sequence), request(sequence)).measured;
        assert!(!measured.pending_full && !measured.gave_way, "{sequence}");
    }
}

#[test]
fn traceroute_leaves_room_for_the_answered_request() {
    // mtr asks 12 hosts each second, and only the last one answers; with tracert, there are more.
    for (hosts, interval, rounds) in [(12, 83, 60), (90, 30, 20)] {
        for rate_limit in [0, 100 * MS] {
            let mut talk = Conversation::new();
            talk.rules.rate_limit = rate_limit;
            let (mut now, mut sequence, mut samples) = (10, 0, 0);
            for _ in 0..rounds {
                for _ in 0..hosts {
                    sequence += 1;
                    now += interval;
                    talk.low(now, request(sequence));
                }
                samples +=
                    usize::from(rtt(talk.high(now + 20, reply(sequence))) == Some((sequence.into(), 20)));
            }
            assert_eq!(samples, rounds, "{hosts} hosts, limit {rate_limit}");
        }
    }
}

#[test]
fn an_outage_costs_only_what_is_lost() {
    let mut talk = Conversation::new();
    let mut given_up = 0;
    for sequence in 0..600 {
        let now = 10 + 100 * u64::from(sequence);
        given_up += usize::from(talk.low(now, request(sequence)).measured.gave_way);
        // The host is away for half a minute.
        if !(100..400).contains(&sequence) {
            assert_eq!(rtt(talk.high(now + 20, reply(sequence))), Some((sequence.into(), 20)));
        }
    }
    // Eight of the outage are kept, and give way to nobody.
    assert!(given_up > 0 && given_up < 300, "{given_up}");
}

#[test]
fn lost_requests_cost_no_sample_whichever_they_are() {
    for lost in 1..40_u32 {
        let mut talk = Conversation::new();
        for sequence in 0..400_u16 {
            let now = 10 + 200 * u64::from(sequence);
            talk.low(now, request(sequence));
            // Up to 39 of 40 are lost, in any order.
            if u32::from(sequence).wrapping_mul(2_654_435_761) >> 16 & 0xffff >= lost * 0x10000 / 40 {
                assert_eq!(
                    rtt(talk.high(now + 150, reply(sequence))),
                    Some((sequence.into(), 150)),
                    "{lost}"
                );
            }
        }
    }
}

#[test]
fn long_delays_are_measured_while_there_is_room() {
    // Up to 16 requests are under way.
    for delay in [700, 1500] {
        let mut talk = Conversation::new();
        let mut samples = 0;
        for sequence in 0..200_u16 {
            let now = 10 + 100 * u64::from(sequence);
            if now > delay {
                let before = (now - delay - 10).div_ceil(100) as u16;
                if u64::from(before) * 100 + 10 + delay <= now {
                    samples +=
                        usize::from(rtt(talk.high(now, reply(before))) == Some((before.into(), delay)));
                }
            }
            let measured = talk.low(now, request(sequence)).measured;
            assert!(!measured.pending_full && !measured.gave_way);
        }
        assert_eq!(samples, 200 - delay as usize / 100);
    }
}

#[test]
fn without_room_those_that_wait_longest_are_kept() {
    // 50 are under way at a time.
    for rate_limit in [0, 100 * MS] {
        let mut talk = Conversation::new();
        talk.rules.rate_limit = rate_limit;
        let (mut samples, mut full) = (0, 0);
        for sequence in 0..600_u16 {
            let now = 10 + 100 * u64::from(sequence);
            if let Some(answered) = sequence.checked_sub(50) {
                let found = rtt(talk.high(now, reply(answered)));
                assert!(found.is_none_or(|found| found == (answered.into(), 5000)));
                samples += usize::from(found.is_some());
            }
            full += usize::from(talk.low(now, request(sequence)).measured.pending_full);
        }
        // Eight of 42 are kept.
        assert!((100..=112).contains(&samples), "{samples} with limit {rate_limit}");
        assert_eq!(full, 600 - 8 - 8 - samples, "all others are counted");
    }
}

#[test]
fn late_reply_to_a_request_that_was_given_up_gives_no_sample() {
    let mut talk = Conversation::new();
    requests(&mut talk, 1..=16);
    assert!(talk.low(17, request(17)).measured.pending_full, "request 9 is given up");
    assert_eq!(rtt(talk.high(30, reply(9))), None);
    assert_eq!(rtt(talk.high(31, reply(1))), Some((1, 30)));
    assert_eq!(rtt(talk.high(32, reply(10))), Some((10, 22)));
    assert_eq!(rtt(talk.high(33, reply(17))), Some((17, 16)));
}

#[test]
fn kept_request_gives_way_once_a_later_one_is_answered() {
    let mut talk = Conversation::new();
    requests(&mut talk, 1..=16);
    assert_eq!(rtt(talk.high(16, reply(5))), Some((5, 11)));
    // Request 9 takes the place of request 5, and request 10 that of request 1.
    requests(&mut talk, 17..=17);
    let measured = talk.low(18, request(18)).measured;
    assert!(measured.gave_way && !measured.pending_full);
    assert_eq!(rtt(talk.high(30, reply(1))), None);
    assert_eq!(rtt(talk.high(30, reply(2))), Some((2, 28)), "there was room for it");
    assert_eq!(rtt(talk.high(30, reply(10))), Some((10, 20)));
}

#[test]
fn kept_request_gives_way_after_ten_seconds() {
    let mut talk = Conversation::new();
    requests(&mut talk, 1..=16);
    assert!(talk.low(10_000, request(17)).measured.pending_full);
    let measured = talk.low(10_001, request(18)).measured;
    assert!(measured.gave_way && !measured.pending_full);
    assert_eq!(rtt(talk.high(10_002, reply(1))), None);
    assert_eq!(rtt(talk.high(10_002, reply(2))), Some((2, 10_000)));
    assert_eq!(rtt(talk.high(10_002, reply(10))), Some((10, 9992)));
}

#[test]
fn limits_hold_between_the_requests_of_two_samples() {
    let mut talk = Conversation::new();
    talk.rules.rate_limit = 100 * MS;
    talk.low(10, request(1));
    talk.low(50, request(2));
    talk.low(110, request(3));
    assert_eq!(rtt(talk.high(115, reply(1))), Some((1, 105)));
    assert_eq!(rtt(talk.high(120, reply(2))), None);
    assert_eq!(rtt(talk.high(121, reply(3))), Some((3, 11)));
    // An unanswered request does not stand in the way of the next.
    talk.low(210, request(4));
    talk.low(250, request(5));
    assert_eq!(rtt(talk.high(260, reply(5))), Some((5, 10)));
    assert_eq!(rtt(talk.high(261, reply(4))), None);
}

#[test]
fn limits_hold_for_replies_in_another_order() {
    let mut talk = Conversation::new();
    talk.rules.rate_limit = 100 * MS;
    for (now, sequence) in [(10, 1), (60, 2), (210, 3)] {
        talk.low(now, request(sequence));
    }
    assert_eq!(rtt(talk.high(220, reply(3))), Some((3, 10)));
    assert_eq!(rtt(talk.high(221, reply(2))), Some((2, 161)));
    assert_eq!(rtt(talk.high(222, reply(1))), Some((1, 212)), "as far from the newest sample");
}

#[test]
fn fast_requests_with_a_limit_are_kept_as_far_apart() {
    // 100 a second, each answered after half a second: eight kept ones at 10 ms would give two samples a second.
    let mut talk = Conversation::new();
    talk.rules.rate_limit = 100 * MS;
    let mut samples = 0;
    for sequence in 0..1000_u16 {
        let now = 10 + 10 * u64::from(sequence);
        if let Some(answered) = sequence.checked_sub(50) {
            samples += usize::from(rtt(talk.high(now, reply(answered))).is_some());
        }
        assert!(!talk.low(now, request(sequence)).measured.pending_full);
    }
    assert_eq!(samples, 95);
}

#[test]
fn both_ends_may_send_requests_with_one_identifier() {
    // Windows gives all of its pings identifier 1.
    let mut talk = Conversation::new();
    for sequence in 0..100 {
        let now = 100 * u64::from(sequence);
        talk.low(now + 10, request(sequence));
        talk.high(now + 11, request(sequence));
        assert_eq!(rtt(talk.high(now + 30, reply(sequence))), Some((sequence.into(), 20)));
        assert_eq!(rtt(talk.low(now + 41, reply(sequence))), Some((sequence.into(), 30)));
    }
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, 20 * MS);
    assert_eq!(talk.flow.rtt(Endpoint::High).min, 30 * MS);
}

/// What became of requests, as the programs count it.
#[derive(Default, Debug, PartialEq, Eq)]
struct EchoCounts {
    asked: u32,
    answered: u32,
    not_awaited: u32,
}

impl EchoCounts {
    fn add(&mut self, measured: Measured) -> Option<Sample> {
        self.asked += u32::from(measured.asked);
        self.answered += u32::from(measured.answered);
        self.not_awaited += u32::from(measured.not_awaited);
        measured.sample()
    }
}

#[test]
fn rate_limit_does_not_affect_echo_counts() {
    let mut talk = Conversation::new();
    talk.rules.rate_limit = 100 * MS;
    let (mut counts, mut samples) = (EchoCounts::default(), 0);
    for sequence in 0..100_u16 {
        let now = 10 + 10 * u64::from(sequence);
        counts.add(talk.low(now, request(sequence)).measured);
        if sequence % 10 != 3 {
            samples += u32::from(counts.add(talk.high(now + 5, reply(sequence)).measured).is_some());
        }
    }
    assert_eq!(counts, EchoCounts { asked: 100, answered: 90, not_awaited: 0 });
    assert_eq!(samples, 10);
}

#[test]
fn a_copy_of_a_request_and_a_second_reply_do_not_count() {
    let mut talk = Conversation::new();
    let mut counts = EchoCounts::default();
    for later in [0, COPY_WITHIN - 1] {
        counts.add(talk.packet(Endpoint::Low, 10 * MS + later, &request(1)).measured);
    }
    for now in [30, 31] {
        counts.add(talk.high(now, reply(1)).measured);
    }
    assert_eq!(counts, EchoCounts { asked: 1, answered: 1, not_awaited: 0 });
}

#[test]
fn nobody_waits_for_a_reply_to_one_of_two_requests() {
    let mut talk = Conversation::new();
    let mut counts = EchoCounts::default();
    for now in [10, 1010] {
        counts.add(talk.low(now, request(1)).measured);
    }
    counts.add(talk.high(1030, reply(1)).measured);
    assert_eq!(counts, EchoCounts { asked: 1, answered: 0, not_awaited: 1 });
}

#[test]
fn requests_that_nobody_waits_for_are_not_taken_for_unanswered() {
    // 50 are under way at a time, and all are answered, whether there is no room or a limit keeps them out.
    for (rate_limit, interval) in [(0, 100), (100 * MS, 100), (100 * MS, 10)] {
        let mut talk = Conversation::new();
        talk.rules.rate_limit = rate_limit;
        let mut counts = EchoCounts::default();
        for sequence in 0..600_u16 {
            let now = 10 + interval * u64::from(sequence);
            if let Some(answered) = sequence.checked_sub(50) {
                counts.add(talk.high(now, reply(answered)).measured);
            }
            counts.add(talk.low(now, request(sequence)).measured);
        }
        let EchoCounts { asked, answered, not_awaited } = counts;
        assert_eq!(asked, 600);
        // Up to 16 are still pending.
        let pending = asked - answered - not_awaited;
        assert!(pending <= 16, "{rate_limit} {interval}: {answered} and {not_awaited}");
        assert!(answered > 50 && not_awaited > 400, "{rate_limit} {interval}: {answered} and {not_awaited}");
    }
}
