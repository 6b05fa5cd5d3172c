//! TCP headers and their options.

use std::vec::Vec;

use crate::{
    parse::{Segment, TcpFlags, Timestamps, Untracked},
    testing::{ACK, FIN, Network, PSH, RST, SYN, TCP, Tcp, parse, parse_anyway},
};

const MSS: [u8; 4] = [2, 4, 0x05, 0xb4];
const WINDOW_SCALE: [u8; 3] = [3, 3, 7];
const SACK_PERMITTED: [u8; 2] = [4, 2];
const SACK: [u8; 10] = [5, 10, 8, 10, 8, 10, 8, 10, 8, 10];
const NOP: [u8; 1] = [1];
const END: [u8; 1] = [0];

fn timestamps() -> [u8; 10] {
    Tcp::timestamps(0x0102_0304, 0x0506_0708)
}

fn segment(tcp: &Tcp) -> Segment {
    parse(&Network::v4().frame(TCP, &tcp.octets())).unwrap().transport.segment
}

#[track_caller]
fn assert_found(options: &[&[u8]]) {
    let found = segment(&Tcp::with_options(&options.concat())).timestamps();
    assert_eq!(found, Some(Timestamps { tsval: 0x0102_0304, tsecr: 0x0506_0708 }));
}

#[track_caller]
fn assert_none(options: &[&[u8]]) {
    assert_eq!(segment(&Tcp::with_options(&options.concat())).timestamps(), None);
}

#[test]
fn ports_flags_and_payload() {
    for flags in [SYN, SYN | ACK, ACK, PSH | ACK, FIN | ACK, RST, RST | ACK] {
        let segment = segment(&Tcp { flags, payload: 77, ..Tcp::usual(1, 2) });
        assert_eq!((segment.source_port, segment.destination_port), (40_000, 443));
        assert_eq!(segment.flags, TcpFlags(flags));
        assert_eq!(segment.payload, 77);
        assert_eq!(segment.flags.syn(), flags & SYN != 0);
        assert_eq!(segment.flags.ack(), flags & ACK != 0);
        assert_eq!(segment.flags.fin(), flags & FIN != 0);
        assert_eq!(segment.flags.rst(), flags & RST != 0);
    }
}

#[test]
fn payload_syn_and_fin_consume_sequence_space() {
    let consumes =
        |flags, payload| segment(&Tcp { flags, payload, ..Tcp::usual(1, 2) }).consumes_sequence_space();
    assert!(consumes(ACK, 1) && consumes(SYN, 0) && consumes(FIN | ACK, 0));
    assert!(!consumes(ACK, 0) && !consumes(RST | ACK, 0) && !consumes(PSH | ACK, 0));
}

#[test]
fn timestamps_where_they_usually_are() {
    assert_found(&[&NOP, &NOP, &timestamps()]);
    assert_found(&[&MSS, &SACK_PERMITTED, &timestamps(), &NOP, &WINDOW_SCALE]);
    assert_found(&[&NOP, &NOP, &timestamps(), &NOP, &NOP, &SACK]);
}

#[test]
fn timestamps_first_in_the_middle_and_last() {
    assert_found(&[&timestamps()]);
    assert_found(&[&timestamps(), &END]);
    assert_found(&[&timestamps(), &NOP, &NOP]);
    assert_found(&[&SACK, &timestamps()]);
    assert_found(&[&WINDOW_SCALE, &timestamps(), &MSS]);
    assert_found(&[&[1; 30], &timestamps()]);
}

#[test]
fn timestamps_that_end_with_the_header() {
    // As long as the usual options, but not the same.
    assert_found(&[&SACK_PERMITTED, &timestamps()]);
    let tcp = Tcp { payload: 0, ..Tcp::with_options(&[&SACK_PERMITTED[..], &timestamps()].concat()) };
    assert_eq!(tcp.octets().len(), 32);
    assert!(segment(&tcp).has_timestamps);
}

#[test]
fn nothing_counts_behind_the_end_of_options() {
    assert_none(&[&END, &timestamps()]);
    assert_none(&[&MSS, &NOP, &END, &timestamps()]);
    assert_none(&[&END, &NOP, &timestamps()]);
}

#[test]
fn options_without_timestamps() {
    assert_none(&[]);
    assert_none(&[&MSS, &SACK_PERMITTED]);
    assert_none(&[&[1; 40]]);
    // A kind that needs a length, in the last octet.
    assert_none(&[&NOP, &NOP, &NOP, &[2]]);
    assert_none(&[&NOP, &NOP, &NOP, &[8]]);
}

#[test]
fn nothing_counts_behind_a_length_below_two() {
    assert_none(&[&[5, 0], &timestamps()]);
    assert_none(&[&[5, 1], &timestamps()]);
}

#[test]
fn nothing_counts_behind_a_length_beyond_the_header() {
    for len in 15..=255 {
        assert_none(&[&NOP, &NOP, &[5, len], &timestamps()]);
    }
    for len in 41..=255 {
        assert_none(&[&[5, len], &[1; 28], &timestamps()]);
    }
}

#[test]
fn timestamps_of_another_length_are_none() {
    for len in (0..=255).filter(|&len| len != 10) {
        let mut option = timestamps();
        option[1] = len;
        assert_none(&[&NOP, &NOP, &option]);
        assert_none(&[&option, &timestamps()]);
    }
}

#[test]
fn timestamps_beyond_the_header_are_none() {
    let mut octets = Tcp { payload: 40, ..Tcp::with_options(&timestamps()[..8]) }.octets();
    octets[28..30].copy_from_slice(&[5, 6]);
    let frame = parse(&Network::v4().frame(TCP, &octets)).unwrap();
    assert_eq!(frame.transport.segment.timestamps(), None);
    assert_eq!(frame.transport.payload(), 40);
}

#[test]
fn values_of_another_option_are_no_timestamps() {
    // An option of unknown kind whose data look like timestamps.
    assert_none(&[&[253, 12], &timestamps()]);
    assert_found(&[&[253, 12], &[8, 10, 9, 9, 9, 9, 9, 9, 9, 9], &timestamps()]);
}

#[test]
fn data_offset_below_the_header_is_malformed() {
    for words in 0..5 {
        let octets = Tcp { data_offset: Some(words), ..Tcp::usual(1, 2) }.octets();
        assert_eq!(parse_anyway(&Network::v4().frame(TCP, &octets)).1, Err(Untracked::Malformed), "{words}");
    }
}

#[test]
fn data_offset_beyond_the_segment_is_malformed() {
    for words in 9..=15 {
        let tcp = Tcp { data_offset: Some(words), payload: 0, ..Tcp::usual(1, 2) };
        // Even where Ethernet padding fills the gap.
        let octets: Vec<u8> = [Network::v4().frame(TCP, &tcp.octets()), Vec::from([1; 60])].concat();
        assert_eq!(parse_anyway(&octets).1, Err(Untracked::Malformed), "{words}");
    }
}

#[test]
fn segment_shorter_than_its_header_is_malformed() {
    for len in 20..52 {
        let network = Network { len: Some(len), ..Network::v4() };
        let octets = network.frame(TCP, &Tcp::usual(1, 2).octets());
        assert_eq!(parse_anyway(&octets).1, Err(Untracked::Malformed), "{len}");
    }
}

#[test]
fn only_a_segment_with_timestamps_and_without_rst_begins_a_flow() {
    let begins = |tcp: &Tcp| parse(&Network::v4().frame(TCP, &tcp.octets())).unwrap().transport.begins_flow();
    assert_eq!(begins(&Tcp::usual(1, 2)), Ok(()));
    assert_eq!(begins(&Tcp::with_options(&MSS)), Err(Untracked::NoTimestamp));
    assert_eq!(begins(&Tcp { flags: RST | ACK, ..Tcp::usual(1, 2) }), Err(Untracked::NoFlow));
}
