//! Limits: idle flows expire, and flows without room and events without a reader are counted.

use std::{thread, time::Duration};

use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};
use pping::kernel::{
    drain::{Event, drain},
    features::{DisabledFeatures, Feature},
    interfaces::Link,
    load::{self, Hook},
    load_options::LoadOptions,
};
use pping_bench_programs::{BASELINE, BASELINE_ADD_ONLY};
use pping_common::{abi::Lost, limits::UNANSWERED_IDLE_SECONDS};
use pping_lab::{Process, Topology};

use super::{
    features,
    frames::{Ip, TCP, Tcp, v4},
    http::{LISTEN, scrape},
    monitor::{PATIENCE, interrupt, ok, ping, wait_until, watch},
    net::{FAMILIES, Net},
    programs::chain,
    records::Records,
    report::skip,
};

/// Returns the entries of a map, according to the metrics.
fn entries(net: &Net, map: &str) -> Option<f64> {
    scrape(&net.router).sum("pping_map_entries", &[("map", map)])
}

#[test]
fn idle_flows_are_swept() {
    let net = Net::new();
    let pping = watch(&net.router, Topology::WAN, &format!("{LISTEN} --format none"));
    for family in FAMILIES {
        ping(&net.client, family.server(), "-c3 -i0.1");
    }
    wait_until("a flow of each family", || {
        ["FLOWS_V4", "FLOWS_V6"].iter().all(|map| entries(&net, map) == Some(1.0))
    });
    // The guest's clock skips idle time.
    thread::sleep(Duration::from_secs(u64::from(UNANSWERED_IDLE_SECONDS)));
    wait_until("no flow", || ["FLOWS_V4", "FLOWS_V6"].iter().all(|map| entries(&net, map) == Some(0.0)));
    interrupt(pping);
}

#[test]
fn flows_without_room_are_counted_and_others_measured() {
    let net = Net::new();
    let pping = watch(&net.router, Topology::WAN, &format!("{LISTEN} --rate-limit 0 --max-flows 4"));
    let ping = |options: &'static str| {
        let mut ping = net.client.command("ping");
        ping.args(options.split(' ')).arg(Topology::SERVER_IPV4.to_string());
        ok(Process::spawn(ping))
    };
    let early: Vec<Process> = (0..4).map(|_| ping("-q -c20 -i0.2")).collect();
    wait_until("the map is full", || entries(&net, "FLOWS_V4") == Some(4.0));
    let late: Vec<Process> = (0..4).map(|_| ping("-q -c5 -i0.2")).collect();
    for mut ping in early.into_iter().chain(late) {
        ok(ping.wait_timeout(PATIENCE));
    }
    // Each request counts. A reply opens no flow.
    let refused = || scrape(&net.router).sum("pping_untracked_packets_total", &[("reason", "map_full")]);
    wait_until("all that found no room are counted", || refused() == Some(4.0 * 5.0));
    assert!(ok(pping.stderr()).contains("raise --max-flows"), "{}", ok(pping.stderr()));
    assert_eq!(Records::parse(&interrupt(pping)).samples.len(), 4 * 20);
}

#[test]
fn unread_events_are_counted() {
    /// More samples than the ring holds.
    const SAMPLES: u32 = 60_000;
    let (object, without) = if features::has_fetch() {
        (BASELINE, DisabledFeatures::NOTHING)
    } else {
        (BASELINE_ADD_ONLY, DisabledFeatures::these(&[Feature::Fetch]))
    };
    let mut kernel =
        load::open(object, &LoadOptions { max_flows: 16, without, ..LoadOptions::DEFAULT }).unwrap();
    let loopback =
        Link { name: "lo".to_owned(), ifindex: 1, hardware_type: libc::ARPHRD_LOOPBACK, ..Link::default() };
    let interface_id = loopback.register(&mut kernel).unwrap();
    if let Err(error) = load::load_packet_programs(&mut kernel.programs, &[Hook::Tc]) {
        // Those of pping have no functions.
        let why = chain(&error);
        assert!(
            why.contains("tail_calls are not allowed in non-JITed programs with bpf-to-bpf calls"),
            "{why}"
        );
        skip("functions that call stages, as in this test's own program, came to arm64 with Linux 6.0");
        return;
    }
    let program: &SchedClassifier = kernel.programs.program("bench_echo").unwrap().try_into().unwrap();
    let packet = Ip::between(v4(1), v4(2)).frame(TCP, &Tcp::stamped(1, 2).bytes());
    let options = TestRunOptions { data_in: Some(&packet), repeat: SAMPLES, ..TestRunOptions::new() };
    program.test_run(options).unwrap();

    let counted = kernel.counters.sum(interface_id);
    let lost = counted.lost[Lost::Rtt as usize];
    let mut read = 0;
    while !drain(&mut kernel.events, |event| read += u64::from(matches!(event, Event::Rtt(_)))) {}
    let samples: u64 = counted.samples.iter().flatten().sum();
    assert!(lost > 0 && read > 0, "{read} events were read, and {lost} lost");
    assert_eq!((samples, read + lost), (u64::from(SAMPLES) - 1, samples));
}
