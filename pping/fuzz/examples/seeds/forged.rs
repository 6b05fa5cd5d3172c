//! A short connection, and what somebody forges beside it.

use pping_fuzz::forged::{HEADER, RECORD};

use crate::Seed;

const FORGED: u8 = 1;
const HIGH: u8 = 2;
/// A forged segment without timestamps.
const BARE: u8 = 8;
/// An honest segment that the observer misses.
const MISSED: u8 = 4;

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// How the clock advances: 1 ms, 20 ms and a second.
const MS: u8 = 3 << 5 | 1;
const ROUND_TRIP: u8 = 4 << 5 | 2;
const SECOND: u8 = 6 << 5 | 1;

type Record = [u8; RECORD];

fn record(head: [u8; 4], numbers: [u32; 4]) -> Record {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&head);
    for (bytes, number) in record[4..].chunks_mut(4).zip(numbers) {
        bytes.copy_from_slice(&number.to_be_bytes());
    }
    record
}

fn honest(from: u8, size: u8, step: u8) -> Record {
    record([from, 0, size, step], [0; 4])
}

fn forged(from: u8, flags: u8, numbers: [u32; 4]) -> Record {
    record([FORGED | from, flags, 1, MS], numbers)
}

pub(crate) fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (setting, [what, sides, scales]) in [
        ("all", [0, 0, 0x88]),
        ("bare", [8, 4, 0x88]),
        ("seq", [2, 1, 0x08]),
        ("both", [3, 6, 0]),
        ("limited", [5, 3, 0xff]),
    ] {
        let begin = record([what, sides, scales, 0], [1_000, 0xffff_fff0, 7_000, 0x7fff_ffff]);
        const { assert!(HEADER == RECORD) };
        for (name, lies) in lies() {
            let mut records = vec![begin, honest(0, 0, MS), honest(0, 0, ROUND_TRIP), honest(0, 0, MS)];
            for _ in 0..4 {
                records.push(honest(0, 100, MS));
                records.extend(&lies);
                records.extend([honest(HIGH, 0, ROUND_TRIP), honest(HIGH, 200, MS)]);
                records.extend(&lies);
                records.push(honest(0, 0, SECOND));
            }
            seeds.push((format!("{name}-{setting}"), records.concat()));
        }
    }
    seeds
}

/// Each row of what single forged segments once did.
fn lies() -> Vec<(&'static str, Vec<Record>)> {
    const FAR: u32 = 1 << 31;
    vec![
        ("nothing", Vec::new()),
        ("far", vec![forged(0, ACK, [FAR, 0, 1, 0]), forged(HIGH | BARE, ACK, [FAR, 0, 0, 0])]),
        ("clock", vec![forged(0, ACK, [0, FAR, 1 << 30, 0]), forged(0, ACK, [0, FAR, 3 << 30, 0])]),
        ("missed", vec![forged(HIGH, ACK, [300 << 20, 0, 0, 0]), honest(HIGH | MISSED, 100, MS)]),
        ("rst", vec![forged(HIGH, RST, [FAR, FAR, 0, 0]), forged(HIGH, RST | ACK, [FAR, FAR, 0, 0])]),
        ("syn", vec![forged(HIGH, SYN, [FAR, 0, 1, 0]), forged(HIGH, SYN | ACK, [FAR, FAR, 1, 0])]),
    ]
}
