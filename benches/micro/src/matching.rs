//! Matches packets of a known flow, as replay does.

use std::hint::black_box;

use pping_common::{
    flow::{Endpoint, Flow, Outcome},
    parse::{Direction, Frame, Kind, QuicForm, TcpFlags, Transport},
    rtt::{PossibleChange, Rules},
};

use super::{
    Case,
    frames::{self, From, Version},
};

/// A millisecond in ns, which is a tick of most hosts.
const MS: u64 = 1_000_000;

const PAYLOAD: u32 = 1448;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        seen_tick(),
        exchange("match a new TSval and its echo, both packets", true),
        exchange("match a segment and its acknowledgement, both packets", false),
        echoes(),
        spin(),
    ]
}

/// A flow and its clock.
struct Conversation {
    flow: Flow,
    rules: Rules,
    now: u64,
}

impl Conversation {
    fn new() -> Self {
        Self { flow: Flow::EMPTY, rules: Rules::UNLIMITED, now: MS }
    }

    /// Handles a packet as replay does once it has found the flow.
    #[inline]
    fn packet(&mut self, from: Endpoint, transport: &Transport) -> Option<Outcome> {
        let counted = self.flow.count(from, transport, 0, Direction::Ingress as u8);
        if self.flow.possible_change(from, transport, counted, &self.rules) == PossibleChange::Nothing {
            return None;
        }
        Some(self.flow.step(from, transport, counted.progress, self.now, &self.rules))
    }

    /// Handles a packet of each endpoint.
    #[inline]
    fn both(&mut self, packets: &[Frame; 2]) -> Option<Outcome> {
        black_box(self.packet(Endpoint::Low, black_box(&packets[0].transport)));
        self.now += MS;
        self.packet(Endpoint::High, black_box(&packets[1].transport))
    }
}

/// Most packets: their timestamps bring nothing new.
fn seen_tick() -> Case {
    let name = "match a segment of a tick that was seen";
    let mut talk = Conversation::new();
    let mut packets = segments(true);
    talk.both(&packets);
    // Their clocks have to advance once: a clock that stands still is watched under the lock.
    for packet in &mut packets {
        packet.transport.segment.timestamps.tsval += 1;
    }
    talk.both(&packets);
    let mut step = move || {
        let segment = &mut packets[0].transport.segment;
        segment.sequence = segment.sequence.wrapping_add(PAYLOAD);
        talk.packet(Endpoint::Low, black_box(&packets[0].transport))
    };
    assert!(step().is_none(), "{name}");
    Case::new(name, move || {
        black_box(step());
    })
}

fn exchange(name: &'static str, has_timestamps: bool) -> Case {
    let mut talk = Conversation::new();
    let mut packets = segments(has_timestamps);
    let step = move || {
        let [data, ack] = &mut packets;
        let (data, ack) = (&mut data.transport.segment, &mut ack.transport.segment);
        data.sequence = data.sequence.wrapping_add(PAYLOAD);
        ack.acknowledgement = data.sequence.wrapping_add(PAYLOAD);
        data.timestamps.tsval = data.timestamps.tsval.wrapping_add(1);
        ack.timestamps.tsecr = data.timestamps.tsval;
        talk.both(&packets)
    };
    sampled(name, step)
}

/// A case in which each step gives a sample, once it is known how the flow is measured.
fn sampled(name: &'static str, mut step: impl FnMut() -> Option<Outcome> + 'static) -> Case {
    for _ in 0..100 {
        step();
    }
    assert!(step().is_some_and(|outcome| outcome.measured.has_sample), "{name}");
    Case::new(name, move || {
        black_box(step());
    })
}

/// Data from the lower endpoint, and a pure ACK from the higher one.
fn segments(has_timestamps: bool) -> [Frame; 2] {
    let timestamps = has_timestamps.then_some((7_000, 5_000));
    [(From::Client, PAYLOAD), (From::Server, 0)].map(|(from, payload)| {
        let mut frame = frames::parsed(&frames::segment(Version::V4, from, timestamps, payload as usize));
        frame.transport.segment.flags = TcpFlags(0x10);
        frame
    })
}

fn echoes() -> Case {
    let name = "match an echo request and its reply, both packets";
    let mut talk = Conversation::new();
    let mut packets = segments(false);
    for packet in &mut packets {
        packet.transport.kind = Kind::Echo;
    }
    packets[1].transport.echo.is_reply = true;
    let step = move || {
        for packet in &mut packets {
            packet.transport.echo.sequence = packet.transport.echo.sequence.wrapping_add(1);
        }
        talk.both(&packets)
    };
    sampled(name, step)
}

/// A client that spins, and a server that reflects.
fn spin() -> Case {
    let name = "match a turn of the spin bit, both packets";
    let mut talk = Conversation::new();
    let mut packets = [(); 2].map(|()| frames::parsed(&frames::quic_initial()));
    let [initial, answer] = &mut packets;
    let quic = &mut answer.transport.datagram.quic;
    quic.destination_id = initial.transport.datagram.quic.source_id;
    talk.both(&packets);
    for packet in &mut packets {
        packet.transport.datagram.quic.form = QuicForm::Short;
    }
    let step = move || {
        let [client, server] = &mut packets;
        let spin = !server.transport.datagram.quic.spin;
        client.transport.datagram.quic.spin = spin;
        server.transport.datagram.quic.spin = spin;
        talk.both(&packets)
    };
    sampled(name, step)
}
