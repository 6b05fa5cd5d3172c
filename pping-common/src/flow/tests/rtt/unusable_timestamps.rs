//! Flows whose timestamps stop, stand still or are zero: they are measured by sequence numbers from then on.

use std::vec::Vec;

use crate::{
    flow::Endpoint,
    method::{Method, Methods},
    parse::{Timestamps, Transport},
    rtt::TimestampOption,
    testing::{ACK, Conversation, PSH, RST, SYN, bare},
};

const AUTO: Methods = Methods::NONE.with(Method::TcpTs).with(Method::TcpSeq);

/// A clock of an end: its timestamp at a time in ms, or none.
type Clock = fn(u64) -> Option<u32>;

const TICKING: Clock = |ms| Some(70_000 + ms as u32);
const ZERO: Clock = |_| Some(0);
const CONSTANT: Clock = |_| Some(4_711);
const NONE: Clock = |_| None;
const STOPS: Clock = |ms| (ms < 3_000).then_some(70_000 + ms as u32);
const PAUSES: Clock = |ms| (!(3_000..4_000).contains(&ms)).then_some(70_000 + ms as u32);
const ZERO_LATER: Clock = |ms| Some(if ms < 3_000 { 70_000 + ms as u32 } else { 0 });
const HIGH_THEN_ZERO: Clock = |ms| Some(if ms < 3_000 { 3_000_000_000 + ms as u32 } else { 0 });
/// Two ticks a second, from 0 on.
const SLOW: Clock = |ms| Some(7 + (ms / 500) as u32);

/// Two ends that send to each other in turn, every 200 ms. The answer comes after 20 ms, and its ACK after 1 ms.
struct Turns {
    talk: Conversation,
    clocks: [Clock; 2],
    numbers: [u32; 2],
    heard: [u32; 2],
    found: Vec<(Endpoint, Method, u64)>,
}

impl Turns {
    fn new(methods: Methods, clocks: [Clock; 2]) -> Self {
        let mut turns = Self {
            talk: Conversation::by(methods),
            clocks,
            numbers: [1_000, 5_000],
            heard: [0; 2],
            found: Vec::new(),
        };
        turns.send(Endpoint::Low, 0, SYN, 0);
        turns.send(Endpoint::High, 20, SYN | ACK, 0);
        turns.send(Endpoint::Low, 21, ACK, 0);
        turns
    }

    fn send(&mut self, from: Endpoint, ms: u64, flags: u8, payload: u32) {
        let (own, other) = (from as usize, from.other() as usize);
        let mut transport = bare(flags, self.numbers[own], payload, self.numbers[other]);
        if let Some(tsval) = self.clocks[own](ms) {
            transport.segment.has_timestamps = true;
            transport.segment.timestamps = Timestamps { tsval, tsecr: self.heard[own] };
            self.heard[other] = tsval;
        }
        self.numbers[own] = transport.segment.sequence_end();
        self.apply(from, ms, &transport);
    }

    fn apply(&mut self, from: Endpoint, ms: u64, transport: &Transport) {
        // Nothing has the time 0.
        let outcome = self.talk.packet(from, ms * crate::testing::MS + 1, transport);
        for (method, _, rtt) in crate::testing::samples(outcome) {
            self.found.push((from.other(), method, rtt));
        }
    }

    /// Runs until a time in ms, from 1 s on.
    fn run(&mut self, until: u64) -> &mut Self {
        for ms in (1_000..until).step_by(200) {
            self.send(Endpoint::Low, ms, ACK | PSH, 100);
            self.send(Endpoint::High, ms + 20, ACK | PSH, 500);
            self.send(Endpoint::Low, ms + 21, ACK, 0);
        }
        self
    }

    /// The number of samples of each end by each method, all of which must be right.
    fn counts(&self) -> [[usize; 2]; 2] {
        for &(timed, method, rtt) in &self.found {
            assert_eq!(rtt, if timed == Endpoint::Low { 20 } else { 1 }, "{method:?}");
        }
        [Endpoint::Low, Endpoint::High].map(|end| {
            [Method::TcpTs, Method::TcpSeq].map(|method| {
                self.found.iter().filter(|&&(timed, by, _)| (timed, by) == (end, method)).count()
            })
        })
    }
}

fn counts(methods: Methods, clocks: [Clock; 2]) -> [[usize; 2]; 2] {
    Turns::new(methods, clocks).run(7_000).counts()
}

/// The number of turns.
const TURNS: usize = 30;

#[test]
fn a_flow_with_timestamps_is_measured_by_them() {
    // The SYN and SYN-ACK are timed by them as well.
    assert_eq!(counts(AUTO, [TICKING, TICKING]), [[TURNS + 1, 0]; 2]);
}

#[test]
fn timestamps_in_the_handshake_only() {
    const HANDSHAKE: Clock = |ms| (ms < 500).then_some(100 + ms as u32);
    let [low, high] = counts(AUTO, [HANDSHAKE, HANDSHAKE]);
    assert_eq!((low, high), ([1, TURNS - 1], [1, TURNS - 1]));
}

#[test]
fn timestamps_that_stop() {
    // Of the turns from 3 s on, the first is lost.
    for clocks in [[STOPS, STOPS], [PAUSES, PAUSES], [STOPS, PAUSES]] {
        assert_eq!(counts(AUTO, clocks), [[1 + 10, 19]; 2]);
    }
}

#[test]
fn timestamps_that_stop_at_one_end() {
    for clocks in [[TICKING, STOPS], [STOPS, TICKING]] {
        let [low, high] = counts(AUTO, clocks);
        assert_eq!((low[0], high[0]), (11, 11), "{low:?}, {high:?}");
        assert!(low[1] >= 17 && high[1] >= 17, "{low:?}, {high:?}");
    }
}

#[test]
fn timestamps_of_one_end_only() {
    // In the middle of a connection: the handshake would have agreed on none.
    for clocks in [[TICKING, NONE], [NONE, TICKING]] {
        let mut turns = Turns::new(AUTO, clocks);
        turns.talk = Conversation::by(AUTO);
        turns.found.clear();
        let [low, high] = turns.run(7_000).counts();
        assert_eq!((low[0], high[0]), (0, 0), "{low:?}, {high:?}");
        assert!(low[1] >= 26 && high[1] >= 26, "{low:?}, {high:?}");
    }
}

#[test]
fn timestamps_that_are_zero_or_constant() {
    for clock in [ZERO, CONSTANT] {
        for clocks in [[clock, clock], [TICKING, clock], [clock, TICKING]] {
            let [low, high] = counts(AUTO, clocks);
            // If both are zero, by sequence numbers alone. Otherwise from the third second on.
            let least = if clocks == [ZERO, ZERO] { TURNS } else { 24 };
            assert!(low[1] >= least && high[1] >= least, "{low:?}, {high:?}");
        }
    }
}

#[test]
fn timestamps_that_turn_zero() {
    for clock in [ZERO_LATER, HIGH_THEN_ZERO] {
        for clocks in [[clock, clock], [TICKING, clock], [clock, TICKING]] {
            let [low, high] = counts(AUTO, clocks);
            assert!(low[0] >= 11 && high[0] >= 11, "{low:?}, {high:?}");
            assert!(low[1] >= 17 && high[1] >= 17, "{low:?}, {high:?}");
        }
    }
}

#[test]
fn a_slow_clock_is_no_still_one() {
    let mut turns = Turns::new(AUTO, [SLOW, SLOW]);
    turns.run(7_000);
    assert_eq!(turns.talk.flow.hot.protocol_state.timestamps(), TimestampOption::PRESENT);
    // Many segments within the first tick.
    let mut turns = Turns::new(AUTO, [SLOW, SLOW]);
    for ms in 30..499 {
        turns.send(Endpoint::Low, ms, ACK | PSH, 100);
    }
    turns.send(Endpoint::Low, 2_500, ACK | PSH, 100);
    assert_eq!(turns.talk.flow.hot.protocol_state.timestamps(), TimestampOption::PRESENT);
}

#[test]
fn keep_alives_without_timestamps_say_nothing() {
    let mut turns = Turns::new(AUTO, [TICKING, TICKING]);
    turns.run(2_000);
    for second in 2..20 {
        for payload in [0, 1] {
            let keep_alive = bare(ACK, turns.numbers[0] - 1, payload, turns.numbers[1]);
            turns.apply(Endpoint::Low, second * 1_000, &keep_alive);
        }
    }
    assert_eq!(turns.talk.flow.hot.protocol_state.timestamps(), TimestampOption::PRESENT);
}

#[test]
fn single_segments_without_timestamps_say_nothing() {
    const GAPS: Clock = |ms| (ms % 600 < 400).then_some(70_000 + ms as u32);
    let [low, high] = counts(AUTO, [GAPS, GAPS]);
    assert_eq!((low[1], high[1]), (0, 0));
    assert!(low[0] >= 19 && high[0] >= 19, "{low:?}, {high:?}");
}

#[test]
fn a_new_connection_has_another_chance() {
    let mut turns = Turns::new(AUTO, [ZERO, ZERO]);
    turns.run(7_000);
    assert_eq!(turns.talk.flow.hot.protocol_state.timestamps(), TimestampOption::UNUSABLE);
    turns.send(Endpoint::Low, 7_900, RST, 0);
    let mut next =
        Turns { clocks: [TICKING, TICKING], numbers: [900_000, 70_000], found: Vec::new(), ..turns };
    next.send(Endpoint::Low, 8_000, SYN, 0);
    next.send(Endpoint::High, 8_020, SYN | ACK, 0);
    next.send(Endpoint::Low, 8_021, ACK, 0);
    next.send(Endpoint::Low, 8_100, ACK | PSH, 10);
    next.send(Endpoint::High, 8_120, ACK, 0);
    assert_eq!(next.counts(), [[2, 0], [1, 0]]);
}

#[test]
fn without_tcp_seq_only_the_other_end_is_measured() {
    let mut turns = Turns::new(Methods::NONE.with(Method::TcpTs), [TICKING, ZERO]);
    let [low, high] = turns.run(7_000).counts();
    assert_eq!((low, high), ([TURNS + 1, 0], [1, 0]));
    let state = turns.talk.flow.hot.protocol_state;
    assert_eq!([Endpoint::Low, Endpoint::High].map(|end| state.has_unusable(end)), [false, true]);
}

#[test]
fn both_methods_go_on_side_by_side() {
    let both = Methods::NONE.with_seq_always().with(Method::TcpTs);
    assert_eq!(counts(both, [TICKING, ZERO]), [[TURNS + 1, TURNS + 1], [1, TURNS + 1]]);
}

#[test]
fn a_tsval_that_no_later_one_exceeds_is_not_taken() {
    // A stray segment with a far newer timestamp.
    let mut turns = Turns::new(AUTO, [TICKING, TICKING]);
    let mut stray = bare(ACK, turns.numbers[0], 0, 5_001);
    stray.segment.has_timestamps = true;
    stray.segment.timestamps = Timestamps { tsval: 70_000 + (1 << 30), tsecr: 0 };
    turns.apply(Endpoint::Low, 500, &stray);
    let [low, high] = turns.run(7_000).counts();
    assert_eq!([low, high], [[TURNS + 1, 0], [TURNS + 1, 0]]);
}
