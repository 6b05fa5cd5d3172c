//! The pool of pending entries: flows take an entry when they record, and return it when they are idle.

use std::net::Ipv4Addr;

use pping::kernel::load_options::LoadOptions;
use pping_common::{
    limits::{CLOSED_IDLE_SECONDS, max_unproved},
    parse::LinkType,
};

use super::{
    frames::{ACK, Ip, PSH, RST, TCP, Tcp, echo, v4, v6},
    rig::{Program, Rig, counters, events, kernels, samples},
};

/// How many flows of each family can have something pending.
const ROOM: u16 = 4;

/// Returns a rig with few pending entries for each of the [`kernels`].
fn rigs() -> impl Iterator<Item = Rig> {
    kernels().into_iter().map(|settings| {
        let settings = LoadOptions { max_pending: ROOM.into(), ..settings };
        Rig::with(settings, LinkType::Ethernet)
    })
}

/// Sends a request on the flow with this number, in each family.
fn request(rig: &mut Rig, number: u16, sequence: u16) {
    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        rig.send(Program::Egress, &echo(a, b, number, sequence, false));
    }
}

/// Sends the replies, and returns how many samples they give.
fn reply(rig: &mut Rig, number: u16, sequence: u16) -> usize {
    for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
        rig.send(Program::Ingress, &echo(b, a, number, sequence, true));
    }
    samples(&events(&mut rig.kernel)).len()
}

/// Returns how many packets were not recorded for lack of room.
fn unrecorded(rig: &Rig) -> u64 {
    counters(&rig.kernel, rig.twin.interface_id).no_pending
}

fn segment(rig: &mut Rig, is_forward: bool, port: u16, flags: u8, stamps: (u32, u32)) {
    let (a, b) = if is_forward { (v4(1), v4(2)) } else { (v4(2), v4(1)) };
    let ports = if is_forward { (port, 443) } else { (443, port) };
    let segment = Tcp { ports, flags, ..Tcp::stamped(stamps.0, stamps.1) };
    rig.send(Program::Egress, &Ip::between(a, b).frame(TCP, &segment.bytes()));
}

#[test]
fn full_pending_pool_skips_and_counts() {
    for mut rig in rigs() {
        for number in 0..10 {
            request(&mut rig, number, 1);
        }
        assert_eq!(unrecorded(&rig), 2 * (10 - u64::from(ROOM)));
        for number in 0..10 {
            let expected = if number < ROOM { 2 } else { 0 };
            assert_eq!(reply(&mut rig, number, 1), expected, "flow {number}");
        }
        let counters = counters(&rig.kernel, rig.twin.interface_id);
        let recorded = 2 * u64::from(ROOM);
        assert_eq!(
            (counters.echo_requests, counters.echo_replies),
            (recorded, recorded),
            "of those with room"
        );
        // Flows that have an entry keep it. Each other flow counts one more packet.
        for number in 0..10 {
            request(&mut rig, number, 2);
        }
        assert_eq!(unrecorded(&rig), 4 * (10 - u64::from(ROOM)));
    }
}

#[test]
fn idle_flow_returns_its_pending_entry() {
    for mut rig in rigs() {
        for number in 0..ROOM {
            request(&mut rig, number, 1);
        }
        // The request of flow 0 is never answered.
        for number in 1..ROOM {
            assert_eq!(reply(&mut rig, number, 1), 2);
        }
        rig.sweep();
        events(&mut rig.kernel);
        request(&mut rig, 10, 1);
        assert_eq!(unrecorded(&rig), 2, "they were not idle for long enough");
        for _ in 0..3 {
            rig.sweep();
        }
        events(&mut rig.kernel);
        for number in 11..10 + 2 * ROOM {
            request(&mut rig, number, 1);
        }
        assert_eq!(unrecorded(&rig), 2 + 2 * u64::from(ROOM), "one is still pending");
        for number in 11..10 + ROOM {
            assert_eq!(reply(&mut rig, number, 1), 2, "flow {number}");
        }
        assert_eq!(reply(&mut rig, 0, 1), 2, "the one that was pending all the time");
    }
}

#[test]
fn an_idle_flow_records_again_when_it_goes_on() {
    for mut rig in rigs() {
        for sequence in 1..20 {
            request(&mut rig, 1, sequence);
            assert_eq!(reply(&mut rig, 1, sequence), 2, "request {sequence}");
            for _ in 0..3 {
                rig.sweep();
            }
            events(&mut rig.kernel);
        }
        assert_eq!(unrecorded(&rig), 0);
    }
}

#[test]
fn removed_flow_returns_its_pending_entry() {
    for mut rig in rigs() {
        for round in 0..3 {
            for number in 0..ROOM {
                let port = 1_000 + round * ROOM + number;
                segment(&mut rig, true, port, ACK, (1, 0));
                segment(&mut rig, true, port, ACK | PSH, (2, 0));
                segment(&mut rig, false, port, RST | ACK, (0, 0));
            }
            assert_eq!(unrecorded(&rig), 0, "round {round}");
            for _ in 0..=CLOSED_IDLE_SECONDS + 1 {
                rig.sweep();
            }
            events(&mut rig.kernel);
        }
    }
}

#[test]
fn a_limit_on_recordings_outlives_the_room() {
    for settings in kernels() {
        let mut settings = LoadOptions { max_pending: ROOM.into(), ..settings };
        // This is longer than the test takes.
        settings.rules.rate_limit = 3_600_000_000_000;
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        request(&mut rig, 1, 1);
        assert_eq!(reply(&mut rig, 1, 1), 2);
        for _ in 0..5 {
            rig.sweep();
        }
        events(&mut rig.kernel);
        request(&mut rig, 1, 2);
        assert_eq!(reply(&mut rig, 1, 2), 0, "within an hour");
        assert_eq!(unrecorded(&rig), 0);
    }
}

/// Forged data of one end takes an entry for each segment, but only as long as it has a place among the flows that are not
/// proved.
#[test]
fn flows_that_are_not_proved_leave_entries_for_others() {
    const MAX_FLOWS: u32 = 4096;
    const MAX_PENDING: u32 = 64;
    for settings in kernels() {
        let max_unproved = max_unproved(MAX_FLOWS, MAX_PENDING);
        let settings =
            LoadOptions { max_flows: MAX_FLOWS, max_pending: MAX_PENDING, max_unproved, ..settings };
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for number in 0..2_000_u32 {
            let segment = Tcp { flags: ACK | PSH, payload: 10, ..Tcp::with_options([]) };
            let forged = Ip::between(Ipv4Addr::from_bits(0x0a00_0000 + (number << 8)).into(), v4(2));
            rig.send(Program::Ingress, &forged.frame(TCP, &segment.bytes()));
        }
        for number in 0..ROOM {
            request(&mut rig, number, 1);
        }
        for number in 0..ROOM {
            assert_eq!(reply(&mut rig, number, 1), 2, "flow {number}");
        }
        assert_eq!(unrecorded(&rig), 0);
    }
}
