//! TCP headers of many kinds, and captures that hold only part of them.

use super::{
    Frame, Golden,
    dialogue::Dialogue,
    pcap::{self, ETHERNET},
};
use crate::frames::{ACK, Ip, PSH, SYN, Tcp, timestamps};

const SACK_PERMITTED: [u8; 2] = [4, 2];
const MSS: [u8; 4] = [2, 4, 5, 180];
const WINDOW_SCALE: [u8; 3] = [3, 3, 7];

pub(super) fn captures() -> Vec<Golden> {
    let capture = |name, frames: Vec<Frame>| Golden::new(name, pcap::nanoseconds(ETHERNET, &frames));
    vec![capture("tcp-options.pcap", options()), capture("snap-lengths.pcap", snap_lengths())]
}

fn with_options(options: &[&[u8]]) -> Tcp {
    Tcp::with_options(options.concat())
}

/// Headers in which the parser finds the timestamps, then headers in which it does not.
fn options() -> Vec<Frame> {
    let layouts: [fn(u32, u32) -> Tcp; 17] = [
        |tsval, tsecr| with_options(&[&timestamps(tsval, tsecr)]),
        |tsval, tsecr| with_options(&[&timestamps(tsval, tsecr), &[1, 1]]),
        |tsval, tsecr| with_options(&[&MSS, &SACK_PERMITTED, &timestamps(tsval, tsecr), &[1], &WINDOW_SCALE]),
        |tsval, tsecr| with_options(&[&MSS, &[1], &WINDOW_SCALE, &SACK_PERMITTED, &timestamps(tsval, tsecr)]),
        |tsval, tsecr| with_options(&[&[1, 1, 1, 5, 18], &[7; 16], &[1], &timestamps(tsval, tsecr)]),
        |tsval, tsecr| with_options(&[&[253, 6, 1, 2, 3, 4], &timestamps(tsval, tsecr)]),
        // The longest possible header.
        |tsval, tsecr| with_options(&[&[1; 30], &timestamps(tsval, tsecr)]),
        // Bytes behind the end of the options do not matter.
        |tsval, tsecr| with_options(&[&timestamps(tsval, tsecr), &[0, 8, 10, 8, 10, 9]]),
        // These headers have no timestamps that the parser finds.
        |_, _| with_options(&[&MSS]),
        |tsval, tsecr| with_options(&[&[0], &timestamps(tsval, tsecr)]),
        |tsval, tsecr| with_options(&[&[253, 0], &timestamps(tsval, tsecr)]),
        |tsval, tsecr| with_options(&[&[253, 1], &timestamps(tsval, tsecr)]),
        |tsval, tsecr| with_options(&[&[253, 40], &timestamps(tsval, tsecr)]),
        // A wrong length ends the search, even the length of the timestamps option itself.
        |tsval, tsecr| with_options(&[&[8, 6, 9, 9, 9, 9], &timestamps(tsval, tsecr)]),
        // The header ends within the option.
        |tsval, tsecr| Tcp { words: Some(7), ..Tcp::stamped(tsval, tsecr) },
        // A header length below the minimum, and one beyond the packet.
        |tsval, tsecr| Tcp { words: Some(4), ..Tcp::stamped(tsval, tsecr) },
        |tsval, tsecr| Tcp { words: Some(15), ..Tcp::stamped(tsval, tsecr) },
    ];
    (0..)
        .zip(layouts)
        .flat_map(|(number, layout)| {
            Dialogue::new(Ip::v4(), number).with_segments(layout).basic().on_ethernet()
        })
        .collect()
}

/// Captures that hold only the first bytes of each frame. The payload's length comes from the IP header, not from the
/// captured bytes.
fn snap_lengths() -> Vec<Frame> {
    let mut frames = Vec::new();
    let headers = 14 + 20 + 32;
    for (number, captured) in
        [(0, headers), (1, headers - 1), (2, 14 + 20 + 20), (3, 14 + 20 + 19), (4, 14 + 20), (5, 14)]
    {
        frames.extend(with_payload(number).into_iter().map(|frame| frame.cut(captured)));
    }
    // All frames of this dialogue except the third are captured to the end of their headers.
    for (index, frame) in with_payload(6).into_iter().enumerate() {
        frames.push(if index == 2 { frame.cut(headers - 4) } else { frame.cut(headers) });
    }
    let ping = Dialogue::new(Ip::v6(), 7).ping().request(80, 2).reply(90, 2).on_ethernet();
    for (index, frame) in ping.into_iter().enumerate() {
        frames.push(frame.cut(14 + 40 + if index < 2 { 8 } else { 7 }));
    }
    frames
}

fn with_payload(number: u16) -> Vec<Frame> {
    Dialogue::new(Ip::v4(), number)
        .client_sends(0, SYN, 0, 1000, 0)
        .server_sends(20, SYN | ACK, 0, 5000, 1000)
        .client_sends(21, ACK | PSH, 1000, 1021, 5000)
        .server_sends(42, ACK, 0, 5022, 1021)
        .server_sends(43, ACK | PSH, 1, 5023, 1021)
        .client_sends(50, ACK, 0, 1050, 5023)
        .on_ethernet()
}
