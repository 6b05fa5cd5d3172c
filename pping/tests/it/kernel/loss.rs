//! Events beyond the room on the ring are counted as lost, and the loss changes nothing else.

use pping::kernel::drain::Event;
use pping_common::{
    abi::{Lost, RttEvent},
    limits::RING_BYTES,
};

use super::{
    frames::{ACK, FIN, Ip, PSH, TCP, Tcp, v4},
    rig::{Program, Rig, Timeless, counters, events, samples},
    twin::Twin,
};

/// Bytes that the kernel puts before each event.
const RING_HEADER: u32 = 8;

/// A segment that echoes the one before it and is echoed by the next: one sample each.
fn volley(rig: &mut Rig, number: u32, flags: u8) {
    let hosts = [(v4(1), 40_000), (v4(2), 443)];
    let [from, to] = if number.is_multiple_of(2) { [hosts[0], hosts[1]] } else { [hosts[1], hosts[0]] };
    let segment = Tcp { ports: (from.1, to.1), flags, ..Tcp::stamped(number, number.wrapping_sub(1)) };
    let program = if number.is_multiple_of(2) { Program::Egress } else { Program::Ingress };
    rig.send(program, &Ip::between(from.0, to.0).frame(TCP, &segment.bytes()));
}

/// Removes from the twin the events that the kernel lost. Both have the rest in the same order.
fn lose_but(kept: &[Event], twin: &mut Twin) {
    let mut kept = kept.iter().map(Timeless::from).peekable();
    for event in std::mem::take(&mut twin.events) {
        if kept.next_if_eq(&Timeless::from(&event)).is_none() {
            twin.lose(&event);
        }
    }
    assert_eq!(kept.next(), None, "an event out of order, or one too many");
}

#[test]
fn events_without_room_are_counted_and_nothing_else_changes() {
    let mut rig = Rig::new();
    let room = RING_BYTES / (RING_HEADER + size_of::<RttEvent>() as u32);
    let mut number = 1;
    while number < room + 2000 {
        volley(&mut rig, number, ACK | PSH);
        number += 1;
    }
    volley(&mut rig, number, ACK | FIN);
    volley(&mut rig, number + 1, ACK | FIN);
    let kept = events(&mut rig.kernel);
    assert!(kept.len() as u32 > room - 100, "the ring held {} events", kept.len());
    lose_but(&kept, &mut rig.twin);
    let counters = counters(&rig.kernel, rig.twin.interface_id);
    assert!(counters.lost[Lost::Rtt as usize] > 1000, "{counters:?}");
    // A flow event is smaller: the first of the two still fits where no RTT event does.
    assert!(counters.lost[Lost::Flow as usize] >= 1, "{counters:?}");
    assert_eq!(counters, rig.twin.counters);

    // Once the ring has room, no more events are lost.
    for number in number + 2..number + 500 {
        volley(&mut rig, number, ACK | PSH);
    }
    assert!(samples(&rig.agree("after the loss")).len() > 400);
}
