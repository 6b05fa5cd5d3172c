//! A mirror of several ports: each packet passes more than once, and counts once.

use std::time::{Duration, Instant};

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    copies::MAX_COPIES_WITHIN,
    parse::{Direction, LinkType, Untracked},
};

use super::{
    frames::{echo, v4, v6},
    rig::{Program, Rig, Timeless, kernels},
};
use crate::replay::made::{MILLISECOND, START, connection};

/// The offset of the TTL of an IPv4 packet and of the hop limit of an IPv6 packet in an Ethernet frame.
const TTL: usize = 22;
const HOP_LIMIT: usize = 21;

fn duplicates(rig: &Rig) -> u64 {
    rig.twin.counters.untracked[Untracked::Duplicate as usize]
}

/// Frames of two connections and of pings over IPv6, no two of which are equal.
fn frames() -> Vec<Vec<u8>> {
    const SEGMENTS: u32 = 60;
    let connections = [40_000, 40_001].map(|port| connection(port, START, SEGMENTS, 20 * MILLISECOND));
    let pings = (0..SEGMENTS as u16)
        .flat_map(|sequence| [echo(v6(1), v6(2), 7, sequence, false), echo(v6(2), v6(1), 7, sequence, true)]);
    connections.into_iter().flatten().map(|packet| packet.bytes).chain(pings).collect()
}

/// A frame behind a router: another MAC address, and a lower TTL.
fn routed(frame: &[u8]) -> Vec<u8> {
    let mut routed = frame.to_vec();
    routed[0] ^= 0xff;
    let ttl = if routed[12..14] == [0x08, 0] { TTL } else { HOP_LIMIT };
    routed[ttl] = routed[ttl].wrapping_sub(1);
    routed
}

/// How long the machine may hold up a frame and its copies. A copy that it holds up for longer may come too late to be one.
const IN_TIME: Duration = Duration::from_nanos(MAX_COPIES_WITHIN / 10 * 9);

/// Sends each frame once, and as often again as it has copies. `None` if the machine held up any of them.
fn sent(settings: LoadOptions, program: Program, copies: usize) -> Option<Rig> {
    let mut rig = Rig::with(settings, LinkType::Ethernet);
    rig.load(program);
    for frame in &frames() {
        let began = Instant::now();
        rig.send(program, frame);
        for _ in 0..copies {
            rig.send(program, &routed(frame));
        }
        if began.elapsed() > IN_TIME {
            return None;
        }
    }
    Some(rig)
}

/// What is measured of these frames and their copies.
fn measured(settings: LoadOptions, program: Program, copies: usize) -> (Vec<Timeless>, Rig) {
    const TRIES: usize = 10;
    let settings = LoadOptions { copies_within: MAX_COPIES_WITHIN, ..settings };
    let Some(mut rig) = (0..TRIES).find_map(|_| sent(settings, program, copies)) else {
        panic!("the machine held up packets for nearly a second, each of {TRIES} times");
    };
    let what = format!("{program:?}, {copies} copies");
    let events = rig.agree(&what).iter().map(Timeless::from).collect();
    rig.agree_on_series(&what);
    (events, rig)
}

#[test]
fn copies_at_a_mirror_port_change_nothing() {
    for settings in kernels() {
        for program in [Program::Ingress, Program::Xdp] {
            let (once, of_once) = measured(settings, program, 0);
            let (thrice, of_thrice) = measured(settings, program, 2);
            assert!(once.len() > 100, "{program:?}: {}", once.len());
            assert!(once == thrice, "{program:?}: {} events, with copies {}", once.len(), thrice.len());
            let [counted, again] = [&of_once, &of_thrice].map(|rig| rig.twin.counters);
            assert_eq!(counted.samples, again.samples, "{program:?}");
            assert_eq!(counted.retransmissions, again.retransmissions, "{program:?}");
            assert_eq!(duplicates(&of_once), 0, "{program:?}");
            assert_eq!(duplicates(&of_thrice), 2 * frames().len() as u64, "{program:?}");
        }
    }
}

#[test]
fn without_the_mode_a_copy_is_a_packet() {
    let mut rig = Rig::with(kernels()[0], LinkType::Ethernet);
    for _ in 0..2 {
        rig.send(Program::Ingress, &echo(v4(1), v4(2), 1, 1, false));
    }
    rig.agree("no copies");
    assert_eq!(rig.twin.counters.packets(Direction::Ingress), 2);
    assert_eq!(rig.twin.counters.untracked.iter().sum::<u64>(), 0);
}
