//! The meaning of an input's bytes. As in [`crate::matching`], the layout is fixed and every field is independent.

use pping_common::{
    flow::Endpoint,
    limits::SECOND,
    method::{Method, Methods},
    parse::{Frame, TcpFlags, Timestamps, Transport},
    rtt::Rules,
};

use super::{
    Packet,
    honest::{Connection, End, MISSED},
};

/// Bytes before the packets: what is measured, the sides, the window scales, padding, and four numbers with which sequences
/// and clocks begin.
pub const HEADER: usize = 20;

/// Bytes of a packet: what it is, TCP's flags, payload, how the clock advances, and four numbers: sequence, acknowledgement,
/// `TSval` and `TSecr`, each as a distance to the right one.
pub const RECORD: usize = 20;

pub(super) const SYN: u8 = 0x02;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

/// Units in ns by which the clock advances, by up to 31 of one.
const STEPS: [u64; 8] = [1, 1_000, 100_000, 1_000_000, 10_000_000, 100_000_000, SECOND, 10 * SECOND];

const TCP: Methods = Methods::NONE.with(Method::TcpHandshake);
const METHODS: [Methods; 4] =
    [Methods::ALL, TCP.with(Method::TcpTs), TCP.with_seq_always(), TCP.with_seq_always().with(Method::TcpTs)];

pub(super) struct Input<'a> {
    pub(super) rules: Rules,
    pub(super) has_two_arms: bool,
    connection: Connection,
    /// The hook where everything that is forged passes: that of the attacker's side.
    attacker: u8,
    records: &'a [[u8; RECORD]],
}

/// A packet that passes.
pub(super) struct Event {
    pub(super) packet: Packet,
    pub(super) is_forged: bool,
    /// Whether the observer misses it.
    pub(super) is_missed: bool,
}

impl<'a> Input<'a> {
    pub(super) fn decode(input: &'a [u8]) -> Option<Self> {
        let (&[what, sides, scales, _, numbers @ ..], records) = input.split_first_chunk::<HEADER>()?;
        let [low_begin, high_begin, low_clock, high_clock] = words(&numbers);
        let end = |begin: u32, clock: u32, scale: u8| {
            // The largest scale is 14 (RFC 7323, 2.3).
            let scale = scale & 15;
            End { begin, next: begin, clock, heard: 0, scale }
        };
        let ends = [end(low_begin, low_clock, scales), end(high_begin, high_clock, scales >> 4)];
        let client = endpoint(sides & 1 != 0);
        let rules = Rules {
            methods: METHODS[usize::from(what & 3)],
            rate_limit: if what & 4 == 0 { 0 } else { SECOND / 10 },
            ..Rules::UNLIMITED
        };
        Some(Self {
            rules,
            has_two_arms: sides & 4 != 0,
            connection: Connection::new(ends, client, what & 8 == 0),
            attacker: hook(endpoint(sides & 2 != 0)),
            records: records.as_chunks().0,
        })
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Event> + use<'_> {
        let (mut now, mut missed) = (SECOND, 0);
        // A number that may be under way is believed once packets are missed. So an input has one or the other.
        let mut has_near = false;
        let mut connection = self.connection.clone();
        self.records.iter().filter_map(move |&[what, flags, size, step, numbers @ ..]| {
            now += u64::from(step & 31) * STEPS[usize::from(step >> 5)];
            let from = endpoint(what & 2 != 0);
            if what & 1 == 0 {
                let is_missed = what & 4 != 0
                    && connection.has_numbers()
                    && !has_near
                    && missed + u32::from(size) < MISSED;
                missed += if is_missed { u32::from(size) } else { 0 };
                let (from, transport) = connection.next(from, size.into(), now);
                let packet = Packet { from, hook: hook(from), now, transport };
                return Some(Event { packet, is_forged: false, is_missed });
            }
            let [own, other] = [connection.ends[from as usize], connection.ends[from.other() as usize]];
            let [sequence, acknowledgement, tsval, tsecr] = words(&numbers);
            let mut transport = empty();
            let segment = &mut transport.segment;
            segment.flags = TcpFlags(flags);
            segment.payload = u32::from(size) * 64;
            segment.sequence = own.next.wrapping_add(sequence);
            segment.acknowledgement = other.next.wrapping_add(acknowledgement);
            segment.has_sack = what & 4 != 0;
            segment.has_timestamps = what & 8 == 0;
            segment.timestamps =
                Timestamps { tsval: other.heard.wrapping_add(tsval), tsecr: own.heard.wrapping_add(tsecr) };
            if segment.flags.syn() {
                segment.window_scale = what >> 4;
            }
            if !connection.has_numbers() || connection.fits(from, segment) {
                return None;
            }
            if connection.may_be_under_way(from, segment) {
                if missed > 0 {
                    return None;
                }
                has_near = true;
            }
            let packet = Packet { from, hook: self.attacker, now, transport };
            Some(Event { packet, is_forged: true, is_missed: false })
        })
    }
}

fn endpoint(is_high: bool) -> Endpoint {
    if is_high { Endpoint::High } else { Endpoint::Low }
}

/// The number of the direction in which packets of an end pass: each is at another side.
fn hook(from: Endpoint) -> u8 {
    from as u8
}

fn words(bytes: &[u8; 16]) -> [u32; 4] {
    let (words, _) = bytes.as_chunks();
    [0, 1, 2, 3].map(|index: usize| words.get(index).map_or(0, |word| u32::from_be_bytes(*word)))
}

/// A segment of the connection without anything in it.
pub(super) fn empty() -> Transport {
    let mut transport = Frame::EMPTY.transport;
    (transport.segment.source_port, transport.segment.destination_port) = (40_000, 443);
    transport
}
