//! Packets to this host itself.

use crate::{
    flow::Endpoint,
    method::{Method, Methods},
    testing::{ACK, Conversation, SYN, bare, data, pure_ack, reply, request, rtt},
};

/// A conversation in progress whose high end (2) or both ends (3) are this host.
fn local(sides: u32) -> Conversation {
    let mut talk = Conversation::in_progress();
    talk.flow.locked.facts = crate::testing::local(sides);
    talk
}

#[test]
fn packets_to_a_local_address_are_not_timed() {
    let mut talk = local(2);
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(11, data(501, 101))), None);
    // Packets from this host are timed.
    assert_eq!(rtt(talk.low(31, data(102, 501))), Some((501, 20)));
}

#[test]
fn which_side_is_local_matters() {
    let mut talk = local(1);
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(11, data(501, 101))), Some((101, 1)));
    assert_eq!(rtt(talk.low(31, data(102, 501))), None);
}

#[test]
fn packets_to_a_local_address_are_timed_when_asked_for() {
    let mut talk = local(2);
    talk.rules.include_local = true;
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(11, data(501, 101))), Some((101, 1)));
}

#[test]
fn packets_to_a_local_address_are_neither_full_nor_recorded() {
    let mut talk = local(2);
    for tsval in 101..=120 {
        assert!(!talk.low(10, data(tsval, 500)).measured.pending_full);
    }
    assert_eq!((talk.pending_count(), talk.flow.rtt(Endpoint::Low).recorded_at), (0, 0));
    assert_eq!(talk.flow.hot.direction(Endpoint::Low).newest_tsval, 120);
}

#[test]
fn of_a_host_that_talks_to_itself_nothing_is_timed() {
    let mut talk = local(3);
    talk.low(10, data(101, 500));
    assert_eq!(rtt(talk.high(11, data(501, 101))), None);
    assert_eq!(rtt(talk.low(12, pure_ack(102, 501))), None);
}

#[test]
fn requests_to_a_local_address_are_not_timed() {
    let mut talk = local(2);
    talk.low(10, request(1));
    assert_eq!(rtt(talk.high(11, reply(1))), None);
    talk.high(20, request(1));
    assert_eq!(rtt(talk.low(40, reply(1))), Some((1, 20)));
}

#[test]
fn what_is_left_out_for_it_goes_to_this_host_is_named() {
    for include_local in [false, true] {
        let mut talk = local(2);
        talk.rules.include_local = include_local;
        let mut is_left_out = |from, transport| {
            let outcome = match from {
                Endpoint::Low => talk.low(10, transport),
                Endpoint::High => talk.high(10, transport),
            };
            outcome.measured.to_this_host
        };
        let expected = !include_local;
        assert_eq!(is_left_out(Endpoint::Low, data(101, 500)), expected);
        assert!(!is_left_out(Endpoint::Low, data(101, 500)), "not the first of its tick");
        assert!(!is_left_out(Endpoint::Low, pure_ack(102, 500)), "nothing to acknowledge");
        assert!(!is_left_out(Endpoint::High, data(501, 102)), "it leaves this host");
        assert_eq!(is_left_out(Endpoint::Low, request(1)), expected);
        assert!(!is_left_out(Endpoint::High, reply(1)));
        assert!(!is_left_out(Endpoint::High, request(1)));
    }
}

#[test]
fn a_handshake_with_this_host_is_left_out_if_its_method_is_on() {
    let syn = || bare(SYN, 1_000, 0, 0);
    for (methods, expected) in
        [(Methods::NONE.with(Method::TcpHandshake), true), (Methods::NONE.with(Method::TcpTs), false)]
    {
        let mut talk = Conversation::by(methods);
        talk.flow.locked.facts = crate::testing::local(2);
        assert_eq!(talk.low(10, syn()).measured.to_this_host, expected);
        assert!(!talk.high(11, bare(SYN | ACK, 5_000, 0, 1_001)).measured.to_this_host);
    }
}
