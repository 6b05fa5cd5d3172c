//! Conversations that exercise a flow's state.

use pping_fuzz::matching::{HEADER, RECORD};

use crate::Seed;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// The high endpoint of the first flow.
const HIGH: u8 = 4;
const ECHO: u8 = 4 << 3;
const CONTROL: u8 = 7 << 3;
/// A segment without timestamps.
const BARE: u8 = 0x80;
/// A segment with SACK blocks.
const SACK: u8 = 0x40;

/// How the clock advances.
const AT_ONCE: u8 = 0;
const MS: u8 = 2 << 3 | 1;
const TENTH: u8 = 3 << 3 | 1;
const SECOND: u8 = 4 << 3 | 1;
const TEN_SECONDS: u8 = 5 << 3 | 2;
const BACK: u8 = 0xc0;

/// Kind, flags, size, carried identifier, echoed identifier, and how the clock advanced before.
type Record = [u8; RECORD];

pub(crate) fn seeds() -> Vec<Seed> {
    const PLAIN: [u8; HEADER] = [0, 0, 0, 0, 0, 0, 0x10, 0];
    const AT_WRAP: [u8; HEADER] = [0, 0, 0, 2, 0xff, 0xff, 0xff, 0xfe];
    const LIMITED: [u8; HEADER] = [0b0110, 1, 0, 1, 0, 0, 0, 0];
    const LOCAL: [u8; HEADER] = [0, 0, 0b0110, 0x81, 0, 0, 0, 0];
    const ALL_LOCAL: [u8; HEADER] = [0b1001, 2, 0b0110, 0x81, 0, 0, 0, 0];
    // Sequence numbers for flows without timestamps, for all flows, and beside timestamps.
    const AUTO: [u8; HEADER] = [0, 5 << 2, 0, 0, 0, 0, 0x10, 0];
    const SEQ: [u8; HEADER] = [0, 2 << 2, 0, 0, 0xff, 0xff, 0xff, 0x80];
    const BOTH: [u8; HEADER] = [0, 7 << 2, 0, 0, 0, 0, 0x10, 0];
    let mut seeds = Vec::new();
    for (rules, header) in [
        ("plain", PLAIN),
        ("at-wrap", AT_WRAP),
        ("limited", LIMITED),
        ("local", LOCAL),
        ("all-local", ALL_LOCAL),
        ("auto", AUTO),
        ("seq", SEQ),
        ("both", BOTH),
    ] {
        for (name, conversation) in conversations() {
            seeds.push((format!("{name}-{rules}"), [&header[..], &conversation.concat()].concat()));
        }
    }
    seeds
}

fn conversations() -> Vec<(&'static str, Vec<Record>)> {
    let handshake = vec![
        [0, SYN, 0, 1, 0, MS],
        [HIGH, SYN | ACK, 0, 1, 0, MS],
        [0, ACK, 0, 1, 0, MS],
        [0, ACK, 100, 1, 0, MS],
        [HIGH, ACK, 0, 1, 0, TENTH],
        [HIGH, ACK, 100, 1, 0, MS],
        [0, FIN | ACK, 0, 1, 0, MS],
        [HIGH, FIN | ACK, 0, 1, 0, MS],
        [0, ACK, 0, 1, 0, MS],
        [0, SYN, 0, 1, 0, MS],
        [HIGH, RST | ACK, 0, 1, 0, MS],
        [0, BARE, 0, 0, 0, MS],
    ];
    let mut full = vec![[0, SYN, 0, 1, 0, MS]; 9];
    full.extend([[0, ACK, 1, 1, 0, TEN_SECONDS], [HIGH, ACK, 1, 1, 3, SECOND], [HIGH, ACK, 1, 1, 0, SECOND]]);
    let mut pings: Vec<Record> = (0..10).map(|sequence| [ECHO, 0, 56, sequence, 0, MS]).collect();
    pings.extend([3, 3, 0, 20].map(|sequence| [ECHO | HIGH, 1, 56, sequence, 0, SECOND]));
    pings.extend([[ECHO, 0, 56, 5, 0, MS], [ECHO | HIGH, 1, 56, 5, 0, TEN_SECONDS]]);
    let unsteady = vec![
        [0, SYN, 0, 1, 0, SECOND],
        [HIGH, SYN | ACK, 0, 1, 0, BACK | MS],
        [0, ACK, 9, 1, 0, BACK | SECOND],
        [HIGH, ACK, 9, 64, 0, TENTH],
        [CONTROL, 2, 3, 0, 0, AT_ONCE],
        [0, ACK, 9, 127, 0, MS],
        [HIGH, ACK, 9, 1, 0, MS],
        [0, ACK, 9, 1, 0, MS],
    ];
    let unseen = vec![
        [0, ACK, 9, 1, 0, MS],
        [HIGH, ACK, 9, 1, 0, MS],
        [0, ACK, 9, 1, 0, MS],
        [CONTROL, 0, 0, 0, 0, MS],
        [HIGH, ACK, 9, 1, 0, MS],
        [0, ACK, 9, 1, 0, MS],
        [CONTROL, 3, 15, 0, 0, MS],
        [HIGH, ACK, 9, 1, 0, MS],
        [CONTROL, 3, 151, 0, 0, MS],
        [0, ACK, 9, 1, 0, MS],
    ];
    let bare = vec![
        [BARE, SYN, 0, 1, 0, MS],
        [BARE, SYN, 0, 0, 0, SECOND],
        [BARE | HIGH, SYN | ACK, 10, 1, 0, MS],
        [BARE, ACK, 0, 1, 0, MS],
        [BARE, ACK, 100, 1, 0, MS],
        [BARE, ACK, 100, 1, 0, MS],
        [BARE, ACK, 100, 1, 0, MS],
        [BARE | HIGH, ACK, 0, 1, 0xec, TENTH],
        [BARE | HIGH | SACK, ACK, 0, 1, 0xf6, MS],
        // Half of this segment's payload is sent again.
        [BARE, ACK, 100, 0xfc, 0, SECOND],
        [BARE | HIGH, ACK, 30, 1, 0, TENTH],
        [BARE, FIN | ACK, 0, 1, 0, MS],
        [BARE, SYN, 0, 20, 0, MS],
        [BARE | HIGH, RST | ACK, 0, 1, 0, MS],
    ];
    vec![
        ("bare", bare),
        ("handshake", handshake),
        ("full", full),
        ("pings", pings),
        ("unsteady", unsteady),
        ("unseen", unseen),
    ]
}
