//! `tcp-seq`. In a conversation in progress the low end continues with 1,000 and the high end with 5,000.

use std::vec::Vec;

use crate::{
    flow::{Endpoint, Outcome},
    limits::{AHEAD, UNKNOWN_WINDOW},
    method::{Method, Methods},
    parse::Transport,
    rtt::{RttSummary, Sample},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, bare, samples, snapshot},
};

const LIFETIME_MS: u64 = 10_000;

fn begun() -> Conversation {
    Conversation::by(Methods::NONE.with(Method::TcpTs).with(Method::TcpSeq))
}

/// A conversation after a handshake whose legs both took 1 ms.
fn in_progress() -> Conversation {
    in_progress_from(1_000)
}

/// The same, but the low end continues with another number.
fn in_progress_from(sequence: u32) -> Conversation {
    let mut talk = begun();
    talk.low(1, bare(SYN, sequence.wrapping_sub(1), 0, 0));
    talk.high(2, bare(SYN | ACK, 4_999, 0, sequence));
    talk.low(3, bare(ACK, sequence, 0, 5_000));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 0));
    talk
}

/// Data of the low end.
fn data(sequence: u32, payload: u32) -> Transport {
    bare(ACK | PSH, sequence, payload, 5_000)
}

/// The high end's acknowledgement of all bytes below a number.
fn ack(number: u32) -> Transport {
    bare(ACK, 5_000, 0, number)
}

/// The same acknowledgement, with SACK blocks.
fn sack(number: u32) -> Transport {
    let mut transport = ack(number);
    transport.segment.has_sack = true;
    transport
}

/// The sequence number that was acknowledged, and the RTT in ms.
fn rtt(outcome: Outcome) -> Option<(u32, u64)> {
    let samples = samples(outcome);
    assert!(samples.iter().all(|&(method, _, _)| method == Method::TcpSeq));
    samples.first().map(|&(_, identifier, rtt)| (identifier, rtt))
}

#[test]
fn segment_is_timed_to_its_acknowledgement() {
    let mut talk = in_progress();
    assert_eq!(rtt(talk.low(10, data(1_000, 100))), None);
    let sample = talk.high(30, ack(1_100)).measured.sample();
    let expected = Sample { method: Method::TcpSeq, identifier: 1_100, rtt: 20 * MS, side_rtt: 0 };
    assert_eq!(sample, Some(expected));
    // The SYN's RTT was 1 ms.
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, MS);
    assert_eq!(talk.flow.rtt(Endpoint::Low).smoothed, MS - MS / 8 + 20 * MS / 8);
}

#[test]
fn both_directions_are_timed() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    assert_eq!(rtt(talk.high(30, bare(ACK, 5_000, 300, 1_100))), Some((1_100, 20)));
    assert_eq!(rtt(talk.low(35, bare(ACK, 1_100, 0, 5_300))), Some((5_300, 5)));
}

#[test]
fn s1_highest_end_is_of_all_that_takes_sequence_numbers() {
    let mut talk = begun();
    // The SYN comes with 50 bytes (RFC 7413), and the FIN with 10.
    talk.low(1, bare(SYN, 999, 50, 0));
    assert_eq!(talk.flow.hot.direction(Endpoint::Low).sequence_end, 1_050);
    talk.low(2, bare(ACK, 1_050, 0, 5_000));
    assert_eq!(talk.flow.hot.direction(Endpoint::Low).sequence_end, 1_050);
    talk.low(3, bare(FIN | ACK, 1_050, 10, 5_000));
    assert_eq!(talk.flow.hot.direction(Endpoint::Low).sequence_end, 1_061);
}

#[test]
fn s1_highest_end_does_not_go_back() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(11, data(1_000, 50));
    assert_eq!(talk.flow.hot.direction(Endpoint::Low).sequence_end, 1_100);
    talk.low(12, data(1_050, 50));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn s2_what_waited_before_another_syn_waits_no_more() {
    for first in [SYN, SYN | ACK] {
        let mut talk = Conversation::by(Methods::NONE.with(Method::TcpSeq));
        talk.low(10, bare(first, 1_000, 0, 5_000));
        talk.low(20, bare(SYN | ACK, 7_000, 0, 5_000));
        assert_eq!(talk.pending_count(), 1);
        assert_eq!(rtt(talk.high(30, ack(1_001))), None);
        assert_eq!(rtt(talk.high(40, ack(7_001))), Some((7_001, 20)));
    }
}

#[test]
fn s1_a_syn_with_another_number_sets_the_highest_end() {
    for number in [10, 0x7fff_0000, 0x9000_0000] {
        let mut talk = in_progress();
        talk.low(10, data(1_000, 100));
        talk.low(15, bare(RST, 1_100, 0, 0));
        talk.low(20, bare(SYN, number, 0, 0));
        assert_eq!(talk.flow.hot.direction(Endpoint::Low).sequence_end, number + 1);
        assert_eq!(talk.pending_count(), 1, "the SYN, and nothing of before");
        assert_eq!(rtt(talk.high(27, bare(SYN | ACK, 77, 0, number + 1))), Some((number + 1, 7)));
        assert_eq!(talk.flow.rtt(Endpoint::Low).min, 7 * MS, "that of the earlier connection is forgotten");
        talk.low(30, bare(ACK, number + 1, 10, 78));
        assert_eq!(rtt(talk.high(33, bare(ACK, 78, 0, number + 11))), Some((number + 11, 3)));
    }
}

#[test]
fn s1_highest_end_is_of_one_connection() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(11, bare(FIN | ACK, 1_100, 0, 5_000));
    talk.high(12, bare(FIN | ACK, 5_000, 0, 1_000));
    // A SYN that ends where the FIN did is no retransmission.
    talk.low(20, bare(SYN, 1_100, 0, 0));
    assert_eq!(talk.pending_count(), 1);
}

#[test]
fn s2_bytes_sent_again_are_not_timed() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(210, data(1_000, 100));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(230, ack(1_100))), None);
}

#[test]
fn s2_bytes_sent_again_void_all_that_waits() {
    let mut talk = in_progress();
    for (sequence, ms) in [1_000, 1_100, 1_200, 1_300].into_iter().zip(10..) {
        talk.low(ms, data(sequence, 100));
    }
    // The receiver can acknowledge the bytes from 1,200 on only after these. It may have acknowledged those from 1,000 on
    // before.
    talk.low(210, data(1_100, 100));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(220, ack(1_100))), None);
    assert_eq!(rtt(talk.high(230, ack(1_400))), None);
    talk.low(240, data(1_400, 100));
    assert_eq!(rtt(talk.high(250, ack(1_500))), Some((1_500, 10)));
}

#[test]
fn s2_a_segment_is_sent_again_if_its_first_byte_was() {
    // The last one lies outside of the window.
    let far = 1_100_u32.wrapping_sub(UNKNOWN_WINDOW);
    for (sequence, waiting) in [(1_099, 1), (1_100, 2), (1_101, 2), (far, 0), (far - 1, 1)] {
        let mut talk = in_progress();
        talk.low(10, data(1_000, 100));
        talk.low(20, data(sequence, 300));
        assert_eq!(talk.pending_count(), waiting, "{sequence}");
    }
}

#[test]
fn s2_partly_new_bytes_void_the_rest_and_are_timed_themselves() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(210, data(1_050, 100));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(220, ack(1_100))), None);
    assert_eq!(rtt(talk.high(230, ack(1_150))), Some((1_150, 20)));
}

#[test]
fn s2_a_keep_alive_is_not_timed() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    assert_eq!(rtt(talk.high(30, ack(1_100))), Some((1_100, 20)));
    for (payload, ms) in [(1, 1_000), (0, 2_000), (1, 3_000)] {
        talk.low(ms, bare(ACK, 1_099, payload, 5_000));
        assert_eq!(rtt(talk.high(ms + 20, ack(1_100))), None);
    }
    // A keep-alive also voids data that is pending when it comes.
    talk.low(4_000, data(1_100, 100));
    talk.low(5_000, bare(ACK, 1_199, 1, 5_000));
    assert_eq!(rtt(talk.high(5_020, ack(1_200))), None);
}

#[test]
fn s2_a_zero_window_probe_is_timed_only_if_it_is_taken() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 1));
    assert_eq!(rtt(talk.high(30, ack(1_000))), None, "there was no room for it");
    assert_eq!(talk.pending_count(), 1);
    // The byte is sent again, and then together with those that follow it.
    talk.low(210, data(1_000, 1));
    assert_eq!(rtt(talk.high(230, ack(1_000))), None);
    talk.low(400, data(1_000, 100));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(420, ack(1_001))), None);
    assert_eq!(rtt(talk.high(430, ack(1_100))), Some((1_100, 30)));
}

#[test]
fn s2_a_rst_voids_nothing() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(11, bare(RST | ACK, 1_000, 10, 5_000));
    assert_eq!(talk.pending_count(), 1);
}

#[test]
fn s3_a_pure_ack_is_never_recorded() {
    let mut talk = in_progress();
    talk.low(10, bare(ACK, 1_000, 0, 5_000));
    talk.low(11, bare(ACK | PSH, 1_100, 0, 5_000));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(30, ack(1_100))), None);
}

#[test]
fn s3_a_gap_does_not_matter() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(11, data(1_500, 100));
    assert_eq!(talk.pending_count(), 2);
    assert_eq!(rtt(talk.high(30, ack(1_100))), Some((1_100, 20)));
    // This segment is out of order: it may be reordered or retransmitted.
    talk.low(32, data(1_100, 100));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(51, ack(1_600))), None);
}

#[test]
fn s3_the_first_in_mid_stream_is_not_recorded() {
    let mut talk = Conversation::by(Methods::NONE.with_seq_always());
    talk.low(10, data(1_000, 100));
    assert_eq!((talk.pending_count(), talk.flow.hot.direction(Endpoint::Low).sequence_end), (0, 1_100));
    talk.low(11, data(1_100, 100));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(30, ack(1_100))), None);
    assert_eq!(rtt(talk.high(31, ack(1_200))), Some((1_200, 20)));
    // The other direction has its own first segment: an ACK says what comes next.
    talk.high(40, bare(ACK, 5_000, 100, 1_200));
    assert_eq!(talk.flow.pending(Endpoint::High).count(), 1);
}

#[test]
fn s3_syn_and_syn_ack_are_timed_without_tcp_handshake() {
    let mut talk = begun();
    talk.low(10, bare(SYN, 999, 0, 0));
    assert_eq!(rtt(talk.high(30, bare(SYN | ACK, 4_999, 0, 1_000))), Some((1_000, 20)));
    assert_eq!(rtt(talk.low(35, bare(ACK, 1_000, 0, 5_000))), Some((5_000, 5)));
}

#[test]
fn s3_a_syn_sent_again_is_not_timed() {
    let mut talk = begun();
    talk.low(10, bare(SYN, 999, 0, 0));
    talk.low(1_010, bare(SYN, 999, 0, 0));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(1_030, bare(SYN | ACK, 4_999, 0, 1_000))), None);
}

#[test]
fn s3_fin_is_timed() {
    let mut talk = in_progress();
    talk.low(10, bare(FIN | ACK, 1_000, 0, 5_000));
    assert_eq!(rtt(talk.high(30, ack(1_000))), None);
    assert_eq!(rtt(talk.high(31, ack(1_001))), Some((1_001, 21)));
}

#[test]
fn s3_rate_limits_hold() {
    let mut talk = in_progress();
    talk.rules.rate_limit = 100 * MS;
    talk.low(200, data(1_000, 100));
    talk.low(299, data(1_100, 100));
    assert_eq!(talk.pending_count(), 1);
    talk.low(300, data(1_200, 100));
    assert_eq!(talk.pending_count(), 2);
    assert_eq!(rtt(talk.high(310, ack(1_300))), Some((1_300, 10)));
    // The smoothed RTT is 1 ms - 0.125 + 1.25.
    (talk.rules.rate_limit, talk.rules.rtt_rate) = (0, 4 << 16);
    talk.low(400, data(1_300, 100));
    talk.low(408, data(1_400, 100));
    assert_eq!(talk.pending_count(), 1);
    talk.low(409, data(1_500, 100));
    assert_eq!(talk.pending_count(), 2);
}

#[test]
fn s3_what_the_limit_forbids_still_voids_what_it_overlaps() {
    let mut talk = in_progress();
    talk.rules.rate_limit = 1_000 * MS;
    talk.low(2_000, data(1_000, 100));
    talk.low(2_001, data(1_050, 100));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn s3_full_slots_are_counted_and_given_up_after_ten_seconds() {
    let mut talk = in_progress();
    for count in 0..8_u32 {
        assert!(!talk.low(10 + u64::from(count), data(1_000 + 100 * count, 100)).measured.pending_full);
    }
    assert!(talk.low(20, data(1_800, 100)).measured.pending_full);
    assert!(talk.low(9 + LIFETIME_MS, data(1_900, 100)).measured.pending_full);
    assert!(!talk.low(10 + LIFETIME_MS, data(2_000, 100)).measured.pending_full);
    assert_eq!(rtt(talk.high(20 + LIFETIME_MS, ack(1_100))), None);
    assert_eq!(rtt(talk.high(30 + LIFETIME_MS, ack(2_100))), Some((2_100, 20)));
}

/// An upload that fills a long path: 200 segments are under way at a time, and each ACK covers two.
#[test]
fn s3_bulk_transfer_is_sampled_throughout() {
    const UNDER_WAY: u32 = 200;
    const ROUNDS: u32 = 50;
    let mut talk = in_progress();
    let (mut skipped, mut found) = (0, Vec::new());
    for number in 0..UNDER_WAY * ROUNDS {
        let now = 10 + u64::from(number);
        if number >= UNDER_WAY && number % 2 == 0 {
            let acknowledged = 1_000 + 100 * (number - UNDER_WAY);
            found.extend(rtt(talk.high(now, ack(acknowledged))).map(|(_, rtt)| (number, rtt)));
        }
        skipped += u32::from(talk.low(now, data(1_000 + 100 * number, 100)).measured.pending_full);
    }
    // Eight are recorded in each round trip, in pairs that one ACK covers.
    for round in 1..ROUNDS {
        let samples = found.iter().filter(|(number, _)| number / UNDER_WAY == round).count();
        assert!((4..=8).contains(&samples), "{samples} samples in round trip {round}");
    }
    assert!(found.iter().all(|(_, rtt)| (200..=202).contains(rtt)), "{found:?}");
    let recorded = UNDER_WAY * ROUNDS - skipped;
    assert!((8 * (ROUNDS - 1)..=8 * ROUNDS).contains(&recorded), "{recorded}");
}

#[test]
fn s3_packets_to_a_local_address_are_not_timed() {
    let mut talk = in_progress();
    talk.flow.locked.facts = crate::testing::local(2);
    talk.low(10, data(1_000, 100));
    assert_eq!(talk.pending_count(), 0);
    assert_eq!(rtt(talk.high(30, bare(ACK, 5_000, 100, 1_100))), None);
    assert_eq!(rtt(talk.low(40, bare(ACK, 1_100, 0, 5_100))), Some((5_100, 10)));
    talk.rules.include_local = true;
    talk.low(50, data(1_100, 100));
    assert_eq!(rtt(talk.high(51, bare(ACK, 5_100, 0, 1_200))), Some((1_200, 1)));
}

#[test]
fn s4_newest_covered_is_the_sample_and_all_covered_are_freed() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(15, data(1_100, 100));
    talk.low(18, data(1_200, 100));
    assert_eq!(rtt(talk.high(30, ack(1_250))), Some((1_200, 15)));
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(40, ack(1_300))), Some((1_300, 22)));
    assert_eq!(talk.pending_count(), 0);
}

#[test]
fn s4_newest_is_the_greatest_not_the_last_recorded() {
    let mut talk = in_progress();
    for count in 0..8_u32 {
        talk.low(10 + u64::from(count), data(1_000 + 100 * count, 100));
    }
    assert_eq!(rtt(talk.high(20, ack(1_300))), Some((1_300, 8)));
    // This segment takes the first free slot, before those of older ones.
    talk.low(21, data(1_800, 100));
    assert_eq!(rtt(talk.high(30, ack(1_900))), Some((1_900, 9)));
}

#[test]
fn s4_duplicate_acknowledgements_give_no_sample() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(11, data(1_100, 100));
    assert_eq!(rtt(talk.high(30, ack(1_100))), Some((1_100, 20)));
    let before = snapshot(&talk);
    for ms in 31..34 {
        assert_eq!(rtt(talk.high(ms, ack(1_100))), None);
    }
    assert_eq!(before, snapshot(&talk));
}

#[test]
fn s4_an_acknowledgement_below_all_changes_nothing() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    for number in [1_099, 1_000, 0, 1_100_u32.wrapping_sub(1 << 31)] {
        assert_eq!(rtt(talk.high(20, ack(number))), None);
        assert_eq!(talk.pending_count(), 1, "{number}");
    }
    assert_eq!(rtt(talk.high(30, ack(1_100 + AHEAD))), Some((1_100, 20)));
}

#[test]
fn s4_ack_with_sack_blocks_frees_without_sample() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    talk.low(11, data(1_100, 100));
    assert_eq!(rtt(talk.high(30, sack(1_100))), None);
    assert_eq!(talk.pending_count(), 1);
    assert_eq!(rtt(talk.high(31, ack(1_100))), None);
    assert_eq!(rtt(talk.high(32, ack(1_200))), Some((1_200, 21)));
    assert_eq!(talk.flow.rtt(Endpoint::Low).min, MS, "nor does it count for the lowest");
}

#[test]
fn s4_match_needs_ack_and_no_rst() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    for flags in [PSH, FIN, RST, RST | ACK] {
        assert_eq!(rtt(talk.high(20, bare(flags, 5_000, 0, 1_100))), None);
        assert_eq!(talk.pending_count(), 1, "{flags:#x}");
    }
}

#[test]
fn s4_numbers_wrap_around() {
    for before in [0, 1, 50, 99, 100, 101, 199, 200, 299, 300] {
        let start = 0_u32.wrapping_sub(before);
        let mut talk = in_progress_from(start);
        talk.low(10, data(start, 100));
        talk.low(11, data(start.wrapping_add(100), 100));
        talk.low(12, data(start.wrapping_add(200), 100));
        assert_eq!(talk.pending_count(), 3);
        let (first, second) = (start.wrapping_add(100), start.wrapping_add(200));
        assert_eq!(rtt(talk.high(30, ack(first))), Some((first, 20)));
        assert_eq!(talk.pending_count(), 2);
        assert_eq!(rtt(talk.high(35, ack(second))), Some((second, 24)));
        // The bytes from 200 on are sent again, which voids the third segment.
        talk.low(36, data(second, 100));
        assert_eq!(talk.pending_count(), 0);
        assert_eq!(rtt(talk.high(37, ack(start.wrapping_add(300)))), None);
    }
}

#[test]
fn simultaneous_syns_are_acknowledged_each_by_the_other() {
    let mut talk = begun();
    talk.low(10, bare(SYN, 999, 0, 0));
    assert_eq!(rtt(talk.high(12, bare(SYN, 4_999, 0, 0))), None);
    // Both ends send their SYN again, with ACK.
    assert_eq!(rtt(talk.low(20, bare(SYN | ACK, 999, 0, 5_000))), Some((5_000, 8)));
    assert_eq!(talk.pending_count(), 0, "it was sent twice now");
    assert_eq!(rtt(talk.high(22, bare(SYN | ACK, 4_999, 0, 1_000))), None);
}

#[test]
fn s5_a_packet_is_matched_against_what_waited_before_it() {
    let mut talk = in_progress_from(5_000);
    talk.low(10, bare(ACK, 5_000, 100, 5_000));
    // Both ends happen to be at the same sequence number.
    assert_eq!(rtt(talk.high(30, bare(ACK, 5_000, 100, 5_100))), Some((5_100, 20)));
    assert_eq!((talk.pending_count(), talk.flow.pending(Endpoint::High).count()), (0, 1));
}

#[test]
fn s5_echo_from_before_what_it_echoes_is_no_sample() {
    let mut talk = in_progress();
    talk.low(10, data(1_000, 100));
    assert_eq!(rtt(talk.high(9, ack(1_100))), None);
    assert_eq!((talk.pending_count(), talk.flow.rtt(Endpoint::Low).min), (0, MS));
}

#[test]
fn s5_packets_missed_and_a_clock_set_back_free_what_waits() {
    for is_missed in [true, false] {
        let mut talk = in_progress();
        talk.low(10, data(1_000, 100));
        if is_missed {
            talk.flow.hot.contended = 1;
        } else {
            talk.flow.set_clock_back(6);
            assert_eq!(talk.flow.rtt(Endpoint::Low).recorded_at, 0);
        }
        assert_eq!(rtt(talk.high(3_010, ack(1_100))), None);
        assert_eq!(talk.pending_count(), 0);
        talk.low(3_020, data(1_100, 100));
        assert_eq!(rtt(talk.high(3_030, ack(1_200))), Some((1_200, 10)));
    }
}

#[test]
fn high_side_is_measured_as_the_low_one() {
    let mut talk = in_progress();
    let mut send = |endpoint, ms: u64, transport| rtt(talk.packet(endpoint, ms * MS, &transport));
    assert_eq!(send(Endpoint::High, 10, bare(ACK, 5_000, 100, 1_000)), None);
    assert_eq!(send(Endpoint::High, 11, bare(ACK, 5_100, 100, 1_000)), None);
    assert_eq!(send(Endpoint::Low, 30, bare(ACK, 1_000, 0, 5_100)), Some((5_100, 20)));
    assert_eq!(send(Endpoint::High, 32, bare(ACK, 5_100, 100, 1_000)), None);
    assert_eq!(send(Endpoint::Low, 50, bare(ACK, 1_000, 0, 5_200)), None);
    assert_ne!(talk.flow.rtt(Endpoint::High).min, RttSummary::NO_RTT);
}
