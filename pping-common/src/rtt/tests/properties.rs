//! The state machine against the model, and what holds whatever is sent.

use std::{vec, vec::Vec};

use proptest::{collection::vec, prelude::*};

use super::model::Model;
use crate::{
    flow::{Flow, Side},
    parse::{TcpFlags, Transport},
    rtt::{Basis, Rules},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, reply, request, segment},
};

/// A packet to be: its fields are relative to what was sent before.
#[derive(Clone, Debug)]
struct Packet {
    from: Side,
    wait_ms: u64,
    flags: u8,
    payload: u32,
    has_timestamps: bool,
    /// How far the sender's clock went on.
    ticks: u32,
    /// How far its `TSval` is behind its clock, by reordering.
    behind: u32,
    /// How far its `TSecr` is from the other's clock.
    echo_behind: u32,
    /// Whether a packet went by unseen before.
    is_after_a_gap: bool,
}

fn packet() -> impl Strategy<Value = Packet> {
    let side = prop_oneof![Just(Side::Low), Just(Side::High)];
    let wait = prop_oneof![12 => 1..40_u64, 2 => 40..300_u64, 1 => 2000..11_000_u64];
    let flags = prop_oneof![
        20 => Just(ACK),
        10 => Just(PSH | ACK),
        2 => Just(SYN),
        2 => Just(SYN | ACK),
        2 => Just(FIN | ACK),
        1 => Just(RST),
        1 => Just(RST | ACK),
        2 => Just(PSH),
    ];
    let payload = prop_oneof![Just(0), Just(100)];
    let ticks = prop_oneof![3 => Just(0), 5 => Just(1), 2 => Just(2)];
    let behind = prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(3)];
    let echo_behind = prop_oneof![3 => Just(0), 2 => 1..4_u32, 2 => 4..12_u32, 1 => Just(u32::MAX)];
    let rare = proptest::bool::weighted(0.04);
    (side, wait, flags, payload, rare, ticks, behind, echo_behind, rare).prop_map(
        |(from, wait_ms, flags, payload, lacks, ticks, behind, echo_behind, is_after_a_gap)| Packet {
            from,
            wait_ms,
            flags,
            payload,
            has_timestamps: !lacks,
            ticks,
            behind,
            echo_behind,
            is_after_a_gap,
        },
    )
}

/// Mostly the flags of the packet itself; now and then any.
fn odd_flags() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![4 => Just(None), 1 => any::<u8>().prop_map(Some)]
}

fn rules() -> impl Strategy<Value = Rules> {
    let limit = prop_oneof![2 => Just(0), 1 => Just(20 * MS), 1 => Just(100 * MS)];
    let rate = prop_oneof![2 => Just(0), 1 => Just(1 << 15), 1 => Just(1 << 16), 1 => Just(3 << 16)];
    let basis = prop_oneof![Just(Basis::Smoothed), Just(Basis::Min)];
    (limit, rate, basis, any::<bool>()).prop_map(|(rate_limit, rtt_rate, rtt_basis, include_local)| Rules {
        rate_limit,
        rtt_rate,
        rtt_basis,
        include_local,
        ..Rules::UNLIMITED
    })
}

fn local() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(3)]
}

/// The packets as segments with absolute clocks, each with its sender and its time in ns.
fn segments(packets: &[Packet], mut clocks: [u32; 2]) -> Vec<(Side, u64, Transport)> {
    let mut now = 0;
    let mut segments = Vec::new();
    for packet in packets {
        now += packet.wait_ms * MS;
        let (mine, other) = (packet.from as usize, packet.from.other() as usize);
        clocks[mine] = clocks[mine].wrapping_add(packet.ticks);
        let tsval = clocks[mine].wrapping_sub(packet.behind);
        let tsecr = clocks[other].wrapping_sub(packet.echo_behind);
        let mut transport = segment(packet.flags, packet.payload, tsval, tsecr);
        transport.segment.has_timestamps = packet.has_timestamps;
        segments.push((packet.from, now, transport));
    }
    segments
}

fn conversation(rules: Rules, local: u32) -> Conversation {
    Conversation { flow: Flow { local, ..Flow::EMPTY }, rules }
}

/// Sends packets past a flow and the model, which must agree after each.
fn assert_as_the_model(
    packets: &[(Side, u64, Transport)],
    gaps: &[bool],
    rules: Rules,
    local: u32,
) -> Result<(), TestCaseError> {
    let mut talk = conversation(rules, local);
    let mut model = Model::new(rules, local);
    for (&(from, now, transport), &is_after_a_gap) in packets.iter().zip(gaps) {
        if is_after_a_gap {
            talk.flow.contended = 1;
            model.miss();
        }
        let measured = talk.packet(from, now, &transport).measured;
        let sample = measured.sample().map(|sample| (sample.identifier, sample.rtt));
        let expected = model.packet(from as usize, &transport, now);
        prop_assert_eq!((sample, measured.slots_full), expected, "at {} ms, {:?}", now / MS, transport);
        for side in [Side::Low, Side::High] {
            let direction = talk.flow.direction(side);
            let state = (direction.slots.waiting(), direction.min_rtt, direction.smoothed_rtt);
            prop_assert_eq!(state, model.state(side as usize), "at {} ms, {:?}", now / MS, transport);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn segments_are_measured_as_the_model_does(
        packets in vec(packet(), 1..120),
        clocks in prop_oneof![any::<[u32; 2]>(), Just([u32::MAX - 5, 0]), Just([0x7fff_fffa, u32::MAX - 20])],
        rules in rules(),
        local in local(),
    ) {
        let gaps: Vec<bool> = packets.iter().map(|packet| packet.is_after_a_gap).collect();
        assert_as_the_model(&segments(&packets, clocks), &gaps, rules, local)?;
    }

    #[test]
    fn echoes_are_measured_as_the_model_does(
        packets in vec((any::<bool>(), any::<bool>(), 0..14_u16, 1..3000_u64), 1..120),
        rules in rules(),
        local in local(),
    ) {
        let mut now = 0;
        let echoes: Vec<_> = packets.iter().map(|&(is_low, is_reply, sequence, wait_ms)| {
            now += wait_ms * MS;
            let side = if is_low { Side::Low } else { Side::High };
            (side, now, if is_reply { reply(sequence) } else { request(sequence) })
        }).collect();
        assert_as_the_model(&echoes, &vec![false; echoes.len()], rules, local)?;
    }

    /// Nothing is left of order here: any flags, any values, segments and echoes in one flow. That a flow
    /// which says that it is not concerned does nothing is what `Conversation` checks.
    #[test]
    fn whatever_is_sent_samples_are_sound(
        packets in vec((packet(), odd_flags(), proptest::bool::weighted(0.1)), 1..150),
        clocks in any::<[u32; 2]>(),
        rules in rules(),
        local in local(),
    ) {
        let kinds: Vec<_> = packets.iter().map(|(_, flags, is_echo)| (*flags, *is_echo)).collect();
        let packets: Vec<_> = packets.into_iter().map(|(packet, _, _)| packet).collect();
        let mut talk = conversation(rules, local);
        let mut recorded = [vec![], vec![]];
        let mut sampled = [vec![], vec![]];
        for ((from, now, mut transport), (flags, is_echo)) in segments(&packets, clocks).into_iter().zip(kinds) {
            if let Some(flags) = flags {
                transport.segment.flags = TcpFlags(flags);
            }
            if is_echo {
                let sequence = transport.segment.timestamps.tsecr as u16 % 16;
                transport = if flags.is_some() { reply(sequence) } else { request(sequence) };
            }
            let measured = talk.packet(from, now, &transport).measured;
            if let Some(sample) = measured.sample() {
                prop_assert!(sample.rtt > 0 && sample.rtt < now);
                let times_recorded = count(&recorded[from.other() as usize], sample.identifier);
                sampled[from.other() as usize].push(sample.identifier);
                let times_sampled = count(&sampled[from.other() as usize], sample.identifier);
                prop_assert!(times_sampled <= times_recorded, "{:?}", sample);
            }
            for side in [Side::Low, Side::High] {
                let direction = talk.flow.direction(side);
                prop_assert!(direction.slots.waiting() <= 8);
                if direction.recorded_at == now {
                    prop_assert_eq!(side, from);
                    let echoed = if is_echo { u32::from(transport.echo.sequence) } else { direction.newest_tsval };
                    recorded[side as usize].push(echoed);
                }
            }
        }
    }
}

fn count(identifiers: &[u32], identifier: u32) -> usize {
    identifiers.iter().filter(|&&other| other == identifier).count()
}
