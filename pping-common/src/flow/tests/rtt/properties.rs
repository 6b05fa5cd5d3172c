//! The state machine against the model, and what holds for all packets.

use std::{vec, vec::Vec};

use proptest::{collection::vec, prelude::*};

use crate::{
    flow::{Endpoint, Flow},
    limits::COPY_WITHIN,
    method::{Method, Methods},
    model::{Found, Model, State},
    parse::{Kind, TcpFlags, Timestamps, Transport},
    rtt::{RttBasis, Rules},
    testing::{ACK, Conversation, FIN, MS, PSH, RST, SYN, bare, reply, request},
};

/// A packet to be built. Its fields are relative to what was sent before.
#[derive(Clone, Debug)]
struct Packet {
    from: Endpoint,
    wait_ms: i64,
    flags: u8,
    payload: u32,
    has_timestamps: bool,
    /// How far the sender's clock advanced.
    ticks: u32,
    /// How far its `TSval` is behind its clock, by reordering.
    behind: u32,
    /// How far its `TSecr` is behind the other end's clock.
    echo_behind: u32,
    /// How far its sequence number is from the next.
    sequence: i32,
    /// How far its acknowledgement number is from the other end's next.
    acknowledgement: i32,
    has_sack: bool,
    before: Before,
}

/// What happened before a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A packet was missed.
    Gap,
    /// The clock was set back.
    OtherClock,
}

fn flags() -> impl Strategy<Value = u8> {
    prop_oneof![
        25 => Just(ACK),
        12 => Just(PSH | ACK),
        4 => Just(SYN),
        4 => Just(SYN | ACK),
        3 => Just(FIN | ACK),
        1 => Just(RST),
        1 => Just(RST | ACK),
        2 => Just(PSH),
        1 => any::<u8>(),
    ]
}

fn timing() -> impl Strategy<Value = (Endpoint, i64, Before)> {
    let endpoint = prop_oneof![Just(Endpoint::Low), Just(Endpoint::High)];
    let wait = prop_oneof![16 => 1..40_i64, 3 => 40..300_i64, 1 => 2000..11_000_i64, 1 => -60..1_i64];
    let before =
        prop_oneof![60 => Just(Before::Nothing), 2 => Just(Before::Gap), 1 => Just(Before::OtherClock)];
    (endpoint, wait, before)
}

fn clocks() -> impl Strategy<Value = (u32, u32, u32)> {
    let leap = 1_u32 << 20..1_u32 << 23;
    let ticks = prop_oneof![30 => Just(0), 50 => Just(1), 20 => Just(2), 2 => leap, 1 => any::<u32>()];
    let behind = prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(3)];
    let echo_behind = prop_oneof![3 => Just(0), 2 => 1..4_u32, 2 => 4..12_u32, 1 => Just(u32::MAX)];
    (ticks, behind, echo_behind)
}

fn numbers() -> impl Strategy<Value = (u32, i32, i32)> {
    let payload = prop_oneof![4 => Just(0), 1 => Just(1), 6 => Just(100), 1 => Just(1000)];
    let near = prop_oneof![Just(-1), Just(1), Just(-50), Just(50), Just(-100), Just(100), -2000..2000];
    let far = prop_oneof![any::<i32>(), Just(i32::MIN), -70_000..70_000, -9_000_000..9_000_000];
    let sequence = prop_oneof![30 => Just(0), 10 => near.clone(), 2 => far.clone()];
    let acknowledgement = prop_oneof![20 => Just(0), 10 => near, 2 => far];
    (payload, sequence, acknowledgement)
}

fn packet() -> impl Strategy<Value = Packet> {
    let has_timestamps = proptest::bool::weighted(0.95);
    let has_sack = proptest::bool::weighted(0.1);
    (timing(), flags(), clocks(), numbers(), has_timestamps, has_sack).prop_map(
        |(timing, flags, clocks, numbers, has_timestamps, has_sack)| {
            let (from, wait_ms, before) = timing;
            let (ticks, behind, echo_behind) = clocks;
            let (payload, sequence, acknowledgement) = numbers;
            Packet {
                from,
                wait_ms,
                flags,
                payload,
                has_timestamps,
                ticks,
                behind,
                echo_behind,
                sequence,
                acknowledgement,
                has_sack,
                before,
            }
        },
    )
}

/// Packets of a flow with timestamps, of one without, or of one in which each segment may or may not have them.
fn packets(len: usize) -> impl Strategy<Value = Vec<Packet>> {
    let timestamps = prop_oneof![Just(Some(true)), Just(Some(false)), Just(None)];
    (timestamps, vec((packet(), any::<bool>()), 1..len)).prop_map(|(timestamps, packets)| {
        let like = |(packet, has_timestamps): (Packet, bool)| match timestamps {
            Some(true) => packet,
            Some(false) => Packet { has_timestamps: !packet.has_timestamps, ..packet },
            None => Packet { has_timestamps, ..packet },
        };
        packets.into_iter().map(like).collect()
    })
}

fn methods() -> impl Strategy<Value = Methods> {
    let none = Methods::NONE;
    let tcp = prop_oneof![
        4 => Just(none.with(Method::TcpTs).with(Method::TcpSeq)),
        2 => Just(none.with(Method::TcpTs)),
        2 => Just(none.with_seq_always()),
        4 => Just(none.with(Method::TcpTs).with_seq_always()),
        1 => Just(none.with(Method::TcpSeq)),
        1 => Just(none),
    ];
    (tcp, any::<bool>()).prop_map(
        |(methods, has_handshake)| {
            if has_handshake { methods.with(Method::TcpHandshake) } else { methods }
        },
    )
}

fn rules(methods: impl Strategy<Value = Methods>) -> impl Strategy<Value = Rules> {
    let limit = prop_oneof![3 => Just(0), 1 => Just(20 * MS), 1 => Just(100 * MS)];
    let rate = prop_oneof![3 => Just(0), 1 => Just(1 << 15), 1 => Just(1 << 16), 1 => Just(3 << 16)];
    let basis = prop_oneof![Just(RttBasis::Smoothed), Just(RttBasis::Min)];
    let copy_within = prop_oneof![2 => Just(COPY_WITHIN), 1 => Just(0), 1 => Just(30 * MS)];
    (limit, rate, copy_within, basis, any::<bool>(), methods).prop_map(
        |(rate_limit, rtt_rate, copy_within, rtt_basis, include_local, methods)| Rules {
            rate_limit,
            rtt_rate,
            copy_within,
            rtt_basis,
            include_local,
            methods,
            ..Rules::UNLIMITED
        },
    )
}

/// The timestamps of both ends, if their clocks stand still.
fn still() -> impl Strategy<Value = [Option<u32>; 2]> {
    let clock = prop_oneof![5 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(4_711))];
    [clock.clone(), clock]
}

fn local() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(3)]
}

/// The first clock values and sequence numbers of both ends.
fn starts() -> impl Strategy<Value = [u32; 4]> {
    prop_oneof![any::<[u32; 4]>(), Just([u32::MAX - 5, 0, u32::MAX - 250, 0x7fff_ff00])]
}

/// Converts packets to segments with absolute numbers, each with its sender and its time in ns. No two have the same
/// time.
fn segments(
    packets: &[Packet],
    [low_clock, high_clock, low, high]: [u32; 4],
) -> Vec<(Endpoint, u64, Transport)> {
    let mut ms = 100_i64;
    let mut clocks = [low_clock, high_clock];
    let mut next = [low, high];
    let mut syns = [None; 2];
    let mut segments = Vec::new();
    for packet in packets {
        ms = (ms + packet.wait_ms).max(1);
        let (mine, other) = (packet.from as usize, packet.from.other() as usize);
        clocks[mine] = clocks[mine].wrapping_add(packet.ticks);
        let is_syn = packet.flags & SYN != 0;
        // The numbers of RSTs are on both sides of what an endpoint takes.
        let spread = |offset: i32| if packet.flags & RST == 0 { offset } else { offset.wrapping_mul(1_311) };
        let sequence = match syns[mine] {
            // A retransmission.
            Some(syn) if is_syn && packet.sequence != 0 => syn,
            _ => next[mine].wrapping_add_signed(spread(packet.sequence)),
        };
        let acknowledgement = match syns[other] {
            // A reply to the latest SYN, which need not be what was sent last.
            Some(syn) if is_syn && packet.acknowledgement >= 0 => syn.wrapping_add(1),
            _ => next[other].wrapping_add_signed(spread(packet.acknowledgement)),
        };
        let mut transport = bare(packet.flags, sequence, packet.payload, acknowledgement);
        let segment = &mut transport.segment;
        segment.has_timestamps = packet.has_timestamps;
        segment.timestamps = Timestamps {
            tsval: clocks[mine].wrapping_sub(packet.behind),
            tsecr: clocks[other].wrapping_sub(packet.echo_behind),
        };
        segment.has_sack = packet.has_sack;
        if is_syn {
            segment.window_scale = (packet.sequence as u8 ^ packet.payload as u8) % 16;
        }
        let end = segment.sequence_end();
        // A new SYN sets the next number. A retransmission does not move it.
        if is_syn && syns[mine] != Some(sequence) || crate::rtt::is_newer(end, next[mine]) {
            next[mine] = end;
        }
        if is_syn {
            syns[mine] = Some(sequence);
        }
        segments.push((packet.from, ms as u64 * MS + segments.len() as u64, transport));
    }
    segments
}

fn conversation(rules: Rules, local: u32) -> Conversation {
    Conversation { flow: Flow::new(crate::testing::local(local)), rules }
}

/// Sends packets to a flow and the model, which must agree after each.
fn assert_as_the_model(
    packets: &[(Endpoint, u64, Transport)],
    before: &[Before],
    rules: Rules,
    local: u32,
) -> Result<(), TestCaseError> {
    let mut talk = conversation(rules, local);
    let mut model = Model::new(rules, local);
    for (&(from, now, transport), before) in packets.iter().zip(before) {
        match before {
            Before::Nothing => {}
            Before::Gap => {
                talk.flow.hot.contended = 1;
                model.miss();
            }
            Before::OtherClock => {
                talk.flow.set_clock_back(6);
                model.set_clock_back();
            }
        }
        let found = Found::of(&talk.packet(from, now, &transport));
        let expected = model.packet(from, &transport, now);
        prop_assert_eq!(found, expected, "{:?} at {} ms, {:?}", from, now / MS, transport);
        if talk.flow.hot.contended != 0 {
            // The packet was refused. What was missed shows at the next one.
            continue;
        }
        for endpoint in [Endpoint::Low, Endpoint::High] {
            let state = State::of(&talk.flow, endpoint);
            let expected = model.state(endpoint);
            prop_assert_eq!(
                state,
                expected,
                "{:?} after {:?} at {} ms, {:?}",
                endpoint,
                from,
                now / MS,
                transport
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn segments_are_measured_as_the_model_does(
        packets in packets(64),
        starts in starts(),
        still in still(),
        rules in rules(methods()),
        local in local(),
    ) {
        let before: Vec<Before> = packets.iter().map(|packet| packet.before).collect();
        let mut segments = segments(&packets, starts);
        for (from, _, transport) in &mut segments {
            if let Some(tsval) = still[*from as usize] {
                transport.segment.timestamps.tsval = tsval;
            }
        }
        assert_as_the_model(&segments, &before, rules, local)?;
    }
}

/// Most echoes are between the same two hosts, one of which sends the requests.
fn is_low() -> impl Strategy<Value = bool> {
    proptest::bool::weighted(0.9)
}

fn echo_number() -> impl Strategy<Value = Option<u16>> {
    prop_oneof![4 => Just(None), 6 => (1..20_u16).prop_map(Some), 1 => (0..4_u16).prop_map(Some)]
}

fn echo_data() -> impl Strategy<Value = u16> {
    prop_oneof![8 => Just(7), 1 => Just(0), 1 => 0..1_u16 << 15]
}

fn echo_wait() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 1..40_i64, 6 => 40..300_i64, 1 => 2000..11_000_i64, 1 => -60..1_i64]
}

proptest! {
    #[test]
    fn echoes_are_measured_as_the_model_does(
        packets in vec((is_low(), prop::bool::weighted(0.3), echo_number(), echo_wait(), echo_data()), 1..200),
        rules in rules(prop_oneof![Just(Methods::ALL), Just(Methods::NONE.with(Method::IcmpEcho))]),
        local in local(),
    ) {
        let (mut now, mut next) = (0, 0_u16);
        let echoes: Vec<_> = packets.iter().zip(0..).map(|(&(is_low, is_reply, number, wait_ms, data), position)| {
            now = (now + wait_ms).max(1);
            // Most requests have the next number, and most replies one of the latest.
            let sequence = match number {
                Some(back) if is_reply => next.wrapping_sub(back),
                Some(number) => number,
                None => next,
            };
            next = next.wrapping_add(u16::from(!is_reply));
            // Replies come from the other end.
            let endpoint = if is_low == is_reply { Endpoint::High } else { Endpoint::Low };
            let mut echo = if is_reply { reply(sequence) } else { request(sequence) };
            echo.echo.data = data;
            (endpoint, now as u64 * MS + position, echo)
        }).collect();
        assert_as_the_model(&echoes, &vec![Before::Nothing; echoes.len()], rules, local)?;
    }

    /// There is no order here: any flags, any values. `Conversation` checks that packets
    /// without effect change nothing.
    #[test]
    fn whatever_is_sent_samples_are_sound(
        packets in packets(150),
        odd in vec(prop_oneof![4 => Just(None), 1 => any::<u8>().prop_map(Some)], 150),
        are_echoes in proptest::bool::weighted(0.2),
        starts in starts(),
        rules in rules(methods()),
        local in local(),
    ) {
        let mut talk = conversation(rules, local);
        let mut sent = [vec![], vec![]];
        let mut sampled = [vec![], vec![]];
        for ((from, now, mut transport), flags) in segments(&packets, starts).into_iter().zip(odd) {
            if let Some(flags) = flags {
                transport.segment.flags = TcpFlags(flags);
            }
            if are_echoes {
                let sequence = transport.segment.timestamps.tsecr as u16 % 16;
                transport = if flags.is_some() { reply(sequence) } else { request(sequence) };
            }
            let timed = from.other() as usize;
            for (method, identifier, rtt) in Found::of(&talk.packet(from, now, &transport)).samples {
                prop_assert!(rtt < now);
                prop_assert!(rules.methods.has(method) || method == Method::IcmpEcho, "{:?}", method);
                let is_sent = sent[timed].contains(&(identifier, now - rtt));
                prop_assert!(is_sent, "{} by {:?} was not sent {} ns ago", identifier, method, rtt);
                let sample = (method, identifier, now - rtt);
                prop_assert!(!sampled[timed].contains(&sample), "{:?} again", sample);
                sampled[timed].push(sample);
            }
            for endpoint in [Endpoint::Low, Endpoint::High] {
                prop_assert!(talk.flow.pending(endpoint).count() <= 8);
            }
            let segment = &transport.segment;
            let identifiers = match transport.kind {
                Kind::Tcp => [segment.timestamps.tsval, segment.sequence_end(), segment.sequence.wrapping_add(1)],
                _ => [u32::from(transport.echo.sequence); 3],
            };
            sent[from as usize].extend(identifiers.map(|identifier| (identifier, now)));
        }
    }
}
