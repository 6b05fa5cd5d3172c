//! Idle flows expire, and the others stay.

use pping_common::{
    abi::{FlowEventKind, TriggeredBy},
    flow::Reason,
    limits::{CLOSED_IDLE_SECONDS, IDLE_SECONDS, UNANSWERED_IDLE_SECONDS},
    parse::LinkType,
};

use super::{
    frames::{ACK, FIN, Ip, PSH, RST, SYN, TCP, Tcp, echo, v4, v6},
    random::Random,
    rig::{Program, Rig, flow_events, kernels},
    talk::{Connection, Temper, program},
};

fn segment(rig: &mut Rig, is_forward: bool, port: u16, flags: u8, stamps: (u32, u32)) {
    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        let ports = if is_forward { (port, 443) } else { (443, port) };
        let (a, b) = if is_forward { (a, b) } else { (b, a) };
        let segment = Tcp { ports, flags, ..Tcp::stamped(stamps.0, stamps.1) };
        rig.send(Program::Egress, &Ip::between(a, b).frame(TCP, &segment.bytes()));
    }
}

fn open(rig: &mut Rig, port: u16) {
    segment(rig, true, port, ACK | PSH, (1, 0));
    segment(rig, false, port, ACK | PSH, (1, 1));
    segment(rig, true, port, ACK, (1, 1));
}

/// Sweeps until a flow of each family has expired. Returns the number of sweeps and of events.
fn sweeps_until_deleted(rig: &mut Rig) -> (u32, usize) {
    let deleted = rig.twin.counters.entries_deleted[0] + 1;
    for sweeps in 1..1000 {
        rig.sweep();
        let reported = flow_events(&rig.agree_in_any_order("a sweep"));
        if rig.twin.counters.entries_deleted == [deleted; 2] {
            for event in &reported {
                assert_eq!(event.event, FlowEventKind::Closing as u8);
                assert_eq!(event.reason, Reason::Timeout as u8);
                assert_eq!(event.triggered_by, TriggeredBy::GarbageCollection as u8);
            }
            return (sweeps, reported.len());
        }
        assert!(reported.is_empty(), "{reported:?}");
    }
    panic!("never swept");
}

#[test]
fn flows_that_are_idle_are_swept_as_their_state_allows() {
    for settings in kernels() {
        assert_swept_as_their_state_allows(Rig::with(settings, LinkType::Ethernet));
    }
}

#[test]
fn flows_of_one_direction_are_counted_when_they_end() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        // Nobody answers the first. Of the second only the client's segments pass, of the third only the server's.
        segment(&mut rig, true, 1, SYN, (1, 0));
        segment(&mut rig, true, 2, SYN, (1, 0));
        segment(&mut rig, true, 2, ACK, (2, 1));
        segment(&mut rig, false, 3, ACK | PSH, (1, 1));
        // The fourth is refused, and the fifth is an ordinary connection.
        segment(&mut rig, true, 4, SYN, (1, 0));
        segment(&mut rig, false, 4, RST | ACK, (0, 0));
        open(&mut rig, 5);
        rig.agree_in_any_order("some flows");
        for _ in 0..=IDLE_SECONDS {
            rig.sweep();
        }
        rig.agree_in_any_order("their end");
        assert_eq!((rig.twin.counters.entries_deleted, rig.twin.counters.one_way_flows), ([5; 2], 4));
    }
}

#[test]
fn flows_whose_timestamps_stand_still_are_counted_when_they_end() {
    for settings in kernels() {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        // The clock of the first client stands still, and that of the second moves with its last segment. The third client
        // sends too little to tell, and the fourth is one of which nothing is answered.
        for (port, last, segments) in [(1, 7, 4), (2, 8, 4), (3, 7, 1)] {
            segment(&mut rig, true, port, SYN, (7, 0));
            segment(&mut rig, false, port, SYN | ACK, (9, 7));
            for number in 1..=segments {
                let tsval = if number == segments { last } else { 7 };
                segment(&mut rig, true, port, ACK | PSH, (tsval, 9));
            }
            segment(&mut rig, false, port, ACK | PSH, (10, 7));
        }
        for flags in [SYN, ACK, ACK, ACK, ACK] {
            segment(&mut rig, true, 4, flags, (7, 0));
        }
        rig.agree_in_any_order("some flows");
        for _ in 0..=IDLE_SECONDS {
            rig.sweep();
        }
        rig.agree_in_any_order("their end");
        assert_eq!((rig.twin.counters.entries_deleted, rig.twin.counters.still_timestamps), ([4; 2], 2));
    }
}

fn assert_swept_as_their_state_allows(mut rig: Rig) {
    segment(&mut rig, true, 1, SYN, (1, 0));
    rig.agree("unanswered");
    assert_eq!(sweeps_until_deleted(&mut rig), (UNANSWERED_IDLE_SECONDS + 1, 0));

    open(&mut rig, 2);
    rig.agree("an open connection");
    assert_eq!(sweeps_until_deleted(&mut rig), (IDLE_SECONDS + 1, 4), "both directions of both flows");

    open(&mut rig, 3);
    segment(&mut rig, false, 3, RST | ACK, (2, 1));
    rig.agree("a reset connection");
    assert_eq!(sweeps_until_deleted(&mut rig), (CLOSED_IDLE_SECONDS + 1, 0));

    open(&mut rig, 4);
    segment(&mut rig, false, 4, FIN | ACK, (2, 1));
    rig.agree("a half-closed connection");
    assert_eq!(sweeps_until_deleted(&mut rig), (IDLE_SECONDS + 1, 2), "one direction of both flows");

    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        rig.send(Program::Ingress, &echo(a, b, 5, 1, false));
        rig.send(Program::Egress, &echo(b, a, 5, 1, true));
    }
    rig.agree("a ping");
    assert_eq!(sweeps_until_deleted(&mut rig), (UNANSWERED_IDLE_SECONDS + 1, 2));

    assert_eq!(rig.twin.counters.entries_made, [5; 2]);
    assert_eq!(rig.twin.counters.closed[Reason::Timeout as usize], 6);
}

#[test]
fn flows_that_are_not_idle_stay() {
    for settings in kernels() {
        assert_stay(Rig::with(settings, LinkType::Ethernet));
    }
}

fn assert_stay(mut rig: Rig) {
    open(&mut rig, 1);
    open(&mut rig, 2);
    rig.agree("two connections");
    for sweep in 0..2 * IDLE_SECONDS {
        rig.sweep();
        rig.agree_in_any_order("a sweep");
        if sweep % (IDLE_SECONDS - 1) == 0 {
            // A pure ACK neither matches nor records.
            segment(&mut rig, true, 2, ACK, (1, 1));
        }
    }
    rig.agree("signs of life");
    assert_eq!(rig.twin.counters.entries_deleted, [1; 2]);
    segment(&mut rig, true, 2, ACK | PSH, (7, 1));
    segment(&mut rig, false, 2, ACK, (7, 7));
    assert_eq!(rig.agree("a sample in the end").len(), 2);
}

#[test]
fn concurrent_sweep_deletes_as_in_user_space() {
    for settings in kernels() {
        assert_deletes_what_user_space_does(Rig::with(settings, LinkType::Ethernet));
    }
}

fn assert_deletes_what_user_space_does(mut rig: Rig) {
    let mut random = Random::seeded(21);
    let mut connections: Vec<Connection> = (0..200)
        .map(|number| {
            let hosts = if number % 2 == 0 { [v4(1), v4(2)] } else { [v6(2), v6(1)] };
            Connection::new(hosts, 10_000 + number, Temper::Wild, &mut random)
        })
        .collect();
    for round in 0..1500 {
        for _ in 0..4 {
            let number = random.below(connections.len());
            let (from, frame) = connections[number].next(&mut random);
            rig.send(program(from, Program::Xdp), &frame);
            rig.agree(&format!("round {round}"));
        }
        rig.sweep();
        rig.agree_in_any_order(&format!("sweep {round}"));
    }
    assert!(rig.twin.counters.entries_deleted.iter().all(|&deleted| deleted > 100));
    for round in 0..=IDLE_SECONDS {
        rig.sweep();
        rig.agree_in_any_order(&format!("sweep {round} after the last packet"));
    }
    assert_eq!(rig.twin.counters.entries_deleted, rig.twin.counters.entries_made);
    assert!(rig.twin.counters.closed[Reason::Timeout as usize] > 10);
}
