//! Which segments count as retransmitted, which packets as marked for congestion, and which as copies.

use crate::{
    flow::{Behind, Changes, Counted, Endpoint, Flow, Latest, Sent},
    parse::Transport,
    rtt::{Measured, PossibleChange, Progress, Rules},
    series::SeriesKey,
    testing::{ACK, FIN, PSH, SYN, bare, pure_ack, request, segment},
};

const DIRECTION: u8 = 1;

/// A flow and a clock, for packets of the low endpoint.
struct Sender {
    flow: Flow,
    now: u64,
}

impl Sender {
    fn new() -> Self {
        Self { flow: Flow::EMPTY, now: 1 }
    }

    /// Sends a packet. Returns true if it counts as retransmitted.
    fn is_retransmitted(&mut self, transport: Transport) -> bool {
        let counted = note(&mut self.flow, transport, 0);
        self.now += 1_000_000;
        self.flow.step(Endpoint::Low, &transport, counted.progress, self.now, &Rules::UNLIMITED);
        counted.behind == Some(Behind::Retransmitted)
    }
}

fn note(flow: &mut Flow, transport: Transport, traffic_class: u8) -> Counted {
    flow.count(Endpoint::Low, &transport, traffic_class, DIRECTION)
}

/// A segment at a sequence number.
fn at(sequence: u32, flags: u8, payload: u32, tsval: u32) -> Transport {
    let mut transport = segment(flags, payload, tsval, 0);
    transport.segment.sequence = sequence;
    transport
}

/// A segment of 100 bytes at a sequence number.
fn data(sequence: u32, tsval: u32) -> Transport {
    at(sequence, ACK | PSH, 100, tsval)
}

#[test]
fn what_was_sent_before_is_sent_again() {
    let mut sender = Sender::new();
    assert!(!sender.is_retransmitted(data(1_000, 1)));
    assert!(!sender.is_retransmitted(data(1_100, 2)));
    assert!(sender.is_retransmitted(data(1_100, 3)), "the last segment");
    assert!(sender.is_retransmitted(data(1_000, 4)), "one before");
    assert!(!sender.is_retransmitted(at(1_100, ACK, 150, 5)), "half of it is new");
    assert!(!sender.is_retransmitted(data(1_250, 6)));
}

#[test]
fn within_one_tick_what_is_late_counts_as_sent_again() {
    let mut sender = Sender::new();
    sender.is_retransmitted(data(1_000, 5));
    sender.is_retransmitted(data(1_200, 5));
    assert!(sender.is_retransmitted(data(1_100, 5)));
}

#[test]
fn what_the_network_has_overtaken_was_sent_once() {
    let mut sender = Sender::new();
    sender.is_retransmitted(data(1_000, 5));
    sender.is_retransmitted(data(1_200, 7));
    assert!(!sender.is_retransmitted(data(1_100, 6)), "older by its timestamp");
    assert!(sender.is_retransmitted(data(1_100, 8)));
    let mut without = Sender::new();
    for (sequence, again) in [(1_000, false), (1_200, false), (1_100, true)] {
        let mut transport = data(sequence, 0);
        transport.segment.has_timestamps = false;
        assert_eq!(without.is_retransmitted(transport), again, "no timestamp tells");
    }
}

#[test]
fn acknowledgements_alone_are_never_sent_again() {
    let mut sender = Sender::new();
    sender.is_retransmitted(data(1_000, 1));
    for tsval in 2..5 {
        let mut transport = pure_ack(tsval, 0);
        transport.segment.sequence = 1_100;
        assert!(!sender.is_retransmitted(transport));
    }
}

#[test]
fn a_keep_alive_asks_for_nothing_new() {
    let mut sender = Sender::new();
    sender.is_retransmitted(data(1_000, 1));
    for tsval in 2..5 {
        assert!(!sender.is_retransmitted(at(1_099, ACK, 1, tsval)), "with the byte before the next");
        assert!(!sender.is_retransmitted(at(1_099, ACK, 0, tsval)), "without");
    }
    assert!(sender.is_retransmitted(at(1_098, ACK, 1, 5)), "a byte further back");
    assert!(sender.is_retransmitted(at(1_098, ACK, 2, 6)), "two bytes");
}

#[test]
fn syn_and_fin_are_sent_again_as_data_is() {
    let mut sender = Sender::new();
    assert!(!sender.is_retransmitted(at(999, SYN, 0, 1)));
    assert!(sender.is_retransmitted(at(999, SYN, 0, 1_001)));
    assert!(!sender.is_retransmitted(data(1_000, 1_002)));
    assert!(!sender.is_retransmitted(at(1_100, FIN | ACK, 0, 1_003)));
    assert!(sender.is_retransmitted(at(1_100, FIN | ACK, 0, 1_203)));
    assert!(sender.is_retransmitted(at(1_099, FIN | ACK, 1, 1_403)), "with the last byte");
}

#[test]
fn a_syn_with_another_number_begins_another_connection() {
    let mut sender = Sender::new();
    sender.is_retransmitted(at(5_000, SYN, 0, 1));
    sender.is_retransmitted(data(5_001, 2));
    assert!(!sender.is_retransmitted(at(700, SYN, 0, 3)), "its number is lower");
    assert!(!sender.is_retransmitted(data(701, 4)));
    assert!(sender.is_retransmitted(data(701, 5)));
}

#[test]
fn sequence_numbers_wrap_around() {
    let mut sender = Sender::new();
    assert!(!sender.is_retransmitted(data(u32::MAX - 149, 1)));
    assert!(!sender.is_retransmitted(data(u32::MAX - 49, 2)), "ends at 50");
    assert!(!sender.is_retransmitted(data(50, 3)));
    assert!(sender.is_retransmitted(data(u32::MAX - 49, 4)));
    assert!(sender.is_retransmitted(data(u32::MAX - 149, 5)));
    assert!(!sender.is_retransmitted(data(150, 6)));
}

#[test]
fn the_first_segment_of_all_may_have_any_number() {
    for sequence in [0, 1, 1 << 31, u32::MAX] {
        assert!(!Sender::new().is_retransmitted(data(sequence, 1)), "{sequence}");
    }
}

#[test]
fn ce_is_the_mark_of_congestion_alone() {
    let mut flow = Flow::EMPTY;
    for (ecn, is_ce) in [(0, false), (1, false), (2, false), (3, true)] {
        let traffic_class = 46 << 2 | ecn;
        for transport in [data(1, 1), request(1)] {
            let before = flow.events[0].ce_packets;
            note(&mut flow, transport, traffic_class);
            assert_eq!(flow.events[0].ce_packets - before, u32::from(is_ce), "{ecn}");
        }
    }
    let latest = flow.hot.latest(Endpoint::Low);
    assert_eq!((latest.dscp(), latest.direction()), (46, DIRECTION));
}

#[test]
fn the_direction_of_a_capture_may_be_unknown() {
    let mut flow = Flow::EMPTY;
    flow.count(Endpoint::Low, &data(1, 1), 0, 1);
    assert!(flow.has_direction[0]);
    let counted = flow.count(Endpoint::Low, &data(101, 2), 0, SeriesKey::NO_DIRECTION);
    assert!(is_new(counted), "it is no copy");
    assert!(!flow.has_direction[0]);
    // The next that says so binds it again.
    for direction in [0, 1, 0] {
        assert!(
            is_new(flow.count(Endpoint::Low, &data(201, 3), 0, direction)) == (direction == 0),
            "{direction}"
        );
    }
}

#[test]
fn direction_and_class_are_in_one_byte() {
    for direction in [0, 1] {
        for traffic_class in [0, 46 << 2, u8::MAX] {
            let latest = Latest::new(direction, traffic_class);
            assert_eq!((latest.direction(), latest.dscp()), (direction, traffic_class >> 2));
        }
    }
}

#[test]
fn echoes_are_not_sent_again() {
    let mut flow = Flow::EMPTY;
    note(&mut flow, data(1, 1), 0);
    for _ in 0..3 {
        assert_eq!(note(&mut flow, request(7), 0).behind, None);
    }
}

fn is_new(counted: Counted) -> bool {
    matches!(counted.progress, Progress::First | Progress::Advance)
}

/// The packets, bytes, retransmissions and marks of an endpoint.
fn counts_of(flow: &Flow, endpoint: Endpoint) -> (Sent, u32, u32) {
    let events = flow.events[endpoint as usize];
    (flow.sent(endpoint), events.retransmissions, events.ce_packets)
}

/// Passes a packet through both hooks of an interface, and asserts that the second passage changes nothing.
fn pass_both(flow: &mut Flow, from: Endpoint, transport: Transport, first: u8) -> Counted {
    let counted = flow.count(from, &transport, 3, first);
    assert_ne!(counted.progress, Progress::Elsewhere);
    flow.step(from, &transport, counted.progress, 1, &Rules::UNLIMITED);
    let before = counts_of(flow, from);
    let copy = flow.count(from, &transport, 3, 1 - first);
    assert_eq!((copy.progress, copy.behind), (Progress::Elsewhere, None));
    assert_eq!(counts_of(flow, from), before);
    // That there are copies is kept once.
    let expected =
        if flow.hot.state(from).is_forwarded() { PossibleChange::Nothing } else { PossibleChange::Anything };
    assert_eq!(flow.possible_change(from, &transport, copy, &Rules::UNLIMITED), expected);
    let outcome = flow.step(from, &transport, copy.progress, 2, &Rules::UNLIMITED);
    assert!(outcome.changes == Changes::NONE && outcome.measured == Measured::NOTHING);
    assert!(flow.hot.state(from).is_forwarded());
    counted
}

#[test]
fn packets_at_the_other_hook_are_copies() {
    for first in [0, 1] {
        let mut flow = Flow::EMPTY;
        for (from, sequence) in [(Endpoint::Low, 1_000), (Endpoint::High, 5_000)] {
            assert_eq!(pass_both(&mut flow, from, data(sequence, 1), first).behind, None);
            assert_eq!(pass_both(&mut flow, from, data(sequence + 100, 2), first).behind, None);
            // Sent again, and forwarded again.
            let again = pass_both(&mut flow, from, data(sequence + 100, 3), first);
            assert_eq!(again.behind, Some(Behind::Retransmitted));
            pass_both(&mut flow, from, request(1), first);
            assert_eq!(counts_of(&flow, from), (Sent { packets: 4, bytes: 356 }, 1, 4));
            assert_eq!(flow.hot.latest(from).direction(), first);
        }
    }
}

#[test]
fn copies_may_lag_many_packets_behind_at_the_other_hook() {
    let mut flow = Flow::EMPTY;
    for batch in 0..5 {
        let sequences = (0..10).map(|number| 1_000 * batch + 100 * number);
        for sequence in sequences.clone() {
            assert!(is_new(flow.count(Endpoint::Low, &data(sequence, 1), 0, 0)));
        }
        for sequence in sequences {
            assert_eq!(flow.count(Endpoint::Low, &data(sequence, 1), 0, 1).progress, Progress::Elsewhere);
        }
    }
    assert_eq!(flow.sent(Endpoint::Low), Sent { packets: 50, bytes: 5_000 });
}

#[test]
fn endpoint_moves_after_a_second_at_the_other_hook() {
    let mut flow = Flow::EMPTY;
    let sweep = |flow: &mut Flow, has_counted| flow.hot.sweep_hooks(true, [has_counted, false]);
    flow.count(Endpoint::Low, &data(1_000, 1), 0, 0);
    // It was here as well in this second.
    flow.count(Endpoint::Low, &data(1_100, 2), 0, 1);
    sweep(&mut flow, true);
    assert_eq!(flow.hot.latest(Endpoint::Low).direction(), 0);
    // It was nowhere.
    sweep(&mut flow, false);
    assert_eq!((flow.hot.latest(Endpoint::Low).direction(), flow.hot.contended), (0, 0));
    flow.count(Endpoint::Low, &data(1_200, 3), 0, 1);
    sweep(&mut flow, false);
    assert_eq!(flow.hot.latest(Endpoint::Low).direction(), 1);
    assert_eq!(flow.hot.contended, 1, "what is pending may have been echoed unseen");
    assert!(is_new(flow.count(Endpoint::Low, &data(1_300, 4), 0, 1)));
    assert_eq!(flow.count(Endpoint::Low, &data(1_300, 4), 0, 0).progress, Progress::Elsewhere);
}

#[test]
fn endpoints_at_different_hooks_move_only_together() {
    let start = || {
        let mut flow = Flow::EMPTY;
        flow.count(Endpoint::Low, &data(1_000, 1), 0, 0);
        flow.count(Endpoint::High, &data(5_000, 1), 0, 1);
        flow
    };
    let directions =
        |flow: &Flow| [Endpoint::Low, Endpoint::High].map(|end| flow.hot.latest(end).direction());
    let mut flow = start();
    flow.hot.sweep_hooks(true, [true; 2]);
    for second in 0..10 {
        // Somebody beside the high endpoint sends in the name of the low one, which is idle.
        flow.count(Endpoint::Low, &data(1_100, 2), 0, 1);
        flow.hot.sweep_hooks(true, [false; 2]);
        assert_eq!((directions(&flow), flow.hot.contended), ([0, 1], 0), "{second}");
    }
    assert!(is_new(flow.count(Endpoint::Low, &data(1_100, 3), 0, 0)));
    flow.hot.sweep_hooks(true, [true, false]);
    // A route changes. The endpoints need not send in the same second.
    for (from, hook) in [(Endpoint::Low, 1), (Endpoint::High, 0)] {
        assert_eq!(directions(&flow), [0, 1]);
        assert_eq!(flow.count(from, &data(1_200, 4), 0, hook).progress, Progress::Elsewhere);
        flow.hot.sweep_hooks(true, [false; 2]);
    }
    assert_eq!((directions(&flow), flow.hot.contended), ([1, 0], 1));
}

/// Somebody was both ends, from his side, before the connection that he expected began.
#[test]
fn numbers_of_the_hook_that_was_left_do_not_decide_what_fits() {
    let mut flow = Flow::EMPTY;
    for (from, sequence, acknowledged) in
        [(Endpoint::Low, 7 << 28, 5 << 28), (Endpoint::High, 5 << 28, 7 << 28)]
    {
        let forged = bare(ACK | PSH, sequence, 1, acknowledged);
        let progress = flow.count(from, &forged, 0, 0).progress;
        flow.step(from, &forged, progress, 1, &Rules::UNLIMITED);
    }
    let honest = bare(ACK | PSH, 1_001, 100, 5_001);
    assert_eq!(flow.count(Endpoint::High, &honest, 0, 0).progress, Progress::Refused);
    assert_eq!(flow.count(Endpoint::Low, &honest, 0, 1).progress, Progress::Elsewhere);
    flow.hot.sweep_hooks(true, [true; 2]);
    assert_eq!(flow.count(Endpoint::Low, &honest, 0, 1).progress, Progress::Elsewhere);
    flow.hot.sweep_hooks(true, [false, true]);
    // What follows of him confirms nothing any more.
    let forged = bare(ACK | PSH, 5 << 28 | 1, 1, 7 << 28 | 1);
    let progress = flow.count(Endpoint::High, &forged, 0, 0).progress;
    flow.step(Endpoint::High, &forged, progress, 2, &Rules::UNLIMITED);
    assert_eq!(flow.count(Endpoint::Low, &honest, 0, 1).progress, Progress::First);
    let answer = bare(ACK | PSH, 5_001, 100, 1_101);
    assert_eq!(flow.count(Endpoint::High, &answer, 0, 0).progress, Progress::Replaces);
}

#[test]
fn endpoints_at_one_hook_move_apart() {
    let mut flow = Flow::EMPTY;
    for from in [Endpoint::Low, Endpoint::High] {
        flow.count(from, &data(1_000, 1), 0, 1);
    }
    flow.count(Endpoint::Low, &data(1_100, 1), 0, 0);
    flow.hot.sweep_hooks(true, [false, true]);
    assert_eq!([Endpoint::Low, Endpoint::High].map(|end| flow.hot.latest(end).direction()), [0, 1]);
}

#[test]
fn endpoints_at_different_hooks_count_each_at_its_own() {
    let mut flow = Flow::EMPTY;
    for (number, from) in [(0, Endpoint::Low), (1, Endpoint::High), (2, Endpoint::Low), (3, Endpoint::High)] {
        let counted = flow.count(from, &data(100 * number, number), 0, from as u8);
        assert!(is_new(counted));
    }
    assert_eq!(flow.hot.matching_direction(Endpoint::Low, true), 1);
    assert_eq!(flow.hot.matching_direction(Endpoint::High, true), 0);
}
