//! What passes again: retransmissions within a tick, copies, handshakes of a mirror, ports that are reused. And timestamps
//! that cannot be used.

use super::{
    Frame, Golden,
    dialogue::Dialogue,
    pcap::{self, ETHERNET},
};
use crate::frames::{ACK, FIN, Ip, PSH, SYN, Tcp};

const MICROSECOND: u64 = 1_000;

pub(in crate::replay) fn captures() -> Vec<Golden> {
    let capture = |name, frames: Vec<Frame>| Golden::new(name, pcap::nanoseconds(ETHERNET, &frames));
    vec![
        capture("sent-again.pcap", sent_again()),
        capture("copies.pcap", copies()),
        capture("ports-reused.pcap", ports_reused()),
        capture("unusable-timestamps.pcap", unusable_timestamps()),
    ]
}

fn shaken(number: u16) -> Dialogue {
    Dialogue::new(Ip::v4(), number)
        .client_sends(0, SYN, 0, 1000, 0)
        .server_sends(1, SYN | ACK, 0, 5000, 1000)
        .client_sends(2, ACK, 0, 1002, 5000)
}

/// A segment of the client of `payload` bytes at this many bytes behind its SYN.
fn bytes_from(offset: u32, payload: usize, flags: u8, tsval: u32) -> Tcp {
    Tcp { flags, sequence: 100_001 + offset, acknowledgement: 500_001, payload, ..Tcp::stamped(tsval, 5000) }
}

/// Data that is lost, and what its sender sends after 5 ms in the same tick.
fn sent_again() -> Vec<Frame> {
    let again =
        [(0, 100, ACK | PSH), (100, 100, ACK), (50, 100, ACK), (199, 1, ACK), (199, 0, ACK), (150, 200, ACK)];
    let mut frames = Vec::new();
    for (number, (offset, payload, flags)) in (0..).zip(again) {
        let dialogue = shaken(number)
            .client_sends(20, ACK | PSH, 100, 1020, 5000)
            .client_sends(20, ACK | PSH, 100, 1020, 5000)
            .segment(25, true, bytes_from(offset, payload, flags, 1020))
            .server_sends(26, ACK, 0, 5026, 1020)
            .client_sends(40, ACK | PSH, 100, 1040, 5026)
            .server_sends(42, ACK, 0, 5042, 1040);
        frames.extend(dialogue.on_ethernet());
    }
    // The clock has ticked twice a second; then a FIN, and an ACK, which is no segment sent again.
    let slow = shaken(7)
        .client_sends(20, ACK | PSH, 100, 1020, 5000)
        .segment(90, true, bytes_from(0, 100, ACK, 1020))
        .server_sends(91, ACK, 0, 5090, 1020);
    let fin = shaken(8)
        .client_sends(20, FIN | ACK, 0, 1020, 5000)
        .segment(30, true, bytes_from(0, 0, FIN | ACK, 1020))
        .server_sends(31, ACK, 0, 5031, 1020);
    let ack = shaken(9)
        .client_sends(20, ACK | PSH, 100, 1020, 5000)
        .client_sends(25, ACK, 0, 1020, 5000)
        .server_sends(26, ACK, 0, 5026, 1020);
    for dialogue in [slow, fin, ack] {
        frames.extend(dialogue.on_ethernet());
    }
    frames
}

/// Adds a copy of each frame some microseconds later.
fn doubled(frames: Vec<Frame>, later: u64) -> Vec<Frame> {
    frames
        .into_iter()
        .flat_map(|frame| [frame.clone(), Frame { at: frame.at + later * MICROSECOND, ..frame }])
        .collect()
}

/// Adds the first frames once more, `later` ms after the last frame, with 6 us between two of them.
fn once_more(mut frames: Vec<Frame>, count: usize, later: u64) -> Vec<Frame> {
    let begin = frames[frames.len() - 1].at + later * 1_000 * MICROSECOND;
    for index in 0..count {
        frames.push(Frame { at: begin + 6 * index as u64 * MICROSECOND, ..frames[index].clone() });
    }
    frames
}

fn copies() -> Vec<Frame> {
    let basic = |number: u16| {
        shaken(number)
            .client_sends(20, ACK | PSH, 100, 1020, 5000)
            .server_sends(23, ACK | PSH, 50, 5023, 1020)
            .client_sends(24, ACK, 0, 1024, 5023)
    };
    let mut frames = Vec::new();
    for (number, later) in (0..).zip([5, 900, 1_500]) {
        frames.extend(doubled(basic(number).on_ethernet(), later));
    }
    // The handshake, or all, once more.
    for (number, count) in [(3, 3), (4, 6), (5, 1), (6, 2)] {
        frames.extend(once_more(basic(number).on_ethernet(), count, 6));
    }
    let without = |number: u16| {
        let bare = |_, _| Tcp::with_options([]);
        Dialogue::new(Ip::v6(), number).with_segments(bare).basic()
    };
    frames.extend(once_more(without(7).on_ethernet(), 3, 6));
    frames.sort_by_key(|frame| frame.at);
    frames
}

fn ports_reused() -> Vec<Frame> {
    let syn = |sequence, tsval| Tcp { flags: SYN, sequence, payload: 0, ..Tcp::stamped(tsval, 0) };
    let mut frames = Vec::new();
    for (number, (sequence, tsval)) in
        (0..).zip([(900, 2_000_000_000), (99_999, 50_000), (3_000_000_000, 2_000)])
    {
        // The unanswered SYN is sent twice.
        let dialogue = Dialogue::new(Ip::v4(), number)
            .segment(0, true, syn(sequence, tsval))
            .segment(20, true, syn(sequence, tsval + 20))
            .client_sends(50, SYN, 0, 1000, 0)
            .server_sends(55, SYN | ACK, 0, 5000, 1000)
            .client_sends(56, ACK | PSH, 100, 1056, 5000)
            .server_sends(61, ACK, 0, 5061, 1056);
        frames.extend(dialogue.on_ethernet());
    }
    frames.sort_by_key(|frame| frame.at);
    frames
}

/// Data every 300 ms of both ends, whose timestamps come from two functions of the time in ms.
fn turns(number: u16, clocks: [fn(u32) -> Option<u32>; 2]) -> Vec<Frame> {
    let mut dialogue = Dialogue::new(Ip::v4(), number);
    let mut heard = [0; 2];
    let mut send = |dialogue: Dialogue, at: u32, from: usize, flags, payload| {
        let tsval = clocks[from](at);
        let tsecr = heard[from];
        heard[1 - from] = tsval.unwrap_or(heard[1 - from]);
        let make: fn(u32, u32) -> Tcp =
            if tsval.is_some() { Tcp::stamped } else { |_, _| Tcp::with_options([]) };
        let dialogue = dialogue.with_segments(make);
        let stamp = tsval.unwrap_or_default();
        if from == 0 {
            dialogue.client_sends(at.into(), flags, payload, stamp, tsecr)
        } else {
            dialogue.server_sends(at.into(), flags, payload, stamp, tsecr)
        }
    };
    dialogue = send(dialogue, 0, 0, SYN, 0);
    dialogue = send(dialogue, 20, 1, SYN | ACK, 0);
    dialogue = send(dialogue, 21, 0, ACK, 0);
    for at in (300..3_600).step_by(300) {
        dialogue = send(dialogue, at, 0, ACK | PSH, 10);
        dialogue = send(dialogue, at + 20, 1, ACK | PSH, 10);
        dialogue = send(dialogue, at + 21, 0, ACK, 0);
    }
    dialogue.on_ethernet()
}

fn unusable_timestamps() -> Vec<Frame> {
    let ticking: fn(u32) -> Option<u32> = |at| Some(7_000 + at);
    let zero: fn(u32) -> Option<u32> = |_| Some(0);
    let constant: fn(u32) -> Option<u32> = |_| Some(4_711);
    let stops: fn(u32) -> Option<u32> = |at| (at < 1_500).then_some(7_000 + at);
    let in_handshake: fn(u32) -> Option<u32> = |at| (at < 100).then_some(7_000 + at);
    let pauses: fn(u32) -> Option<u32> = |at| (!(1_500..2_500).contains(&at)).then_some(7_000 + at);
    let turns_zero: fn(u32) -> Option<u32> = |at| Some(if at < 1_500 { 7_000 + at } else { 0 });
    let slow: fn(u32) -> Option<u32> = |at| Some(at / 500);
    let clocks = [
        [zero, zero],
        [ticking, zero],
        [constant, ticking],
        [in_handshake, in_handshake],
        [stops, stops],
        [ticking, stops],
        [pauses, pauses],
        [turns_zero, ticking],
        [slow, slow],
    ];
    let mut frames: Vec<Frame> =
        (0..).zip(clocks).flat_map(|(number, clocks)| turns(number, clocks)).collect();
    frames.sort_by_key(|frame| frame.at);
    frames
}
