//! Tests of `quic-handshake` and `quic-spin`, by the numbers of their rules.

use std::{vec, vec::Vec};

use crate::{
    flow::{Endpoint, Outcome},
    method::{Method, Methods},
    parse::{Kind, Quic, QuicForm, Transport, Untracked},
    rtt::{PossibleChange, Rules, Spin},
    testing::{Conversation, MS},
};

const UNKNOWN: u32 = 0xf0f0_f1f2;
/// Source IDs.
const CLIENT: u32 = 11;
const SERVER: u32 = 13;
/// The destination ID that a client chooses for its first packet.
const ANY: u32 = 17;

fn quic(quic: Quic) -> Transport {
    let mut transport = Transport::EMPTY;
    transport.kind = Kind::Quic;
    transport.datagram.quic = quic;
    transport
}

fn long(form: QuicForm, version: u32, destination_id: u32, source_id: u32) -> Transport {
    // As if each Initial were in a datagram of 1200 bytes.
    let begins = if form == QuicForm::Initial { Ok(()) } else { Err(Untracked::NoFlow) };
    quic(Quic { form, begins, version, is_known: version == 1, source_id, destination_id, ..Quic::EMPTY })
}

fn initial(destination_id: u32, source_id: u32) -> Transport {
    long(QuicForm::Initial, 1, destination_id, source_id)
}

pub(super) fn short(spin: bool) -> Transport {
    quic(Quic { spin, ..Quic::EMPTY })
}

/// The same packet without the fixed bit.
fn greased(mut transport: Transport) -> Transport {
    transport.datagram.quic.is_greased = true;
    transport.datagram.quic.begins = Err(Untracked::Unsupported);
    transport
}

fn found(outcome: Outcome) -> Option<(Method, u64, u64)> {
    outcome.measured.sample().map(|sample| (sample.method, sample.rtt / MS, sample.side_rtt / MS))
}

#[expect(clippy::unnecessary_wraps, reason = "it is what `found` is compared with")]
fn handshake(ms: u64) -> Option<(Method, u64, u64)> {
    Some((Method::QuicHandshake, ms, 0))
}

#[expect(clippy::unnecessary_wraps, reason = "it is what `found` is compared with")]
fn spin(ms: u64, side_ms: u64) -> Option<(Method, u64, u64)> {
    Some((Method::QuicSpin, ms, side_ms))
}

fn talk() -> Conversation {
    Conversation::by(Methods::ALL)
}

/// A conversation in which both ends have sent a long header, the last at 10 ms. The low end is the client.
pub(super) fn connected() -> Conversation {
    let mut talk = talk();
    talk.low(1, initial(ANY, CLIENT));
    talk.high(10, initial(CLIENT, SERVER));
    talk
}

/// Sends edges of both ends in turn, the client's first. The server's come `there` ms after the client's, and the
/// client's `back` ms after the server's.
fn edges(
    talk: &mut Conversation,
    from: u64,
    number: usize,
    (there, back): (u64, u64),
) -> Vec<Option<(Method, u64, u64)>> {
    let mut now = from;
    let mut outcomes = vec![];
    for index in 0..number {
        let value = index % 4 < 2;
        let is_client = index % 2 == 0;
        let outcome = if is_client { talk.low(now, short(value)) } else { talk.high(now, short(value)) };
        outcomes.push(found(outcome));
        now += if is_client { there } else { back };
    }
    outcomes
}

/// A believed flow with an RTT of 20 ms, 5 of them beyond the server. The last edges are the client's at 1160 ms and the
/// server's at 1165 ms. Both have the value 1, and trust is at its maximum.
fn believed() -> Conversation {
    let mut talk = connected();
    talk.low(990, short(false));
    talk.high(990, short(false));
    edges(&mut talk, 1000, 18, (5, 15));
    talk
}

#[test]
fn rule_1_known_versions_are_recognised_at_once() {
    let mut talk = talk();
    talk.low(1, initial(ANY, CLIENT));
    assert!(talk.flow.hot.protocol_state.spin_trust().is_recognised());
}

#[test]
fn rule_1_unknown_versions_are_once_an_id_is_used() {
    let unknown = |destination, source| long(QuicForm::Initial, UNKNOWN, destination, source);
    let mut by_server = talk();
    by_server.low(1, unknown(ANY, CLIENT));
    assert!(!by_server.flow.hot.protocol_state.spin_trust().is_recognised());
    by_server.high(2, unknown(CLIENT, SERVER));
    assert!(by_server.flow.hot.protocol_state.spin_trust().is_recognised());

    let mut by_client = talk();
    by_client.low(1, unknown(ANY, 0));
    by_client.high(2, unknown(0, SERVER));
    assert!(!by_client.flow.hot.protocol_state.spin_trust().is_recognised(), "an empty ID says nothing");
    by_client.low(3, unknown(SERVER, 0));
    assert!(by_client.flow.hot.protocol_state.spin_trust().is_recognised());
}

#[test]
fn rule_1_unknown_versions_are_not_by_other_ids_or_versions() {
    for (version, id) in [(UNKNOWN, ANY), (UNKNOWN + 1, CLIENT)] {
        let mut talk = talk();
        talk.low(1, long(QuicForm::Initial, UNKNOWN, ANY, CLIENT));
        talk.high(2, long(QuicForm::Initial, version, id, SERVER));
        assert!(!talk.flow.hot.protocol_state.spin_trust().is_recognised());
        talk.low(3, short(false));
        talk.low(4, short(true));
        assert_eq!(talk.flow.spin[0].edge_at, 0);
    }
}

#[test]
fn rule_1_fixed_bit_is_ignored_in_recognised_flows() {
    let mut talk = talk();
    talk.low(1, initial(ANY, CLIENT));
    assert_eq!(found(talk.high(10, greased(initial(CLIENT, SERVER)))), handshake(9));
    talk.low(12, greased(long(QuicForm::Long, 1, SERVER, CLIENT)));
    let mut number = 0_u32;
    let samples: Vec<_> = (0..40_u64)
        .map(|index| {
            // Without a pattern that has to do with edges.
            number = number.wrapping_mul(1_103_515_245).wrapping_add(12345);
            let packet = short(index % 4 < 2);
            let packet = if number >> 16 & 1 == 0 { packet } else { greased(packet) };
            found(if index % 2 == 0 {
                talk.low(100 + 10 * index, packet)
            } else {
                talk.high(105 + 10 * index, packet)
            })
        })
        .collect();
    assert_eq!(samples.iter().flatten().count(), samples.len() - 8, "{samples:?}");
    assert!(samples.iter().flatten().all(|sample| sample.1 == 20), "{samples:?}");
}

#[test]
fn rule_1_without_the_fixed_bit_nothing_is_recognised() {
    let mut talk = talk();
    talk.low(1, long(QuicForm::Initial, UNKNOWN, ANY, CLIENT));
    assert_eq!(found(talk.high(2, greased(initial(CLIENT, SERVER)))), None);
    assert!(!talk.flow.hot.protocol_state.spin_trust().is_recognised());
    assert_eq!(found(talk.high(3, long(QuicForm::Initial, UNKNOWN, CLIENT, SERVER))), handshake(2));
    assert!(talk.flow.hot.protocol_state.spin_trust().is_recognised());
}

#[test]
fn rules_3_and_4_long_header_to_the_source_id_answers() {
    let mut talk = talk();
    assert_eq!(found(talk.low(1, initial(ANY, CLIENT))), None);
    assert_eq!(found(talk.low(2, initial(ANY, CLIENT))), None, "of the same flight");
    assert_eq!(found(talk.high(21, initial(SERVER, SERVER))), None, "to another");
    assert_eq!(found(talk.high(31, initial(CLIENT, SERVER))), handshake(30));
    assert_eq!(found(talk.high(32, initial(CLIENT, SERVER))), None, "once only");
    assert_eq!(found(talk.low(51, initial(SERVER, CLIENT))), None, "the server began nothing");
}

#[test]
fn rule_4_replies_that_give_a_sample_and_empty_ids() {
    for (form, version) in [(QuicForm::Initial, 1), (QuicForm::Negotiation, 0)] {
        let mut talk = talk();
        talk.low(1, initial(ANY, 0));
        assert_eq!(found(talk.high(31, long(form, version, 0, SERVER))), handshake(30));
    }
    let mut missed = talk();
    missed.low(1, initial(ANY, CLIENT));
    assert_eq!(found(missed.high(31, long(QuicForm::Long, 1, CLIENT, SERVER))), None);
    assert_eq!(found(missed.high(900, initial(CLIENT, SERVER))), None, "the first reply was missed");
}

#[test]
fn rule_4_in_an_unknown_version_an_empty_id_is_no_reply() {
    let mut talk = talk();
    talk.low(1, long(QuicForm::Initial, UNKNOWN, ANY, 0));
    assert_eq!(found(talk.high(31, long(QuicForm::Initial, UNKNOWN, 0, SERVER))), None);
}

#[test]
fn rule_3_only_an_initial_that_begins_the_flow_waits() {
    for first in [long(QuicForm::Long, 1, ANY, CLIENT), short_initial()] {
        let mut by_other = talk();
        by_other.low(1, first);
        by_other.low(2, initial(ANY, CLIENT));
        assert_eq!(found(by_other.high(31, initial(CLIENT, SERVER))), None);
    }

    let mut local = talk();
    local.flow.locked.facts = crate::testing::local(2);
    local.low(1, initial(ANY, CLIENT));
    assert_eq!(found(local.high(31, initial(CLIENT, SERVER))), None, "to this host");

    let mut off = Conversation::by(Methods::ALL.without(Method::QuicHandshake));
    off.low(1, initial(ANY, CLIENT));
    assert_eq!(found(off.high(31, initial(CLIENT, SERVER))), None);
}

/// An Initial in a datagram that is too short for the first.
fn short_initial() -> Transport {
    let mut transport = initial(ANY, CLIENT);
    transport.datagram.quic.begins = Err(Untracked::NoFlow);
    transport
}

#[test]
fn rule_5_an_initial_sent_again_voids_the_leg() {
    let mut talk = talk();
    talk.low(1, initial(ANY, CLIENT));
    talk.low(51, initial(ANY, CLIENT));
    assert_eq!(talk.low(52, initial(ANY, CLIENT)).measured.sample(), None);
    assert_eq!(found(talk.high(80, initial(CLIENT, SERVER))), None);
}

#[test]
fn rule_5a_another_initial_begins_another_connection() {
    // The first is not answered, and the second has another ID of either kind.
    for again in [initial(ANY + 1, CLIENT), initial(ANY, CLIENT + 1)] {
        for wait in [1, 40, 3_000] {
            let mut talk = talk();
            talk.low(1, initial(ANY, CLIENT));
            talk.low(1 + wait, again);
            let source = again.datagram.quic.source_id;
            assert_eq!(found(talk.high(31 + wait, initial(source, SERVER))), handshake(30), "{wait}");
        }
    }
    // The first was answered.
    let mut talk = connected();
    talk.low(2_000, initial(ANY + 1, CLIENT + 1));
    assert_eq!(found(talk.high(2_030, initial(CLIENT + 1, SERVER + 1))), handshake(30));
}

#[test]
fn rule_5a_only_the_client_begins_another_connection() {
    let mut talk = talk();
    talk.low(1, initial(ANY, CLIENT));
    assert_eq!(found(talk.high(21, initial(CLIENT, SERVER))), handshake(20));
    talk.low(22, initial(SERVER, CLIENT));
    // After a Retry, the server has another ID.
    talk.high(42, initial(CLIENT, SERVER + 1));
    assert_eq!(found(talk.low(43, initial(SERVER + 1, CLIENT))), None);
}

#[test]
fn rules_10_and_11_samples_from_the_seventh_edge_on() {
    let mut talk = connected();
    talk.low(90, short(false));
    talk.high(90, short(false));
    let found = edges(&mut talk, 100, 12, (5, 15));
    assert_eq!(found[..6], [None; 6]);
    assert_eq!(found[6..], [spin(20, 15), spin(20, 5), spin(20, 15), spin(20, 5), spin(20, 15), spin(20, 5)]);
}

#[test]
fn rule_6_a_flow_that_is_not_recognised_has_no_edges() {
    let mut talk = talk();
    talk.low(1, long(QuicForm::Initial, UNKNOWN, ANY, CLIENT));
    assert_eq!(edges(&mut talk, 100, 30, (5, 15)), [None; 30]);
}

#[test]
fn rule_6_samples_of_spin_bits_can_be_off() {
    let mut talk = connected();
    talk.rules.methods = Methods::ALL.without(Method::QuicSpin);
    assert_eq!(edges(&mut talk, 100, 30, (5, 15)), [None; 30]);
}

#[test]
fn rule_7_a_packet_that_was_overtaken_changes_nothing() {
    let mut talk = believed();
    assert_eq!(found(talk.low(1180, short(false))), spin(20, 15));
    assert_eq!(found(talk.low(1182, short(true))), None);
    assert_eq!(found(talk.low(1182, short(false))), None);
    assert_eq!(found(talk.high(1185, short(false))), spin(20, 5));
    assert_eq!(found(talk.low(1200, short(true))), spin(20, 15));
}

#[test]
fn rule_7_both_sides_early_start_over() {
    let mut talk = believed();
    // The RTT falls from 20 ms to 2 ms.
    talk.low(1180, short(false));
    talk.high(1181, short(false));
    talk.low(1182, short(true));
    talk.high(1182, short(true));
    assert_eq!(talk.flow.lock().spin(Endpoint::Low), Spin::UNSEEN);
    assert_eq!(talk.flow.lock().spin(Endpoint::High), Spin::UNSEEN);
    // The next packets set the values, then come the first edges, and then samples again.
    let rest: Vec<_> = (0..8)
        .map(|index| {
            let value = index % 4 >= 2;
            let now = 1184 + index;
            found(if index % 2 == 0 { talk.low(now, short(value)) } else { talk.high(now, short(value)) })
        })
        .collect();
    assert_eq!(rest[..4], [None; 4]);
    assert_eq!(rest[4..], [spin(2, 1); 4]);
}

#[test]
fn rule_8_an_edge_out_of_turn_costs_each_direction_a_sample() {
    let mut talk = believed();
    talk.low(1180, short(false));
    assert_eq!(found(talk.low(1183, short(true))), None);
    assert_eq!(found(talk.low(1184, short(false))), None);
    assert_eq!(found(talk.high(1185, short(false))), None);
    assert_eq!(found(talk.low(1200, short(true))), None);
    assert_eq!(found(talk.high(1205, short(true))), spin(20, 5));
    assert_eq!(found(talk.low(1220, short(false))), spin(20, 15));
}

#[test]
fn rule_8_where_edges_were_missed_there_is_no_long_interval() {
    let mut talk = believed();
    // The server's edge at 1185 ms is missed.
    talk.low(1180, short(false));
    talk.low(1200, short(true));
    assert_eq!(found(talk.high(1205, short(true))), None);
    assert_eq!(found(talk.low(1220, short(false))), None);
    assert_eq!(found(talk.high(1225, short(false))), None);
    assert_eq!(found(talk.low(1240, short(true))), None);
    assert_eq!(found(talk.high(1245, short(true))), spin(20, 5));
    assert_eq!(found(talk.low(1260, short(false))), spin(20, 15));
}

#[test]
fn rule_8_a_flow_out_of_phase_starts_over_and_is_believed_again() {
    let mut talk = believed();
    // From now on the client's values are inverted, so each of its edges seems to come at once.
    let mut samples = vec![];
    for index in 0..40_u64 {
        let value = index % 2 == 1;
        let now = 1170 + 20 * index;
        samples.push(found(talk.low(now, short(!value))));
        samples.push(found(talk.low(now + 6, short(!value))));
        samples.push(found(talk.high(now + 15, short(value))));
        samples.push(found(talk.high(now + 19, short(value))));
    }
    let right = samples.iter().flatten().filter(|sample| sample.1 == 20).count();
    assert_eq!(right, samples.iter().flatten().count());
    assert!(right > 50, "{right}");
}

#[test]
fn rule_10_it_takes_longer_after_something_was_wrong() {
    let mut talk = connected();
    talk.low(90, short(false));
    talk.high(90, short(false));
    talk.low(100, short(true));
    talk.low(105, short(false));
    let found = edges(&mut talk, 110, 20, (5, 15));
    // Trust is 6, and the first packets of both ends are no edges.
    let first = found.iter().position(Option::is_some);
    assert_eq!(first, Some(12));
}

#[test]
fn rule_11_a_pause_of_more_than_ten_seconds_is_no_sample() {
    let mut talk = believed();
    assert_eq!(found(talk.low(11_160, short(false))), spin(10_000, 9_995));
    let mut talk = believed();
    assert_eq!(found(talk.low(11_161, short(false))), None);
    assert_eq!(found(talk.high(11_166, short(false))), None);
    assert_eq!(found(talk.low(11_181, short(true))), spin(20, 15));
}

#[test]
fn rules_9_11_and_12_short_intervals_cost_trust() {
    let mut talk = believed();
    assert_eq!(found(talk.low(1169, short(false))), None);
    assert_eq!(found(talk.high(1174, short(false))), None);
    // Trust is 8. The client's next edge is due at 1178 ms, 9 ms after the last.
    let samples = edges(&mut talk, 1178, 10, (5, 4));
    assert_eq!(samples[..7], [None; 7]);
    assert_eq!(samples[7..], [spin(9, 5), spin(9, 4), spin(9, 5)]);
}

#[test]
fn rule_9_random_spin_bits_lose_trust() {
    // A server sets each bit at random, and a client that is near inverts it at once.
    let mut talk = connected();
    let (mut number, mut samples) = (1_u32, 0);
    for packet in 0..2000_u64 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = number >> 24 & 1 == 0;
        let now = 100 + 50 * packet + u64::from(number >> 8 & 7);
        samples += usize::from(found(talk.high(now, short(value))).is_some());
        samples += usize::from(found(talk.low(now + 1, short(!value))).is_some());
    }
    // Without the rule, nearly all of 2000 edges would give one.
    assert!(samples < 600, "{samples}");
}

#[test]
fn rule_12_a_pause_makes_no_edge_early() {
    let mut talk = believed();
    assert_eq!(found(talk.low(2160, short(false))), spin(1000, 995));
    assert_eq!(found(talk.high(2165, short(false))), spin(1000, 5));
    assert_eq!(found(talk.low(2180, short(true))), spin(20, 15));
}

#[test]
fn rule_13_only_what_is_timed_is_sampled() {
    for (local, (client, server)) in
        [(0, (true, true)), (1, (false, true)), (2, (true, false)), (3, (false, false))]
    {
        let mut talk = connected();
        talk.flow.locked.facts = crate::testing::local(local);
        talk.low(90, short(false));
        talk.high(90, short(false));
        let found = edges(&mut talk, 100, 12, (5, 15));
        assert_eq!((found[10].is_some(), found[11].is_some()), (client, server), "{local}");
        // With the next edge of the client and of the server, which are left out instead.
        assert_eq!(talk.low(220, short(true)).measured.to_this_host, !client, "{local}");
        assert_eq!(talk.high(225, short(true)).measured.to_this_host, !server, "{local}");
    }
}

#[test]
fn rule_3_a_first_packet_to_this_host_is_left_out() {
    for (local, expected) in [(0, false), (1, false), (2, true), (3, true)] {
        let mut talk = Conversation::by(Methods::ALL);
        talk.flow.locked.facts = crate::testing::local(local);
        assert_eq!(talk.low(10, initial(ANY, CLIENT)).measured.to_this_host, expected, "{local}");
        assert!(!talk.low(11, initial(ANY, CLIENT)).measured.to_this_host, "the same flight");
        assert!(!talk.high(30, initial(CLIENT, SERVER)).measured.to_this_host);
    }
}

#[test]
fn rule_13_limits_are_on_what_begins_an_interval() {
    let mut talk = connected();
    talk.rules = Rules { rate_limit: 100 * MS, ..talk.rules };
    talk.low(990, short(false));
    talk.high(990, short(false));
    let found = edges(&mut talk, 1000, 40, (5, 15));
    // The client's edges record at 1000, 1100, 1200 and 1300 ms, the first of them before the flow is believed.
    let client: Vec<_> =
        found.iter().step_by(2).enumerate().filter_map(|(at, found)| found.map(|_| at)).collect();
    assert_eq!(client, [6, 11, 16]);
}

#[test]
fn rule_13_samples_are_those_of_the_other_side() {
    let mut talk = believed();
    let (low, high) = (talk.flow.rtt(Endpoint::Low).smoothed, talk.flow.rtt(Endpoint::High).smoothed);
    talk.low(1190, short(false));
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, low);
    assert!(talk.flow.rtt(Endpoint::High).smoothed > high);
}

#[test]
fn rule_14_another_source_id_begins_anew() {
    let mut talk = believed();
    talk.low(1170, initial(ANY, CLIENT));
    assert_eq!(found(talk.low(1180, short(false))), spin(20, 15));
    talk.low(3000, initial(ANY, CLIENT + 2));
    talk.high(3010, initial(CLIENT + 2, SERVER + 2));
    talk.low(3020, short(false));
    talk.high(3020, short(false));
    let found = edges(&mut talk, 3030, 4, (5, 15));
    assert_eq!(found, [None, None, spin(20, 15), spin(20, 5)]);
}

#[test]
fn rule_14_packets_that_went_by_unseen_leave_no_interval() {
    let mut talk = believed();
    talk.flow.hot.contended = 1;
    assert_eq!(found(talk.low(1180, short(false))), None);
    talk.high(1181, short(true));
    assert_eq!(found(talk.high(1185, short(false))), None);
    assert_eq!(found(talk.low(1200, short(true))), None);
    assert_eq!(found(talk.high(1205, short(true))), spin(20, 5));
    assert_eq!(found(talk.low(1220, short(false))), spin(20, 15));
}

#[test]
fn packets_of_no_interest_concern_nobody() {
    let mut talk = believed();
    for (from, value) in [(Endpoint::Low, true), (Endpoint::High, true)] {
        let transport = short(value);
        let counted = talk.flow.count(from, &transport, 0, 1);
        assert_eq!(
            talk.flow.possible_change(from, &transport, counted, &talk.rules),
            PossibleChange::Nothing
        );
    }
}
