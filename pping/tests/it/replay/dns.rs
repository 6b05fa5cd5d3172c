//! DNS in captures: which queries are pending, for how long by the time of the packets, and what is counted.

use std::fs::File;

use pping::{
    capture::{Capture, Packet, decompress},
    event::Event,
    replay::{Engine, Settings},
};
use pping_common::{
    abi::{Counters, RttEvent},
    bytes::Captured,
    limits::{DNS_TIMEOUT_SECONDS, MAX_QUERIES},
    method::Method,
    parse::{Decap, Direction, LinkType, Untracked},
    rings::RINGS,
    rtt::Rules,
    series::SeriesKey,
};

use serde_json::{Value, json};

use super::{
    captures::captures,
    made::{MILLISECOND, SECOND, START},
};
use crate::{
    frames::{Ip, UDP, dns, echo, v4, v6},
    python::reference,
};

const TIMEOUT: u64 = DNS_TIMEOUT_SECONDS * SECOND;

/// A client and a server, alike in both families.
struct Talk {
    engine: Engine,
    is_v6: bool,
}

impl Talk {
    fn new(settings: Settings, is_v6: bool) -> Self {
        Self { engine: Engine::new(settings), is_v6 }
    }

    fn both() -> [Self; 2] {
        [false, true].map(|is_v6| Self::new(Settings::new(Rules::UNLIMITED, 100, Decap::NONE), is_v6))
    }

    fn packet(&mut self, at: u64, bytes: &[u8]) {
        self.engine.packet(&Packet {
            time: START + at,
            interface: 0,
            link: LinkType::Ethernet,
            direction: None,
            bytes: Captured { bytes, frame_len: bytes.len() },
        });
    }

    fn message(&mut self, at: u64, number: u32, code: Option<u8>) {
        let [client, server] = if self.is_v6 { [v6(1), v6(2)] } else { [v4(1), v4(2)] };
        let ports = [4000 + (number >> 16) as u16, 53];
        let (ip, ports, flags) = match code {
            None => (Ip::between(client, server), ports, [1, 0]),
            Some(code) => (Ip::between(server, client), [ports[1], ports[0]], [0x81, 0x80 | code]),
        };
        let datagram = dns((ports[0], ports[1]), number as u16, flags, 12);
        self.packet(at, &ip.frame(UDP, &datagram));
    }

    fn ask(&mut self, at: u64, number: u32) {
        self.message(at, number, None);
    }

    fn answer(&mut self, at: u64, number: u32) {
        self.message(at, number, Some(0));
    }

    fn counters(&self) -> &Counters {
        &self.engine.tracker.report.counters
    }

    /// Returns the ID and the RTT of the samples since the last call.
    fn samples(&mut self) -> Vec<(u32, u64)> {
        let events = std::mem::take(&mut self.engine.tracker.report.events);
        let sample = |event: &Event| match event {
            Event::Rtt(RttEvent { identifier, rtt, .. }) => (*identifier, *rtt),
            _ => panic!("{event:?}"),
        };
        events.iter().map(sample).collect()
    }
}

#[test]
fn a_query_waits_for_ten_seconds_of_capture_time() {
    for mut talk in Talk::both() {
        for number in 1..=4 {
            talk.ask(0, number);
        }
        talk.ask(4 * SECOND, 3);
        talk.answer(TIMEOUT - 1, 1);
        assert_eq!(talk.samples(), [(1, TIMEOUT - 1)]);
        talk.answer(TIMEOUT, 2);
        talk.answer(TIMEOUT, 3);
        assert_eq!(talk.samples(), [], "late, and repeated");
        assert_eq!(talk.counters().dns_responses[0], 2);
        talk.ask(TIMEOUT, 4);
        talk.answer(TIMEOUT + 5, 4);
        assert_eq!(talk.samples(), [(4, 5)], "the first is forgotten");
        assert_eq!(talk.counters().dns_unanswered, 2);
        assert_eq!(talk.counters().dns_queries, [6, 0]);
    }
}

#[test]
fn an_unanswered_query_is_counted_without_another_query() {
    for mut talk in Talk::both() {
        talk.ask(0, 1);
        talk.ask(5 * SECOND, 2);
        talk.packet(TIMEOUT + SECOND, &echo(v4(1), v4(2), 1, 1, false));
        talk.engine.tracker.finish();
        assert_eq!(talk.counters().dns_unanswered, 1, "the other might still be answered");
        assert_eq!(talk.samples(), []);
    }
}

#[test]
fn a_response_older_than_its_query_gives_no_sample() {
    for mut talk in Talk::both() {
        talk.ask(SECOND, 1);
        talk.answer(SECOND - 1, 1);
        talk.answer(SECOND + 1, 1);
        talk.ask(2 * SECOND, 1);
        talk.answer(2 * SECOND, 1);
        assert_eq!(talk.samples(), [(1, 0)]);
        assert_eq!(talk.counters().dns_responses[0], 2);
    }
}

#[test]
fn pending_queries_survive_a_clock_set_back() {
    for mut talk in Talk::both() {
        talk.ask(100 * SECOND, 1);
        talk.ask(108 * SECOND, 2);
        talk.ask(10 * SECOND, 3);
        talk.answer(10 * SECOND + 30 * MILLISECOND, 3);
        assert_eq!(talk.samples(), [(3, 30 * MILLISECOND)]);
        talk.packet(12 * SECOND, &echo(v4(1), v4(2), 1, 1, false));
        talk.engine.tracker.finish();
        assert_eq!(talk.counters().dns_unanswered, 1, "8 seconds and 2");
    }
}

#[test]
fn the_oldest_query_of_a_prefix_makes_room() {
    const PLACES: u32 = MAX_QUERIES / RINGS;
    for mut talk in Talk::both() {
        for number in 0..PLACES {
            talk.ask(u64::from(number), number);
        }
        talk.ask(SECOND, 1);
        talk.ask(SECOND, PLACES);
        for (number, is_there) in [(0, false), (2, true), (PLACES - 1, true), (PLACES, true)] {
            talk.answer(2 * SECOND, number);
            assert_eq!(talk.samples().len(), usize::from(is_there), "{number}");
        }
        talk.answer(2 * SECOND, 1);
        assert_eq!(talk.counters().dns_responses[0], 4, "with the one that was repeated");
        talk.engine.flush(START + 2 * TIMEOUT);
        assert_eq!(talk.counters().dns_unanswered, u64::from(PLACES - 4), "those that still waited");
        assert_eq!(talk.counters().dns_given_up, 1);
    }
}

#[test]
fn hosts_ports_and_the_method_follow_their_options() {
    let settings = Settings::new(Rules::UNLIMITED, 100, Decap::NONE);
    let rules = Rules { methods: settings.rules.methods.without(Method::Dns), ..settings.rules };
    let counted = |settings: Settings, is_v6| {
        let mut talk = Talk::new(settings, is_v6);
        talk.ask(0, 1);
        talk.answer(5, 1);
        let [excluded, unsupported] = [Untracked::Excluded, Untracked::Unsupported]
            .map(|reason| talk.counters().untracked[reason as usize]);
        (talk.counters().dns_queries[0], talk.samples().len(), excluded, unsupported)
    };
    for is_v6 in [false, true] {
        let address = if is_v6 { v6(2) } else { v4(2) };
        assert_eq!(counted(settings.clone(), is_v6), (1, 1, 0, 0));
        let exclude = vec![address.into()];
        assert_eq!(counted(Settings { exclude, ..settings.clone() }, is_v6), (0, 0, 2, 0));
        assert_eq!(counted(Settings { rules, ..settings.clone() }, is_v6).0, 0);
        let dns_ports = [54, 0, 0, 0, 0, 0, 0];
        assert_eq!(counted(Settings { dns_ports, ..settings.clone() }, is_v6).0, 0);
        let dns_ports = [54, 53, 0, 0, 0, 0, 0];
        assert_eq!(counted(Settings { dns_ports, ..settings.clone() }, is_v6), (1, 1, 0, 0));
    }
}

#[test]
fn dns_samples_are_aggregated_under_their_method() {
    for mut talk in Talk::both() {
        for number in 0..5_u32 {
            talk.ask(u64::from(number) * SECOND, 1);
            talk.answer(u64::from(number) * SECOND + 7 * MILLISECOND, 1);
        }
        talk.engine.flush(START + 5 * SECOND);
        let series: Vec<_> = talk.engine.tracker.series().collect();
        let [(key, counts)] = series[..] else { panic!("{series:?}") };
        assert_eq!((key.method, key.direction), (Method::Dns as u8, SeriesKey::NO_DIRECTION));
        assert_eq!(
            (counts.count(), counts.min(), counts.max()),
            (5, Some(7 * MILLISECOND), Some(7 * MILLISECOND))
        );
        assert_eq!(counts.sent.packets + counts.received.packets, 0, "there are no flows");
        assert_eq!(talk.counters().samples[Direction::Ingress as usize][Method::Dns as usize], 5);
        assert_eq!(talk.counters().entries_made, [0; 2]);
    }
}

/// Returns the counts for a capture in the reference's format.
fn counts(capture: &File) -> Value {
    let mut engine = Engine::new(Settings::new(Rules::UNLIMITED, 1000, Decap::NONE));
    let mut capture = Capture::new(decompress(capture.try_clone().unwrap()).unwrap());
    loop {
        while let Some(packet) = capture.next_packet().unwrap() {
            engine.packet(&packet);
        }
        if !capture.fill().unwrap() {
            break;
        }
    }
    engine.tracker.finish();
    let Counters { dns_queries, dns_unanswered, dns_responses, .. } = engine.tracker.report.counters;
    let responses = dns_responses.iter().enumerate().filter(|&(_, &count)| count > 0);
    let responses: serde_json::Map<_, _> =
        responses.map(|(code, &count)| (code.to_string(), json!(count))).collect();
    let queries: u64 = dns_queries.iter().sum();
    json!({ "queries": queries, "unanswered": dns_unanswered, "responses": responses })
}

#[test]
fn foreign_captures_count_what_the_reference_counts() {
    for capture in captures() {
        let output = reference("expected_samples.py").arg("--dns").arg(&capture).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(counts(&File::open(&capture).unwrap()), expected, "{}", capture.display());
    }
}
