//! RSTs and SYNs that anybody can send, and those of the endpoints. The low end begins with sequence number 1,000 and `TSval`
//! 7,000, the high end with 9,000 and 500.

use std::vec::Vec;

use crate::{
    flow::{Changes, Endpoint, Lifecycle, Outcome, Reason},
    limits::RST_WITHIN,
    method::{Method, Methods},
    parse::{Timestamps, Transport},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, bare, samples, snapshot},
};

/// With and without timestamps.
pub(super) const BOTH: [bool; 2] = [true, false];

/// A connection whose ends have sent data once.
pub(super) struct Connection {
    pub(super) talk: Conversation,
    has_timestamps: bool,
    /// The window scales that the ends offer.
    scales: [u8; 2],
    /// When the last segment passed, in ms.
    pub(super) ms: u64,
    /// The next number of the low end.
    pub(super) next: u32,
    /// The `TSval` of the high end's latest segment.
    heard: u32,
}

impl Connection {
    fn new(has_timestamps: bool) -> Self {
        Self::with_scales(has_timestamps, [0; 2])
    }

    pub(super) fn with_scales(has_timestamps: bool, scales: [u8; 2]) -> Self {
        let talk = Conversation::by(Methods::ALL);
        let mut connection = Self { talk, has_timestamps, scales, ms: 10, next: 1_001, heard: 0 };
        connection.shake();
        connection.exchange();
        connection
    }

    fn send(&mut self, from: Endpoint, mut transport: Transport) -> Outcome {
        if self.has_timestamps {
            let (low, high) = (7_000 + self.ms as u32, 500 + self.ms as u32);
            let (tsval, tsecr) = if from == Endpoint::Low { (low, self.heard) } else { (high, low) };
            transport.segment.has_timestamps = true;
            transport.segment.timestamps = Timestamps { tsval, tsecr };
        }
        self.talk.packet(from, self.ms * MS, &transport)
    }

    fn shake(&mut self) -> [Outcome; 3] {
        let scaled = |scale: u8, mut transport: Transport| {
            transport.segment.window_scale = scale;
            transport
        };
        let [low, high] = self.scales;
        let syn = self.send(Endpoint::Low, scaled(low, bare(SYN, self.next.wrapping_sub(1), 0, 0)));
        let syn_ack = self.send(Endpoint::High, scaled(high, bare(SYN | ACK, 9_000, 0, self.next)));
        self.heard = 500 + self.ms as u32;
        let ack = self.send(Endpoint::Low, bare(ACK, self.next, 0, 9_001));
        [syn, syn_ack, ack]
    }

    /// Data of the low end, and the ACK 20 ms later. `between` comes 10 ms before that. Returns all outcomes.
    pub(super) fn exchange_around(&mut self, between: &[(Endpoint, Transport)]) -> Vec<Outcome> {
        self.ms += 30;
        let mut outcomes = Vec::from([self.send(Endpoint::Low, bare(ACK | PSH, self.next, 100, 9_001))]);
        // The ACK echoes the data, not what came between.
        let tsval = 7_000 + self.ms as u32;
        self.ms += 10;
        outcomes
            .extend(between.iter().map(|(from, transport)| self.talk.packet(*from, self.ms * MS, transport)));
        self.ms += 10;
        self.next = self.next.wrapping_add(100);
        let mut ack = bare(ACK, 9_001, 0, self.next);
        if self.has_timestamps {
            ack.segment.has_timestamps = true;
            ack.segment.timestamps = Timestamps { tsval: 500 + self.ms as u32, tsecr: tsval };
        }
        self.heard = 500 + self.ms as u32;
        outcomes.push(self.talk.packet(Endpoint::High, self.ms * MS, &ack));
        outcomes
    }

    pub(super) fn exchange(&mut self) -> Vec<Outcome> {
        self.exchange_around(&[])
    }

    pub(super) fn is_open(&self) -> bool {
        [Endpoint::Low, Endpoint::High]
            .iter()
            .all(|endpoint| self.talk.flow.hot.state(*endpoint).lifecycle() == Lifecycle::OPEN)
    }
}

pub(super) fn rtts(outcomes: &[Outcome]) -> Vec<(Method, u64)> {
    outcomes.iter().flat_map(|outcome| samples(*outcome)).map(|(method, _, rtt)| (method, rtt)).collect()
}

pub(super) fn has_changes(outcomes: &[Outcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.changes != Changes::NONE)
}

pub(super) fn by_data(has_timestamps: bool) -> Method {
    if has_timestamps { Method::TcpTs } else { Method::TcpSeq }
}

/// Adds timestamps to a segment.
pub(super) fn stamped(tsval: u32, mut transport: Transport) -> Transport {
    transport.segment.has_timestamps = true;
    transport.segment.timestamps = Timestamps { tsval, tsecr: 0 };
    transport
}

#[test]
fn forged_syns_leave_samples_as_they_were() {
    for has_timestamps in BOTH {
        let mut connection = Connection::new(has_timestamps);
        for round in 0..200_u32 {
            let number = round.wrapping_mul(0x9e37_79b9);
            let syn = bare(SYN, number, 0, 0);
            let forged = [
                (Endpoint::Low, syn),
                (Endpoint::High, stamped(number, syn)),
                (Endpoint::Low, stamped(!number, bare(SYN, !number, 0, 0))),
            ];
            let outcomes = connection.exchange_around(&forged);
            assert_eq!(rtts(&outcomes), [(by_data(has_timestamps), 20)], "round {round}");
            assert!(!has_changes(&outcomes), "round {round}");
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_refused).count(), 3, "round {round}");
        }
    }
}

#[test]
fn reused_ports_are_measured_from_the_syn_ack_on() {
    for has_timestamps in BOTH {
        for number in [77, 1_150, 0x7fff_0000, 0x9000_0000] {
            let mut connection = Connection::new(has_timestamps);
            connection.ms = 5_000;
            connection.next = number;
            let [syn, syn_ack, ack] = connection.shake();
            assert_eq!((syn.is_refused, syn.changes), (true, Changes::NONE));
            assert!(syn_ack.changes.opened && syn_ack.changes.opened_first);
            assert_eq!((syn_ack.changes.opened_by, syn_ack.changes.opened_at), (Reason::Syn, 5_000 * MS));
            assert_eq!(rtts(&[syn, syn_ack, ack]), [(Method::TcpHandshake, 0)], "that of the SYN-ACK");
            for _ in 0..3 {
                assert_eq!(rtts(&connection.exchange()), [(by_data(has_timestamps), 20)], "from {number} on");
            }
            assert!(connection.is_open());
        }
    }
}

#[test]
fn syn_ack_must_acknowledge_the_latest_syn() {
    let mut connection = Connection::new(true);
    let [first, second] = [77_000, 88_000].map(|number| (Endpoint::Low, bare(SYN, number, 0, 0)));
    let answer = |acknowledgement| (Endpoint::High, bare(SYN | ACK, 9_500, 0, acknowledgement));
    for forged in [&[answer(77_001)][..], &[first, answer(77_002)], &[first, second, answer(77_001)]] {
        let outcomes = connection.exchange_around(forged);
        assert!(!has_changes(&outcomes));
        assert_eq!(rtts(&outcomes), [(Method::TcpTs, 20)]);
    }
    // An ACK of data says that the other end has the earlier connection still.
    connection.exchange_around(&[first]);
    let outcomes = connection.exchange_around(&[answer(77_001)]);
    assert_eq!((has_changes(&outcomes), rtts(&outcomes)), (false, [(Method::TcpTs, 20)].to_vec()));
}

#[test]
fn a_rst_far_off_changes_nothing() {
    for has_timestamps in BOTH {
        let mut connection = Connection::new(has_timestamps);
        for distance in [RST_WITHIN + 101, 1 << 24, 1 << 31, 0_u32.wrapping_sub(RST_WITHIN + 1_000)] {
            let number = connection.next.wrapping_add(distance);
            let forged = [
                (Endpoint::Low, bare(RST, number, 0, 0)),
                (Endpoint::Low, bare(RST | ACK, number, 0, 9_001_u32.wrapping_add(distance))),
                (Endpoint::High, bare(RST, 9_001_u32.wrapping_add(distance), 0, 0)),
                (Endpoint::High, bare(RST | PSH, 9_001_u32.wrapping_add(distance), 1_000, 0)),
                // The acknowledgement is right, but easier to guess.
                (Endpoint::High, bare(RST | ACK, 9_001_u32.wrapping_add(distance), 0, connection.next)),
            ];
            let before = snapshot(&connection.talk);
            for (from, transport) in &forged {
                let outcome = connection.talk.packet(*from, connection.ms * MS, transport);
                assert!(outcome.is_refused && outcome.changes == Changes::NONE);
            }
            assert_eq!(snapshot(&connection.talk), before);
            let outcomes = connection.exchange_around(&forged);
            assert_eq!(rtts(&outcomes), [(by_data(has_timestamps), 20)]);
        }
        assert!(connection.is_open());
    }
}

#[test]
fn a_rst_of_an_endpoint_closes_the_flow() {
    let (low, high) = (Endpoint::Low, Endpoint::High);
    for (what, from, transport) in [
        ("at the expected number", low, bare(RST, 1_101, 0, 0)),
        ("at that of the other end", high, bare(RST, 9_001, 0, 0)),
        ("in reply to data that it does not want", low, bare(RST, 1_001, 0, 0)),
        ("after data that passed elsewhere", low, bare(RST | ACK, 1_101 + 60_000, 0, 9_001)),
    ] {
        let mut connection = Connection::new(true);
        let changes = connection.talk.packet(from, 200 * MS, &transport).changes;
        assert!(changes.closed_forward && changes.closed_reverse && changes.closed_last, "{what}");
        assert_eq!(changes.closed_by, Reason::Rst, "{what}");
        // A SYN begins another connection at once.
        connection.ms = 1_000;
        connection.next = 40_000;
        let legs = [(Method::TcpHandshake, 0); 2];
        assert_eq!(rtts(&connection.shake()), legs, "{what}");
    }
}

#[test]
fn a_refused_syn_closes_the_flow() {
    for number in [999, 0x9000_0000] {
        let mut talk = Conversation::by(Methods::ALL);
        talk.low(10, bare(SYN, number, 0, 0));
        let refusal = talk.high(30, bare(RST | ACK, 0, 0, number + 1));
        assert!(!refusal.is_refused);
        assert_eq!(talk.flow.hot.state(Endpoint::Low).lifecycle(), Lifecycle::CLOSED);
        // An attacker beside the path does not know the number of the SYN.
        let mut talk = Conversation::by(Methods::ALL);
        talk.low(10, bare(SYN, number, 0, 0));
        assert!(talk.high(20, bare(RST | ACK, 0, 0, number + 1 + (1 << 20))).is_refused);
        let answer = samples(talk.high(30, bare(SYN | ACK, 5_000, 0, number + 1)));
        assert_eq!(answer, [(Method::TcpHandshake, number + 1, 20)]);
    }
}

#[test]
fn fins_of_both_ends_let_a_syn_begin_anew() {
    let mut connection = Connection::new(true);
    connection.talk.low(200, bare(FIN | ACK, 1_101, 0, 9_001));
    connection.talk.high(210, bare(FIN | ACK, 9_001, 0, 1_102));
    connection.ms = 1_000;
    connection.next = 40_000;
    assert_eq!(rtts(&connection.shake()), [(Method::TcpHandshake, 0); 2]);
}

#[test]
fn a_syn_ack_is_taken_after_an_ack_that_a_syn_did_not_ask_for() {
    let mut talk = Conversation::by(Methods::ALL);
    talk.low(10, bare(SYN, 999, 0, 0));
    // The other end has an earlier connection, and asks (RFC 9293, 3.5.1).
    talk.high(20, bare(ACK, 7_000, 0, 555_000));
    talk.low(21, bare(RST, 555_000, 0, 0));
    talk.low(1_010, bare(SYN, 999, 0, 0));
    talk.high(1_030, bare(SYN | ACK, 4_999, 0, 1_000));
    assert_eq!(samples(talk.low(1_035, bare(ACK, 1_000, 0, 5_000))), [(Method::TcpHandshake, 5_000, 5)]);
}
