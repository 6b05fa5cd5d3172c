//! Numbers that do not fit: they change nothing, and where packets were missed, both ends say where the connection continues.

use std::{vec, vec::Vec};

use super::forged::{BOTH, Connection, by_data, has_changes, rtts, stamped};
use crate::{
    flow::Endpoint,
    limits::{AHEAD, UNKNOWN_WINDOW},
    method::{Method, Methods},
    parse::{Timestamps, Transport},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, Random, SYN, bare, snapshot},
};

/// Window scales of the low and of the high end, and how far the low end's numbers may be ahead and behind.
const WINDOWS: [([u8; 2], u32, u32); 5] = [
    ([0, 0], AHEAD, UNKNOWN_WINDOW),
    ([8, 0], AHEAD, UNKNOWN_WINDOW),
    ([0, 8], AHEAD, 1 << 23),
    ([1, 1], 1 << 16, 1 << 16),
    ([3, 8], AHEAD, 1 << 23),
];

/// Segments of the low end whose sequence numbers do not fit.
fn by_sequence(number: u32) -> [(Endpoint, Transport); 2] {
    [
        (Endpoint::Low, bare(ACK | PSH, number, 100, 9_001)),
        (Endpoint::Low, stamped(number, bare(FIN | ACK, number, 0, 9_001))),
    ]
}

/// Segments of the high end whose acknowledgements do not fit.
fn by_acknowledgement(number: u32) -> [(Endpoint, Transport); 2] {
    [
        (Endpoint::High, bare(ACK | PSH, 9_001, 100, number)),
        (Endpoint::High, stamped(number, bare(FIN | ACK, 9_001, 0, number))),
    ]
}

#[test]
fn numbers_outside_of_the_window_change_nothing() {
    let all = [by_sequence, by_acknowledgement].into_iter().flat_map(|forge| BOTH.map(|has| (has, forge)));
    for (has_timestamps, forge) in all {
        for (scales, ahead, behind) in WINDOWS {
            let mut connection = Connection::with_scales(has_timestamps, scales);
            for round in 0..40_u32 {
                // The data before it ends 100 bytes later.
                let next = connection.next.wrapping_add(100);
                let far = [
                    next.wrapping_add(ahead + 1),
                    next.wrapping_sub(behind + 1),
                    next ^ 1 << 31,
                    next.wrapping_add(0x4000_0001 + round * 0x0100_0000),
                ];
                let forged = forge(far[round as usize % far.len()]);
                let outcomes = connection.exchange_around(&forged);
                assert_eq!(rtts(&outcomes), [(by_data(has_timestamps), 20)], "{scales:?}, round {round}");
                assert!(!has_changes(&outcomes), "{scales:?}, round {round}");
                let refused = outcomes.iter().filter(|outcome| outcome.is_refused).count();
                assert_eq!(refused, forged.len(), "{scales:?}, round {round}");
            }
            let events = connection.talk.flow.events;
            assert_eq!(events.map(|events| (events.retransmissions, events.reordered)), [(0, 0); 2]);
            assert!(connection.is_open());
        }
    }
}

/// Segments that are in no order, as of somebody who knows no numbers.
const GUESSES: [u32; 5] = [0x4000_0000, 0x8000_0000, 0xc000_0000, 1_101 + (4 << 20), 0xff00_0000];

#[test]
fn what_somebody_sent_before_the_ends_is_forgotten() {
    let cases =
        GUESSES.into_iter().flat_map(|guess| [Endpoint::Low, Endpoint::High].map(|from| (guess, from)));
    for ((guess, from), has_timestamps) in cases.flat_map(|case| BOTH.map(|has| (case, has))) {
        let data = bare(ACK | PSH, guess, 10, !guess);
        let forged =
            [data, bare(ACK, guess, 0, !guess), bare(SYN, guess, 0, 0), bare(SYN | ACK, guess, 0, !guess)];
        for forged in forged {
            let stamped = |tsval, tsecr, mut transport: Transport| {
                transport.segment.has_timestamps = has_timestamps;
                transport.segment.timestamps = Timestamps { tsval, tsecr };
                transport
            };
            let mut talk = Conversation::by(Methods::ALL);
            talk.packet(from, 5 * MS, &stamped(guess, 1, forged));
            let mut found = Vec::new();
            for round in 0..10_u32 {
                let (ms, low, high) = (u64::from(100 * round), 1_001 + 100 * round, 9_001 + 50 * round);
                let (tsval, tsecr) = (7_000 + 100 * round, 500 + 100 * round);
                talk.low(10 + ms, stamped(tsval, tsecr - 50, bare(ACK | PSH, low, 100, high)));
                let answer = stamped(tsecr, tsval, bare(ACK | PSH, high, 50, low + 100));
                found.push(talk.high(30 + ms, answer));
            }
            // Without the forged one the first samples come in the second round.
            let rtts = rtts(&found);
            assert!(rtts.len() >= 5, "{guess:#x}: {rtts:?}");
            assert!(rtts.iter().all(|&(method, rtt)| method == by_data(has_timestamps) && rtt == 20));
            let retransmissions = talk.flow.events.map(|events| events.retransmissions);
            // One that is near may be a retransmission, as long as the other end has sent nothing.
            let most = u32::from(guess < 1 << 24);
            assert!(retransmissions.iter().sum::<u32>() <= most, "{guess:#x}: {retransmissions:?}");
        }
    }
}

/// What was sent between a SYN and its SYN-ACK does not decide by what their connection is measured.
#[test]
fn what_somebody_sent_in_a_handshake_is_forgotten() {
    let stamped = |tsval, tsecr, mut transport: Transport| {
        transport.segment.has_timestamps = true;
        transport.segment.timestamps = Timestamps { tsval, tsecr };
        transport
    };
    let flags = [ACK, ACK | PSH, ACK | FIN, SYN, SYN | ACK];
    for (guess, flags) in GUESSES.into_iter().flat_map(|guess| flags.map(|flags| (guess, flags))) {
        for tsval in [guess, 0] {
            let mut talk = Conversation::by(Methods::ALL);
            talk.low(10, stamped(100, 0, bare(SYN, 1_000, 0, 0)));
            let acknowledgement = if flags == SYN { 0 } else { !guess };
            talk.high(12, stamped(tsval, 0, bare(flags, guess, 0, acknowledgement)));
            let mut found = vec![talk.high(30, stamped(500, 100, bare(SYN | ACK, 9_000, 0, 1_001)))];
            found.push(talk.low(31, stamped(121, 500, bare(ACK, 1_001, 0, 9_001))));
            found.push(talk.low(40, stamped(130, 500, bare(ACK | PSH, 1_001, 100, 9_001))));
            found.push(talk.high(60, stamped(530, 130, bare(ACK | PSH, 9_001, 50, 1_101))));
            found.push(talk.low(70, stamped(160, 530, bare(ACK, 1_101, 0, 9_051))));
            let rtts = rtts(&found);
            let expected = [
                (Method::TcpHandshake, 20),
                (Method::TcpHandshake, 1),
                (Method::TcpTs, 20),
                (Method::TcpTs, 10),
            ];
            assert_eq!(rtts, expected, "{guess:#x}, {tsval:#x}, {flags:#x}");
        }
    }
}

#[test]
fn an_end_that_is_not_confirmed_resets_only_what_it_has_seen() {
    for is_begun in BOTH {
        let mut talk = Conversation::by(Methods::ALL);
        if is_begun {
            talk.low(10, bare(SYN, 1_000, 0, 0));
        } else {
            talk.low(10, bare(ACK | PSH, 901, 100, 9_001));
        }
        assert!(talk.high(15, bare(RST, 0x4000_0000, 0, 0)).is_refused);
        // Who sends the number first that the RST has is not believed, either.
        talk.high(16, bare(ACK | PSH, 0x4000_0000, 10, 0x7000_0000));
        talk.high(17, bare(RST, 0x4000_000a, 0, 0));
        talk.high(18, bare(RST | ACK, 0x4000_000a, 0, 0x7000_0000));
        assert!(talk.flow.hot.is_open());
        assert!(talk.high(20, bare(RST | ACK, 0, 0, 1_001)).changes.closed_last);
    }
}

#[test]
fn a_sequence_number_that_nobody_confirmed_gives_no_sample() {
    for acknowledged in [0x4000_0000, 0x7000_0000, 0xc000_0000_u32] {
        let mut talk = Conversation::by(Methods::ALL);
        // The third segment without timestamps has sequence numbers timed.
        let forged = [0, 1_000, 2_000].map(|ahead| bare(ACK | PSH, 0x3000_0000 + ahead, 100, 7));
        let mut found: Vec<_> = forged.into_iter().map(|forged| talk.high(10, forged)).collect();
        found.push(talk.low(300, bare(ACK, 1_001, 0, acknowledged)));
        assert_eq!(rtts(&found), [], "{acknowledged:#x}");
    }
}

#[test]
fn a_fin_that_leaps_changes_no_timestamps() {
    let mut connection = Connection::with_scales(true, [0, 0]);
    connection.exchange_around(&[]);
    let newest = connection.talk.flow.hot.direction(Endpoint::Low).newest_tsval;
    let number = connection.talk.flow.hot.direction(Endpoint::Low).sequence_end;
    let mut fin = bare(FIN | ACK, number, 0, 9_001);
    fin.segment.has_timestamps = true;
    fin.segment.timestamps = Timestamps { tsval: newest.wrapping_add(0x4000_0000), tsecr: 0 };
    connection.exchange_around(&[(Endpoint::Low, fin)]);
    let after = connection.talk.flow.hot.direction(Endpoint::Low).newest_tsval;
    assert!(after.wrapping_sub(newest) < 1 << 20, "{newest} {after}");
}

#[test]
fn who_acknowledges_what_the_other_end_sent_confirms_the_flow() {
    let far = bare(ACK | PSH, 0x8000_0000, 100, 9_001);
    for (acknowledged, confirms) in [
        (1_101, true),
        (1_101 - 1_000, true),
        (1_101 + 60_000, true),
        (1_101 + 70_000, false),
        (1 << 31, false),
    ] {
        let mut talk = Conversation::by(Methods::ALL);
        talk.low(10, bare(ACK | PSH, 1_001, 100, 9_001));
        talk.high(20, bare(ACK | PSH, 9_001, 100, acknowledged));
        assert_eq!(talk.low(30, far).is_refused, confirms, "{acknowledged}");
    }
}

#[test]
fn what_a_window_has_under_way_is_measured() {
    for (scales, ahead, _) in WINDOWS {
        let mut connection = Connection::with_scales(false, scales);
        let talk = &mut connection.talk;
        // The ACK is for what was sent first, a window before the last.
        talk.low(100, bare(ACK | PSH, 1_101, 1_000, 9_001));
        talk.low(101, bare(ACK | PSH, 1_101 + ahead - 1_000, 1_000, 9_001));
        let answered = talk.high(120, bare(ACK, 9_001, 0, 2_101));
        assert_eq!(rtts(&[answered]), [(by_data(false), 20)], "{scales:?}");
        let answered = talk.high(121, bare(ACK, 9_001, 0, 1_101 + ahead));
        assert_eq!(rtts(&[answered]), [(by_data(false), 20)], "{scales:?}");
    }
}

#[test]
fn a_direction_continues_where_the_other_end_confirms_it() {
    for has_timestamps in BOTH {
        let mut connection = Connection::with_scales(has_timestamps, [8, 8]);
        connection.exchange();
        // Packets take another path for a while.
        connection.ms += 5_000;
        connection.next = connection.next.wrapping_add(100_000_000);
        let outcomes = connection.exchange();
        assert!(outcomes[0].is_refused && !outcomes[1].is_refused);
        assert!(rtts(&outcomes).is_empty());
        // As after any packets that were missed, the first of a tick is not known.
        let outcomes = [connection.exchange(), connection.exchange()];
        assert_eq!(rtts(&outcomes[1]), [(by_data(has_timestamps), 20)]);
        assert!(outcomes.iter().flatten().all(|outcome| !outcome.is_refused));
    }
}

#[test]
fn guesses_that_fit_silence_no_direction() {
    for (has_timestamps, scales) in BOTH.into_iter().flat_map(|has| [1, 5, 8, 11].map(|scale| (has, scale))) {
        let window = 1 << (15 + scales);
        let ahead = AHEAD.min(window);
        let mut connection = Connection::with_scales(has_timestamps, [scales; 2]);
        let mut highest = connection.next;
        while highest - connection.next <= window {
            connection.exchange();
            highest += ahead;
            let guess = bare(ACK | PSH, highest - 100, 100, 9_001);
            assert!(!connection.talk.low(connection.ms, guess).is_refused, "{scales}");
        }
        // The answer of the other end says where the direction is.
        let outcomes = connection.exchange();
        assert!(outcomes[0].is_refused && !outcomes[1].is_refused, "{scales}");
        let outcomes = [connection.exchange(), connection.exchange()];
        assert_eq!(rtts(&outcomes[1]), [(by_data(has_timestamps), 20)], "{scales}");
        assert!(outcomes.iter().flatten().all(|outcome| !outcome.is_refused), "{scales}");
    }
}

#[test]
fn a_hundred_thousand_guesses_silence_no_connection() {
    const ROUNDS: u32 = 1_000;
    let mut random = Random(35);
    let mut number = || random.number() as u32;
    for (has_timestamps, scale) in BOTH.into_iter().flat_map(|has| [0, 1, 8, 11].map(|scale| (has, scale))) {
        let mut connection = Connection::with_scales(has_timestamps, [scale; 2]);
        let mut measured = 0;
        for round in 0..ROUNDS {
            let forged: Vec<_> = (0..100)
                .map(|_| {
                    let mut data = bare(ACK | PSH, number(), 10, number());
                    data.segment.has_timestamps = has_timestamps;
                    data.segment.timestamps = Timestamps { tsval: number(), tsecr: number() };
                    (if round % 2 == 0 { Endpoint::Low } else { Endpoint::High }, data)
                })
                .collect();
            let found = rtts(&connection.exchange_around(&forged));
            assert!(found.is_empty() || found == [(by_data(has_timestamps), 20)], "{scale}: {found:?}");
            measured += found.len() as u32;
        }
        // One guess in 65,000 makes sequence numbers seem sent again, until the direction has sent as much.
        let least = if has_timestamps { ROUNDS * 9 / 10 } else { ROUNDS / 2 };
        assert!(measured > least, "{scale}, {has_timestamps}: {measured} of {ROUNDS}");
        connection.next += AHEAD;
        let outcomes = [0; 3].map(|_| connection.exchange());
        assert_eq!(rtts(&outcomes[2]), [(by_data(has_timestamps), 20)], "{scale}");
    }
}

/// Bulk data with much under way, of which packets are missed at once: the direction continues where it is, and not where it was
/// acknowledged.
#[test]
fn bulk_data_is_measured_again_a_round_trip_after_a_gap() {
    const SEGMENT: u32 = 10_000;
    for (has_timestamps, scale) in BOTH.into_iter().flat_map(|has| [0, 8, 11].map(|scale| (has, scale))) {
        let mut connection = Connection::with_scales(has_timestamps, [scale; 2]);
        let begin = connection.next;
        let mut measured = Vec::new();
        // A segment a millisecond, 300 under way, and 120 that are missed.
        for number in 0..2_000_u32 {
            let ms = 1_000 + u64::from(number);
            let stamped = |tsval: u32, tsecr: u32, mut transport: Transport| {
                transport.segment.has_timestamps = has_timestamps;
                transport.segment.timestamps = Timestamps { tsval, tsecr };
                transport
            };
            let tick = 7_000 + ms as u32;
            if !(600..720).contains(&number) {
                let data = bare(ACK | PSH, begin + number * SEGMENT, SEGMENT, 9_001);
                connection.talk.low(ms, stamped(tick, tick - 7_000, data));
            }
            if let Some(acknowledged) = number.checked_sub(300) {
                let ack = bare(ACK, 9_001, 0, begin + (acknowledged + 1) * SEGMENT);
                let outcome = connection.talk.high(ms, stamped(tick - 6_500, tick - 300, ack));
                measured.extend(rtts(&[outcome]).into_iter().map(|(_, rtt)| (number, rtt)));
            }
        }
        assert!(measured.iter().all(|&(_, rtt)| rtt == 300), "{scale}: {measured:?}");
        // The first ACK of what came after the gap is the 1,020th. What comes then is acknowledged 300 later. Eight can wait.
        let again = measured.iter().filter(|(number, _)| *number >= 1_325).count();
        assert!(again >= 16, "{scale}, {has_timestamps}: {again}");
    }
}

#[test]
fn one_end_alone_cannot_say_where_a_direction_continues() {
    let far = 1_101 + (1 << 30);
    for confirmation in [
        bare(ACK, 0x8000_2329, 0, far),
        bare(ACK, 9_001, 0, far.wrapping_add(0x8000_0000)),
        bare(PSH, 9_001, 100, far),
    ] {
        let mut connection = Connection::with_scales(false, [8, 8]);
        for _ in 0..100 {
            assert!(connection.talk.low(200, bare(ACK | PSH, far, 100, 9_001)).is_refused);
        }
        connection.talk.high(210, confirmation);
        assert!(connection.talk.low(220, bare(ACK | PSH, far, 100, 9_001)).is_refused, "{confirmation:?}");
    }
}

#[test]
fn the_acknowledgement_says_where_a_direction_continues() {
    for has_timestamps in BOTH {
        let mut connection = Connection::with_scales(has_timestamps, [8, 8]);
        connection.exchange();
        let next = connection.next;
        // A forged number, then an honest segment that is missed, but not its ACK.
        let forged = bare(ACK | PSH, next.wrapping_add(300 << 20), 1, 9_001);
        assert!(connection.talk.low(connection.ms, forged).is_refused);
        connection.talk.high(connection.ms + 10, bare(ACK, 9_001, 0, next.wrapping_add(100)));
        assert_eq!(connection.talk.flow.hot.direction(Endpoint::Low).sequence_end, next.wrapping_add(100));
        connection.next = next.wrapping_add(100);
        let outcomes = [connection.exchange(), connection.exchange()];
        assert_eq!(rtts(&outcomes[1]), [(by_data(has_timestamps), 20)]);
        assert_eq!(connection.talk.flow.events.map(|events| events.retransmissions), [0, 0]);
    }
}

#[test]
fn a_number_that_only_fits_a_large_window_does_not_confirm() {
    for scales in [[0, 0], [9, 9]] {
        let mut connection = Connection::with_scales(false, scales);
        let far = 1_101 + (200 << 20);
        for (number, is_refused) in
            [(9_001 + 65_537, true), (9_001_u32.wrapping_sub(65_537), true), (9_001, false)]
        {
            assert!(connection.talk.low(200, bare(ACK | PSH, far, 100, 9_001)).is_refused);
            let ack = bare(ACK, number, 0, far + 100);
            assert_eq!(connection.talk.high(210, ack).is_refused, is_refused, "{scales:?} {number}");
        }
    }
}

#[test]
fn refused_segments_leave_no_trace_but_where_they_ended() {
    let mut connection = Connection::with_scales(true, [8, 8]);
    let mut before = connection.talk.flow;
    assert!(connection.talk.low(50, bare(FIN | ACK, 0x9000_0000, 7, 9_001)).is_refused);
    before.events[Endpoint::Low as usize].outside_end = 0x9000_0008;
    let unchanged = Conversation { flow: before, rules: connection.talk.rules };
    assert_eq!(snapshot(&connection.talk), snapshot(&unchanged));
    assert_eq!(connection.talk.flow.hot.traffic, before.hot.traffic);
}

#[test]
fn a_direction_whose_other_end_is_not_seen_takes_any_number() {
    let mut talk = Conversation::by(Methods::ALL);
    for number in [1_000, 0x4000_0000, 0x9000_0000, 50] {
        assert!(!talk.low(10, bare(ACK | PSH, number, 100, 9_001)).is_refused, "{number}");
    }
}
