//! When a packet is recorded, how long the recording stays pending, and when a flow ends. Times are in ms.

use super::{
    Frame, Golden,
    dialogue::Dialogue,
    pcap::{self, ETHERNET},
};
use crate::frames::{ACK, FIN, Ip, PSH, RST, SYN, Tcp};

const DATA: u8 = ACK | PSH;
const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;

pub(super) fn captures() -> Vec<Golden> {
    [
        ("segments", vec![ticks(), retransmissions(), delayed_acks(), wrap(), midstream()]),
        ("pending", vec![pending(), echoes()]),
        ("connections", vec![connections(), resets()]),
        ("idle", idle()),
        ("backwards-a-little", vec![a_little_back()]),
        ("backwards", vec![seconds_back()]),
        ("backwards-an-hour", vec![an_hour_back()]),
    ]
    .map(|(name, dialogues)| {
        let mut frames: Vec<Frame> = dialogues.into_iter().flat_map(Dialogue::on_ethernet).collect();
        if name == "idle" {
            frames.sort_by_key(|frame| frame.at);
        }
        Golden::new(&format!("{name}.pcap"), pcap::nanoseconds(ETHERNET, &frames))
    })
    .into()
}

fn new(number: u16) -> Dialogue {
    Dialogue::new(Ip::v4(), number)
}

fn handshake(number: u16) -> Dialogue {
    new(number)
        .client_sends(0, SYN, 0, 1000, 0)
        .server_sends(20, SYN | ACK, 0, 5000, 1000)
        .client_sends(21, ACK, 0, 1021, 5000)
}

/// A segment is recorded only if it is the first of its tick, only once, and never if it is a pure ACK.
fn ticks() -> Dialogue {
    handshake(0)
        .client_sends(22, DATA, 9, 1022, 5000)
        .client_sends(23, DATA, 9, 1022, 5000)
        .server_sends(42, ACK, 0, 5022, 1022)
        .server_sends(43, ACK, 0, 5023, 1022)
        .client_sends(44, ACK, 0, 1044, 5023)
        .client_sends(44, DATA, 9, 1044, 5023)
        .server_sends(64, ACK, 0, 5044, 1044)
}

/// A retransmitted segment has a new TSval, and the echo says which of the two arrived.
fn retransmissions() -> Dialogue {
    handshake(1)
        .client_sends(22, DATA, 9, 1022, 5000)
        .client_sends(222, DATA, 9, 1222, 5000)
        .server_sends(242, ACK, 0, 5222, 1222)
        .server_sends(243, ACK, 0, 5223, 1022)
        .client_sends(250, DATA, 9, 1250, 5222)
        .client_sends(460, DATA, 9, 1460, 5222)
        .server_sends(461, ACK, 0, 5461, 1250)
        .server_sends(480, ACK, 0, 5480, 1460)
}

/// The echo has the TSval of the first segment acknowledged. No other TSval is ever echoed.
fn delayed_acks() -> Dialogue {
    handshake(2)
        .client_sends(22, DATA, 9, 1022, 5000)
        .client_sends(30, DATA, 9, 1030, 5000)
        .server_sends(62, ACK, 0, 5062, 1022)
        .client_sends(70, DATA, 9, 1070, 5062)
        .client_sends(75, DATA, 9, 1075, 5062)
        .client_sends(80, DATA, 9, 1080, 5062)
        .server_sends(90, ACK, 0, 5090, 1075)
        .server_sends(91, ACK, 0, 5091, 1070)
        .server_sends(110, DATA, 9, 5110, 1080)
        .client_sends(112, FIN | ACK, 0, 1112, 5110)
        .server_sends(135, FIN | ACK, 0, 5135, 1112)
        .client_sends(136, ACK, 0, 1136, 5135)
}

fn wrap() -> Dialogue {
    new(3)
        .client_sends(0, SYN, 0, u32::MAX - 1, 0)
        .server_sends(20, SYN | ACK, 0, u32::MAX, u32::MAX - 1)
        .client_sends(21, DATA, 9, u32::MAX, u32::MAX)
        .server_sends(41, DATA, 9, 0, u32::MAX)
        .client_sends(42, DATA, 9, 0, 0)
        .client_sends(43, DATA, 9, 1, 0)
        .server_sends(62, ACK, 0, 3, 0)
        .server_sends(64, ACK, 0, 4, 1)
        // No clock is that fast. A TSval more than half of the number space ahead counts as older.
        .client_sends(70, DATA, 9, 1 << 31 | 1, 4)
        .server_sends(90, ACK, 0, 5, 1 << 31 | 1)
        .client_sends(91, DATA, 9, 1 << 31, 5)
        .server_sends(111, ACK, 0, 6, 1 << 31)
}

/// Without a SYN, the first TSval seen may not be the first of its tick.
fn midstream() -> Dialogue {
    new(4)
        .client_sends(0, DATA, 9, 1000, 4990)
        .client_sends(1, DATA, 9, 1001, 4990)
        .server_sends(20, DATA, 9, 5000, 1000)
        .server_sends(21, DATA, 9, 5001, 1001)
        .client_sends(22, ACK, 0, 1022, 5000)
        .client_sends(23, ACK, 0, 1023, 5001)
}

/// Eight can be pending, and a ninth finds no room. A timestamp that has been pending for 10 s makes room.
fn pending() -> Dialogue {
    let mut dialogue = handshake(0);
    for number in 0..9 {
        dialogue = dialogue.client_sends(100 + 10 * u64::from(number), DATA, 9, 1100 + number, 5000);
    }
    dialogue = dialogue.server_sends(300, ACK, 0, 5300, 1107).server_sends(301, ACK, 0, 5301, 1108);
    for number in 0..9 {
        dialogue = dialogue.client_sends(400 + 10 * u64::from(number), DATA, 9, 1400 + number, 5301);
    }
    dialogue
        .client_sends(10_390, DATA, 9, 11_390, 5301)
        .client_sends(10_405, DATA, 9, 11_405, 5301)
        .server_sends(10_500, ACK, 0, 15_500, 1400)
        .server_sends(10_501, ACK, 0, 15_501, 1401)
        .server_sends(10_502, ACK, 0, 15_502, 11_390)
        .server_sends(10_503, ACK, 0, 15_503, 11_405)
}

fn echoes() -> Dialogue {
    let mut dialogue = new(1).request(0, 1).request(10, 1).reply(20, 1).reply(21, 1).reply(22, 2);
    // The ninth has no room, but repeating a pending one needs none.
    for sequence in 10..19 {
        dialogue = dialogue.request(100 + u64::from(sequence), sequence);
    }
    dialogue = dialogue.request(150, 12);
    for sequence in [18, 17, 12, 10, 16, 11] {
        dialogue = dialogue.reply(200 + u64::from(sequence), sequence);
    }
    dialogue
}

/// The same ports again: nothing of the old connection remains.
fn connections() -> Dialogue {
    handshake(0)
        .client_sends(30, DATA, 9, 1030, 5000)
        .client_sends(1000, SYN, 0, 7, 0)
        .server_sends(1020, SYN | ACK, 0, 8, 7)
        .client_sends(1021, ACK, 0, 9, 8)
        .server_sends(1030, ACK, 0, 10, 1030)
        // A SYN before any other segment counts as a retransmission.
        .client_sends(2000, SYN, 0, 100, 0)
        .client_sends(3000, SYN, 0, 1100, 0)
        .server_sends(3020, SYN | ACK, 0, 9000, 1100)
        .server_sends(3030, SYN | ACK, 0, 9010, 1100)
        .client_sends(3031, ACK, 0, 1131, 9000)
        .client_sends(3032, DATA, 9, 1132, 9010)
        .server_sends(3060, ACK, 0, 9040, 1132)
        // Segments without timestamps neither match nor record.
        .client_sends(3070, DATA, 9, 1170, 9040)
        .segment(3080, false, Tcp { flags: ACK, payload: 0, ..Tcp::with_options([]) })
        .server_sends(3090, ACK, 0, 9070, 1170)
}

fn resets() -> Dialogue {
    new(1)
        // A reset opens no flow.
        .client_sends(0, RST, 0, 990, 0)
        .client_sends(10, SYN, 0, 1000, 0)
        .server_sends(30, RST | ACK, 0, 0, 1000)
        .client_sends(1010, SYN, 0, 900, 0)
        .server_sends(1030, SYN | ACK, 0, 5000, 900)
        .client_sends(1031, DATA, 9, 931, 5000)
        .server_sends(1040, RST | ACK, 0, 5010, 931)
        .server_sends(1051, ACK, 0, 5021, 931)
}

/// Flows that stay idle for just as long as allowed, and for longer.
fn idle() -> Vec<Dialogue> {
    let open = |number| {
        handshake(number).server_sends(40, DATA, 9, 5020, 1021).client_sends(60, DATA, 9, 1060, 5020)
    };
    let closing = |number| {
        handshake(number).client_sends(40, FIN | ACK, 0, 1040, 5000).server_sends(
            50,
            FIN | ACK,
            0,
            5030,
            1021,
        )
    };
    let later = |dialogue: Dialogue, seconds: u64| {
        let at = seconds * SECOND + 60;
        dialogue.server_sends(at, ACK, 0, 90_000, 1040).server_sends(at + 1, ACK, 0, 90_001, 1060)
    };
    let ping = |number, from, to| new(number).request(from, 1).reply(to, 1);
    vec![
        later(closing(0), 9),
        later(closing(100), 12),
        ping(110, 0, 29 * SECOND),
        ping(120, 0, 32 * SECOND),
        new(1000).client_sends(0, SYN, 0, 1000, 0).server_sends(29 * SECOND, SYN | ACK, 0, 5000, 1000),
        new(1300).client_sends(0, SYN, 0, 1000, 0).server_sends(32 * SECOND, SYN | ACK, 0, 5000, 1000),
        // Idle time counts in whole seconds since the first packet: 31 for the first flow, 30 for the second.
        ping(2000, SECOND - 1, 31 * SECOND),
        ping(2400, 1, 31 * SECOND - 1),
        later(open(2500), 299),
        later(open(2510), 302),
    ]
}

/// Time goes back less than a second: nothing expires, and no sample is negative.
fn a_little_back() -> Dialogue {
    handshake(0)
        .client_sends(1000, DATA, 9, 2000, 5000)
        .server_sends(900, ACK, 0, 5900, 2000)
        .server_sends(1010, ACK, 0, 6000, 2000)
        .client_sends(1020, DATA, 9, 2020, 6000)
        .client_sends(500, DATA, 9, 2021, 6000)
        .server_sends(1030, ACK, 0, 6010, 2020)
        .server_sends(1031, ACK, 0, 6011, 2021)
        .request(2000, 1)
        .reply(1990, 1)
        .reply(2010, 1)
}

/// Time goes back more than a second, as in joined files: pending recordings are dropped, and each direction skips its
/// first new TSval.
fn seconds_back() -> Dialogue {
    let again = 10 * SECOND;
    handshake(0)
        .client_sends(again, DATA, 9, 11_000, 5000)
        .request(again, 1)
        .client_sends(100, DATA, 9, 11_001, 5000)
        .reply(100, 1)
        .server_sends(120, DATA, 9, 5100, 11_000)
        .server_sends(121, DATA, 9, 5101, 11_001)
        .client_sends(122, DATA, 9, 11_002, 5100)
        .client_sends(123, DATA, 9, 11_003, 5101)
        .server_sends(142, ACK, 0, 5122, 11_002)
        .server_sends(143, ACK, 0, 5123, 11_003)
        .request(200, 2)
        .reply(220, 2)
}

/// Idle time continues from the earlier time.
fn an_hour_back() -> Dialogue {
    let hour = 60 * MINUTE;
    let dialogue = handshake(0).client_sends(hour, SYN, 0, 70_000, 0).request(hour, 1);
    dialogue
        .request(0, 2)
        .reply(20, 2)
        .request(30, 3)
        .reply(29 * SECOND, 3)
        .request(30 * SECOND, 4)
        .reply(62 * SECOND, 4)
        .request(63 * SECOND, 5)
        .reply(64 * SECOND, 5)
}
