//! Two ends that talk as endpoints do, in order and without loss. An observer may miss some of what they send.

use pping_common::{
    flow::Endpoint,
    limits::{AHEAD, RST_WITHIN, UNKNOWN_WINDOW},
    parse::{Segment, TcpFlags, Timestamps, Transport},
};

use super::input::{ACK, PSH, SYN, empty};

/// Nanoseconds in a tick of the ends' clocks.
const TICK: u64 = 1_000_000;

/// The most bytes that an observer may miss.
pub(super) const MISSED: u32 = 1 << 15;

/// What an end has sent and heard.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// The number of its SYN.
    pub(super) begin: u32,
    /// The number after the last that it sent.
    pub(super) next: u32,
    /// The `TSval` at the time 0.
    pub(super) clock: u32,
    /// The newest `TSval` of the other end.
    pub(super) heard: u32,
    /// As in [`Segment::window_scale`].
    pub(super) scale: u8,
}

/// A connection.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) ends: [End; 2],
    pub(super) client: Endpoint,
    pub(super) has_timestamps: bool,
    /// How many segments have passed, up to those of the handshake.
    passed: u8,
}

impl Connection {
    pub(super) fn new(ends: [End; 2], client: Endpoint, has_timestamps: bool) -> Self {
        Self { ends, client, has_timestamps, passed: 0 }
    }

    /// Whether both ends have sent something, so that an observer knows their numbers.
    pub(super) fn has_numbers(&self) -> bool {
        self.passed >= 2
    }

    /// The next segment: one of the handshake, or `payload` bytes of `from`.
    pub(super) fn next(&mut self, from: Endpoint, payload: u32, now: u64) -> (Endpoint, Transport) {
        let (from, flags, payload) = match self.passed {
            0 => (self.client, SYN, 0),
            1 => (self.client.other(), SYN | ACK, 0),
            2 => (self.client, ACK, 0),
            _ => (from, if payload == 0 { ACK } else { ACK | PSH }, payload),
        };
        self.passed = self.passed.saturating_add(1);
        let mut transport = empty();
        let segment = &mut transport.segment;
        segment.flags = TcpFlags(flags);
        segment.payload = payload;
        let peer = self.ends[from.other() as usize];
        let end = &mut self.ends[from as usize];
        segment.sequence = end.next;
        segment.acknowledgement = if segment.flags.ack() { peer.next } else { 0 };
        if segment.flags.syn() {
            segment.window_scale = end.scale;
        }
        end.next = segment.sequence_end();
        segment.has_timestamps = self.has_timestamps;
        if self.has_timestamps {
            let tsval = end.clock.wrapping_add((now / TICK) as u32);
            segment.timestamps = Timestamps { tsval, tsecr: end.heard };
            self.ends[from.other() as usize].heard = tsval;
        }
        (from, transport)
    }

    /// Whether an endpoint would have reason to take a forged segment: then somebody was lucky, and did to the flow what he
    /// did to the connection.
    pub(super) fn fits(&self, from: Endpoint, segment: &Segment) -> bool {
        let (own, other) = (self.ends[from as usize], self.ends[from.other() as usize]);
        let flags = segment.flags;
        let is_about = |next, number| is_within(next, number, RST_WITHIN + MISSED, RST_WITHIN + MISSED);
        if flags.rst() {
            return is_about(own.next, segment.sequence)
                || is_about(own.begin, segment.sequence)
                || is_about(other.next, segment.acknowledgement);
        }
        if flags.syn() {
            let acknowledges = is_about(other.next, segment.acknowledgement);
            return segment.sequence == own.begin || flags.ack() && acknowledges;
        }
        // What comes next can confirm what is outside of the other end's window.
        if is_about(own.next, segment.sequence) {
            return true;
        }
        self.is_in_window(from, segment.sequence)
            && (!flags.ack() || self.is_in_window(from.other(), segment.acknowledgement))
    }

    /// Whether an end may have sent as much as a forged segment of its says, as far as an observer knows that misses packets.
    pub(super) fn may_be_under_way(&self, from: Endpoint, segment: &Segment) -> bool {
        let number = segment.sequence_end();
        is_within(self.ends[from as usize].next, number, self.window_of(from.other()) + (1 << 20), 2 * MISSED)
    }

    /// The largest window that an end can offer.
    fn window_of(&self, receiver: Endpoint) -> u32 {
        let scale = self.ends[receiver as usize].scale;
        if scale == 0 { UNKNOWN_WINDOW } else { 1 << (15 + scale) }
    }

    /// Whether a number of what `sender` sends is in the largest window that the other end can offer.
    fn is_in_window(&self, sender: Endpoint, number: u32) -> bool {
        let window = self.window_of(sender.other());
        is_within(self.ends[sender as usize].next, number, AHEAD.min(window) + MISSED, window + MISSED)
    }
}

/// Whether a number is at most so far ahead of another, or behind it.
fn is_within(highest: u32, number: u32, ahead: u32, behind: u32) -> bool {
    number.wrapping_sub(highest) <= ahead || highest.wrapping_sub(number) <= behind
}
