//! The tracker counts and reports as the kernel programs do: here with directions, local addresses and sweeps.

use pping::{
    capture::Packet,
    event::Event,
    replay::{Settings, Tracker},
};
use pping_common::{
    abi::{Emit, EndEvent, FlowEventKind},
    bytes::Captured,
    flow::Reason,
    group::{End, Grouping},
    method::{Method, Methods},
    parse::{Decap, Direction, LinkType},
    rtt::Rules,
    series::{SeriesCounts, SeriesKey},
};

use super::made::{self, MILLISECOND, SECOND, START, connection};

const CLIENT: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
const MANY: u32 = 1_000;

/// By timestamps alone.
const RULES: Rules = Rules { methods: Methods::NONE.with(Method::TcpTs), ..Rules::UNLIMITED };

fn settings(emit: Emit) -> Settings {
    let rules = Rules { include_local: false, ..RULES };
    Settings { emit, ..Settings::new(rules, MANY, Decap::NONE) }
}

/// Sends packets from the client through ingress, and packets to it through egress.
fn take(tracker: &mut Tracker, packets: &[made::Packet], second: u64) {
    for packet in packets {
        let is_from_client = packet.bytes[26] == 192;
        tracker.packet(
            &Packet {
                time: packet.at,
                interface: 3,
                link: LinkType::Ethernet,
                direction: Some(if is_from_client { Direction::Ingress } else { Direction::Egress }),
                bytes: Captured { bytes: &packet.bytes, frame_len: packet.bytes.len() },
            },
            second,
        );
    }
}

fn series(tracker: &Tracker) -> Vec<(SeriesKey, SeriesCounts)> {
    tracker.series().map(|(key, counts)| (*key, *counts)).collect()
}

#[test]
fn a_flow_that_is_swept_closes_first_and_then_ends() {
    let mut tracker = Tracker::new(settings(Emit::FLOWS.with(Emit::ENDS)));
    let packets = connection(40_000, START, 3, MILLISECOND);
    take(&mut tracker, &packets, 0);
    tracker.report.events.clear();
    tracker.sweep(START + 400 * SECOND, 400);
    let events = &tracker.report.events;
    let closings = events.iter().map_while(|event| match event {
        Event::Flow(event) if event.event == FlowEventKind::Closing as u8 => Some(event.reason),
        _ => None,
    });
    assert_eq!(closings.collect::<Vec<_>>(), [Reason::Timeout as u8; 2]);
    let [.., Event::End(end)] = events[..] else { panic!("{events:?}") };
    let EndEvent { reason, began, ended, endpoints, sent, received, .. } = end;
    assert_eq!((reason, began), (Reason::Timeout as u8, START));
    assert_eq!(ended, START + 2 * SECOND + MILLISECOND);
    assert_eq!((endpoints.destination, endpoints.destination_port), (CLIENT, 40_000), "who began it");
    assert_eq!((sent.packets, sent.bytes, sent.retransmissions), (3, 200, 0));
    assert_eq!((received.packets, received.bytes), (3, 0));
    assert_eq!((events.len(), tracker.flows()), (3, 0));
}

#[test]
fn unwanted_events_are_not_emitted() {
    for (emit, has_samples, has_flows, has_ends) in [
        (Emit::NOTHING, false, false, false),
        (Emit::SAMPLES, true, false, false),
        (Emit::FLOWS, false, true, false),
        (Emit::ENDS, false, false, true),
    ] {
        let mut tracker = Tracker::new(settings(emit));
        take(&mut tracker, &connection(40_000, START, 3, MILLISECOND), 0);
        tracker.finish();
        let any = |is: fn(&Event) -> bool| tracker.report.events.iter().any(is);
        assert_eq!(any(|event| matches!(event, Event::Rtt(_))), has_samples, "{emit:?}");
        assert_eq!(any(|event| matches!(event, Event::Flow(_))), has_flows, "{emit:?}");
        assert_eq!(any(|event| matches!(event, Event::End(_))), has_ends, "{emit:?}");
        assert_eq!(tracker.report.counters.samples[Direction::Egress as usize][Method::TcpTs as usize], 3);
        assert_eq!(series(&tracker).iter().map(|(_, counts)| counts.count()).sum::<u64>(), 4);
    }
}

#[test]
fn traffic_and_samples_of_a_direction_are_in_one_series() {
    let grouping = Grouping { by_source: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };
    let mut tracker = Tracker::new(Settings { grouping, ..settings(Emit::SAMPLES) });
    let packets = connection(40_000, START, 5, MILLISECOND);
    let (before, after) = packets.split_at(4);
    let mut sum = [(0, 0); 2];
    for packets in [before, after] {
        take(&mut tracker, packets, 0);
        tracker.flush();
        let found = series(&tracker);
        assert_eq!(found.len(), 2);
        for (key, counts) in found {
            assert_eq!((key.interface, key.method), (3, Method::TcpTs as u8));
            // The echoes of the client's packets leave towards the client.
            let is_of_client = key.direction == Direction::Egress as u8;
            let End::Prefix { address, len: 24 } = key.group.source() else { panic!("{key:?}") };
            assert_eq!(address.to_bytes()[12], if is_of_client { 198 } else { 192 });
            let (one, other) = &mut sum.split_at_mut(1);
            let sum = if is_of_client { &mut one[0] } else { &mut other[0] };
            *sum = (sum.0 + counts.sent.packets, sum.1 + counts.received.bytes);
        }
        assert_eq!(tracker.take_series(START, SECOND).len(), 2);
        tracker.flush();
        assert_eq!(series(&tracker).len(), 0, "nothing is counted twice");
    }
    assert_eq!(sum, [(5, 0), (5, 400)]);
    assert_eq!(tracker.report.counters.retransmissions, [0; 2]);
}

#[test]
fn local_traffic_is_not_timed_and_has_no_series() {
    for (include_local, directions) in [(false, vec![Direction::Ingress as u8]), (true, vec![1, 0])] {
        let rules = Rules { include_local, ..RULES };
        let mut tracker = Tracker::new(Settings { rules, ..settings(Emit::NOTHING) });
        tracker.add_local([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 2]);
        take(&mut tracker, &connection(40_000, START, 3, MILLISECOND), 0);
        tracker.flush();
        let found: Vec<u8> = series(&tracker).iter().map(|(key, _)| key.direction).collect();
        assert_eq!(found, directions, "what goes out to the client would be answers of this host");
    }
}

#[test]
fn groups_without_traffic_make_room() {
    let grouping = Grouping { by_destination: 1, by_dscp: 0, v4_len: 32, v6_len: 128, ..Grouping::NONE };
    let mut tracker = Tracker::new(Settings { grouping, max_groups: 2, ..settings(Emit::NOTHING) });
    let talk = |tracker: &mut Tracker, client: u8, at: u64| {
        let mut packets = connection(40_000, at, 1, MILLISECOND);
        for packet in &mut packets {
            let offset = if packet.bytes[26] == 192 { 29 } else { 33 };
            packet.bytes[offset] = client;
        }
        take(tracker, &packets, 0);
        tracker.flush();
    };
    talk(&mut tracker, 1, START);
    talk(&mut tracker, 2, START);
    let refused = tracker.report.counters.groups_refused;
    assert!(refused > 0, "there is room for a client and the server");
    tracker.take_series(START, SECOND);
    assert_eq!(tracker.take_series(START + SECOND, SECOND).len(), 0);
    talk(&mut tracker, 3, START + SECOND);
    assert_eq!(tracker.report.counters.groups_refused, refused);
    assert_eq!(tracker.report.counters.unaggregated, 0);
}
