//! The meaning of an input's bytes. The layout is fixed and every field is independent. So inputs keep their meaning,
//! can be written by hand, and change little when the fuzzer changes a byte.

use pping_common::{
    flow::Endpoint,
    limits::{LATEST, SECOND},
    method::{Method, Methods},
    parse::{Frame, Kind, TcpFlags, Timestamps, Transport},
    rtt::{RttBasis, Rules},
};

/// The number of flows.
pub const FLOWS: usize = 4;

/// Bytes before the events: limits, their basis and the methods, local addresses, the clock's start, and the first
/// `TSval`.
pub const HEADER: usize = 8;

/// Bytes of an event: kind, flags, size, carried identifier, echoed identifier, and how the clock advances.
pub const RECORD: usize = 6;

/// Units in ns by which the clock advances. A step is a small multiple of one of them.
const STEPS: [u64; 8] = [1, 1_000, 1_000_000, 100_000_000, SECOND, 5 * SECOND, 1 << 40, 1 << 61];
const RATE_LIMITS: [u64; 4] = [0, 20_000_000, 100_000_000, SECOND];
const RTT_RATES: [u64; 4] = [0, 1 << 15, 3 << 16, 0x00ff_ffff];
const ONLY_TS: Methods = Methods::NONE.with(Method::IcmpEcho).with(Method::TcpTs);
const ONLY_SEQ: Methods = Methods::NONE.with(Method::IcmpEcho).with_seq_always();
const METHODS: [Methods; 8] = [
    ONLY_TS,
    ONLY_TS.with(Method::TcpSeq),
    ONLY_SEQ,
    ONLY_SEQ.with(Method::TcpTs),
    ONLY_TS.with(Method::TcpHandshake),
    ONLY_TS.with(Method::TcpSeq).with(Method::TcpHandshake),
    ONLY_SEQ.with(Method::TcpHandshake),
    ONLY_SEQ.with(Method::TcpTs).with(Method::TcpHandshake),
];
const STARTS: [u64; 3] = [1, 1_000 * SECOND, LATEST - 30 * SECOND];

pub(super) struct Input<'a> {
    pub(super) rules: Rules,
    pub(super) local: [u32; FLOWS],
    pub(super) sweeps: u32,
    start: u64,
    first_tsval: u32,
    records: &'a [[u8; RECORD]],
}

pub(super) enum Event {
    Packet {
        flow: usize,
        from: Endpoint,
        now: u64,
        transport: Transport,
    },
    /// A packet of a flow passed unseen.
    Contention {
        flow: usize,
    },
    ClockSetBack,
    Sweep {
        seconds: u32,
    },
}

impl<'a> Input<'a> {
    pub(super) fn decode(input: &'a [u8]) -> Option<Self> {
        let (&[limits, basis, local, start, first_tsval @ ..], records) =
            input.split_first_chunk::<HEADER>()?;
        let rules = Rules {
            rate_limit: RATE_LIMITS[usize::from(limits % 4)],
            rtt_rate: RTT_RATES[usize::from(limits / 4 % 4)],
            rtt_basis: if basis & 1 == 0 { RttBasis::Smoothed } else { RttBasis::Min },
            include_local: basis & 2 != 0,
            copy_within: if basis & 0x20 == 0 { Rules::UNLIMITED.copy_within } else { 0 },
            methods: METHODS[usize::from(basis >> 2 & 7)],
            ..Rules::UNLIMITED
        };
        Some(Self {
            rules,
            local: [0, 2, 4, 6].map(|shift| u32::from(local >> shift & 3)),
            sweeps: if start & 0x80 == 0 { 0 } else { u32::MAX - 20 },
            start: STARTS[usize::from(start & 0x7f) % STARTS.len()],
            first_tsval: u32::from_be_bytes(first_tsval),
            records: records.as_chunks().0,
        })
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Event> + use<'_> {
        let mut now = self.start;
        // For each endpoint of each flow, the TSval that its next ones will be near.
        let mut clocks = [[self.first_tsval; 2]; FLOWS];
        // For each endpoint of each flow, the sequence number after its last.
        let mut ends = [[self.first_tsval; 2]; FLOWS];
        self.records.iter().map(move |&[what, flags, size, carried, echoed, step]| {
            now = moved(now, step);
            let flow = usize::from(what) % FLOWS;
            let from = if what & 4 == 0 { Endpoint::Low } else { Endpoint::High };
            let mut transport = empty(flow as u16);
            match what >> 3 & 7 {
                0..=3 => {
                    let (mine, other) = (from as usize, from.other() as usize);
                    clocks[flow][mine] = near(clocks[flow][mine], carried);
                    let segment = &mut transport.segment;
                    segment.flags = TcpFlags(flags);
                    segment.payload = size.into();
                    segment.has_timestamps = what & 0x80 == 0;
                    segment.timestamps =
                        Timestamps { tsval: clocks[flow][mine], tsecr: near(clocks[flow][other], echoed) };
                    // If the TSval advances by one tick, the segment begins where the last one ended.
                    segment.sequence = around(ends[flow][mine], carried.wrapping_sub(1));
                    segment.acknowledgement = around(ends[flow][other], echoed);
                    segment.has_sack = what & 0x40 != 0;
                    if segment.flags.syn() {
                        segment.window_scale = size % 16;
                    }
                    ends[flow][mine] = segment.sequence_end();
                }
                4..=6 => {
                    transport.kind = Kind::Echo;
                    transport.echo.sequence = u16::from_be_bytes([echoed & 1, carried]);
                    transport.echo.is_reply = flags & 1 != 0;
                    transport.echo.payload = size.into();
                }
                _ => return control(flags, size, flow, &mut now),
            }
            Event::Packet { flow, from, now, transport }
        })
    }
}

fn control(flags: u8, size: u8, flow: usize, now: &mut u64) -> Event {
    match flags % 4 {
        0 | 1 => Event::Contention { flow },
        2 => {
            *now = 1 + u64::from(size) * SECOND;
            Event::ClockSetBack
        }
        _ => Event::Sweep { seconds: u32::from(size) * 2 },
    }
}

/// Returns the time after a step. A quarter of all steps go backwards.
fn moved(now: u64, step: u8) -> u64 {
    let by = u64::from(step & 7).saturating_mul(STEPS[usize::from(step >> 3 & 7)]);
    if step >> 6 == 3 { now.saturating_sub(by).max(1) } else { now.saturating_add(by).min(LATEST) }
}

/// Returns a TSval near another: a few ticks before or after it, or a large part of the number space away.
fn near(clock: u32, distance: u8) -> u32 {
    let distance = i32::from(distance as i8);
    clock.wrapping_add_signed(if distance.abs() < 64 { distance } else { distance << 25 })
}

/// Returns a sequence number near another: some bytes before or after it, or a large part of the number space away.
fn around(number: u32, distance: u8) -> u32 {
    let distance = i32::from(distance as i8);
    number.wrapping_add_signed(if distance.abs() < 64 { distance * 10 } else { distance << 25 })
}

fn empty(id: u16) -> Transport {
    let mut transport = Frame::EMPTY.transport;
    (transport.segment.source_port, transport.segment.destination_port) = (40_000, 443);
    transport.echo.id = id;
    transport
}
