//! TCP headers and their options.

use std::vec::Vec;

use crate::{
    method::{Method, Methods},
    parse::{Decap, Frame, LinkType, Scope, Segment, TcpFlags, Timestamps, Untracked, Vlan},
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
    parse(&Network::v4().frame(TCP, &tcp.bytes())).unwrap().transport.segment
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
    assert_eq!(tcp.bytes().len(), 32);
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
    // The last byte is a kind that needs a length.
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
    let mut bytes = Tcp { payload: 40, ..Tcp::with_options(&timestamps()[..8]) }.bytes();
    bytes[28..30].copy_from_slice(&[5, 6]);
    let frame = parse(&Network::v4().frame(TCP, &bytes)).unwrap();
    assert_eq!(frame.transport.segment.timestamps(), None);
    assert_eq!(frame.transport.payload(), 40);
}

#[test]
fn of_two_timestamps_the_latter_are_believed() {
    assert_found(&[&Tcp::timestamps(9, 9), &timestamps()]);
    // Unless they are malformed.
    assert_found(&[&timestamps(), &[8, 4, 1, 1]]);
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
        let bytes = Tcp { data_offset: Some(words), ..Tcp::usual(1, 2) }.bytes();
        assert_eq!(parse_anyway(&Network::v4().frame(TCP, &bytes)).1, Err(Untracked::Malformed), "{words}");
    }
}

#[test]
fn data_offset_beyond_the_segment_is_malformed() {
    for words in 9..=15 {
        let tcp = Tcp { data_offset: Some(words), payload: 0, ..Tcp::usual(1, 2) };
        // Even if Ethernet padding fills the gap.
        let bytes: Vec<u8> = [Network::v4().frame(TCP, &tcp.bytes()), Vec::from([1; 60])].concat();
        assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Malformed), "{words}");
    }
}

#[test]
fn segment_shorter_than_its_header_is_malformed() {
    for len in 20..52 {
        let network = Network { len: Some(len), ..Network::v4() };
        let bytes = network.frame(TCP, &Tcp::usual(1, 2).bytes());
        assert_eq!(parse_anyway(&bytes).1, Err(Untracked::Malformed), "{len}");
    }
}

fn begins(methods: Methods, flags: u8, options: &[u8]) -> Result<(), Untracked> {
    let bytes = Tcp { flags, ..Tcp::with_options(options) }.bytes();
    parse(&Network::v4().frame(TCP, &bytes)).unwrap().transport.begins_flow(methods)
}

#[test]
fn t3_by_timestamps_which_segments_begin_a_flow() {
    for methods in [Methods::NONE.with(Method::TcpTs), Methods::ALL.without(Method::TcpSeq)] {
        assert_eq!(begins(methods, ACK, &timestamps()), Ok(()));
        assert_eq!(begins(methods, SYN, &timestamps()), Ok(()));
        assert_eq!(begins(methods, ACK, &MSS), Err(Untracked::NoTimestamp));
        assert_eq!(begins(methods, RST | ACK, &timestamps()), Err(Untracked::NoFlow));
        assert_eq!(begins(methods, RST | ACK, &MSS), Err(Untracked::NoFlow));
    }
}

#[test]
fn t3_by_sequence_numbers_which_segments_begin_a_flow() {
    let methods = Methods::NONE.with(Method::TcpSeq);
    assert_eq!(begins(methods, ACK, &MSS), Ok(()));
    assert_eq!(begins(methods, ACK, &timestamps()), Err(Untracked::NoFlow));
    assert_eq!(begins(methods, RST, &MSS), Err(Untracked::NoFlow));
    assert_eq!(begins(methods.with(Method::TcpTs), ACK, &timestamps()), Ok(()));
}

#[test]
fn t3_by_seq_always_which_segments_begin_a_flow() {
    for methods in [Methods::NONE.with_seq_always(), Methods::ALL.with_seq_always()] {
        assert_eq!(begins(methods, ACK, &MSS), Ok(()));
        assert_eq!(begins(methods, ACK, &timestamps()), Ok(()));
        assert_eq!(begins(methods, RST, &MSS), Err(Untracked::NoFlow));
        assert_eq!(begins(methods, RST, &timestamps()), Err(Untracked::NoFlow));
    }
}

#[test]
fn t3_by_handshakes_a_syn_begins_a_flow() {
    let methods = Methods::NONE.with(Method::TcpHandshake);
    for options in [&MSS[..], &timestamps()] {
        assert_eq!(begins(methods, SYN, options), Ok(()));
        assert_eq!(begins(methods, SYN | ACK, options), Ok(()));
        assert_eq!(begins(methods, SYN | RST, options), Err(Untracked::NoFlow));
    }
    assert_eq!(begins(methods, ACK, &MSS), Err(Untracked::NoTimestamp));
    assert_eq!(begins(methods.with(Method::TcpTs), SYN, &MSS), Ok(()));
    assert_eq!(begins(methods.with(Method::TcpTs), ACK, &MSS), Err(Untracked::NoTimestamp));
}

#[test]
fn segments_are_left_alone_without_a_method_for_them() {
    let bytes = Network::v4().frame(TCP, &Tcp::usual(1, 2).bytes());
    let parsed = |methods| {
        let mut frame = Frame::EMPTY;
        frame.parse(&bytes[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::of(methods))
    };
    for method in [Method::TcpTs, Method::TcpSeq, Method::TcpHandshake] {
        assert_eq!(parsed(Methods::NONE.with(method)), Ok(()));
    }
    assert_eq!(parsed(Methods::NONE.with_seq_always()), Ok(()));
    assert_eq!(parsed(Methods::NONE.with(Method::IcmpEcho).with(Method::Dns)), Err(Untracked::Unsupported));
}

#[test]
fn sequence_and_acknowledgement_numbers() {
    let mut bytes = Tcp::usual(1, 2).bytes();
    bytes[4..12].copy_from_slice(&[0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4]);
    let segment = parse(&Network::v6().frame(TCP, &bytes)).unwrap().transport.segment;
    assert_eq!((segment.sequence, segment.acknowledgement), (0xffff_fffe, 0x0102_0304));
    // The number after 5 bytes of payload has wrapped around.
    assert_eq!(segment.sequence_end(), 3);
}

#[track_caller]
fn assert_sack(options: &[&[u8]], has_sack: bool) {
    assert_eq!(segment(&Tcp::with_options(&options.concat())).has_sack, has_sack, "{options:?}");
}

#[test]
fn s4_sack_is_found_in_any_order_of_options() {
    assert_sack(&[&SACK], true);
    assert_sack(&[&NOP, &NOP, &SACK], true);
    assert_sack(&[&NOP, &NOP, &timestamps(), &NOP, &NOP, &SACK], true);
    assert_sack(&[&NOP, &NOP, &SACK, &NOP, &NOP, &timestamps()], true);
    assert_sack(&[&SACK, &timestamps(), &END], true);
    assert_sack(&[&[253, 4, 1, 1], &SACK], true);
    assert_sack(&[&[1; 30], &SACK], true);
}

#[test]
fn s4_sack_has_one_block_at_least() {
    for (len, has_sack) in [(2, false), (8, false), (9, false), (10, true), (18, true), (34, true)] {
        let mut option = [8; 34];
        (option[0], option[1]) = (5, len);
        assert_sack(&[&option[..len.into()]], has_sack);
    }
    assert_sack(&[&SACK, &[5, 2]], true);
    let two_blocks: Vec<u8> = [&[5, 18][..], &[7; 16]].concat();
    assert_sack(&[&NOP, &NOP, &timestamps(), &NOP, &NOP, &two_blocks], true);
}

#[test]
fn s4_sack_permitted_is_no_sack() {
    assert_sack(&[&SACK_PERMITTED], false);
    assert_sack(&[&MSS, &SACK_PERMITTED, &timestamps(), &NOP, &WINDOW_SCALE], false);
}

#[test]
fn s4_sack_that_cannot_be_is_none() {
    assert_sack(&[&END, &SACK], false);
    assert_sack(&[&[253, 0], &SACK], false);
    assert_sack(&[&[253, 41], &SACK], false);
    // The header ends before the option does.
    for len in [4, 8] {
        assert_sack(&[&SACK[..len]], false);
        assert_sack(&[&NOP, &NOP, &SACK[..len - 2]], false);
    }
    assert_sack(&[&[5, 255], &[1; 8]], false);
    // Options after timestamps of a wrong length are not trusted.
    assert_sack(&[&[8, 9, 0, 0, 0, 0, 0, 0, 0], &SACK], false);
}

#[test]
fn sack_of_an_earlier_segment_is_not_seen() {
    let with = Network::v4().frame(TCP, &Tcp::with_options(&SACK).bytes());
    let usual = [&[1, 1][..], &timestamps()].concat();
    for options in [&usual[..], &[], &MSS, &timestamps()] {
        let without = Network::v4().frame(TCP, &Tcp::with_options(options).bytes());
        let mut frame = parse(&with).unwrap();
        assert!(frame.transport.segment.has_sack);
        let parsed = frame.parse(&without[..], LinkType::Ethernet, Vlan::NONE, Decap::NONE, &Scope::ALL);
        assert_eq!((parsed, frame.transport.segment.has_sack), (Ok(()), false));
    }
}
