//! Receivers that are slow, refuse requests, or answer with garbage.

use pping_lab::{Namespace, Process, Topology};

use super::{RECEIVING, Receiver, counted, served, url, warnings};
use crate::agent::{
    http::LISTEN,
    monitor::{endless_ping, interrupt, ok, topology, wait_until, watch},
};

/// How many more bytes may be resident after a receiver misbehaved. An endless answer would have gigabytes.
const GROWTH: f64 = 24e6;

const FAILED: &str = "pping_otlp_attempts_failed_total";
const DROPPED: &str = "pping_otlp_requests_dropped_total";
const ACCEPTED: &str = "pping_otlp_requests_total";

fn samples(host: &Namespace) -> f64 {
    served(host).sum("pping_rtt_seconds_count", &[]).unwrap_or(0.0)
}

fn memory(host: &Namespace) -> f64 {
    served(host).sum("process_resident_memory_bytes", &[]).unwrap()
}

/// Starts a pping that measures endless pings and pushes to a receiver, and waits until the receiver has accepted some
/// points.
fn pushing(topology: &Topology, receiver: &Receiver<'_>) -> (Process, Process) {
    let options = format!("{LISTEN} --rate-limit 0 --format none --otlp-interval 1s {}", url(RECEIVING));
    let pping = watch(topology.router(), Topology::WAN, &options);
    let pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    wait_until("the first points", || !receiver.points().is_empty());
    (pping, pings)
}

/// Makes the receiver misbehave. Asserts that pping counts the failures, warns once when they begin and once when they
/// end, keeps measuring, and delivers requests afterwards. Returns the warning, and the number of dropped requests.
#[track_caller]
fn misbehave(
    host: &Namespace,
    receiver: &Receiver<'_>,
    pping: &Process,
    mode: &str,
    reason: &str,
) -> (String, f64) {
    let (failures, dropped) = (counted(host, FAILED, reason), counted(host, DROPPED, "refused"));
    let (said, again) = (warnings(pping, ""), warnings(pping, "again, after"));
    let memory_before = memory(host);
    receiver.set(mode);
    wait_until(&format!("{mode}: two failures"), || counted(host, FAILED, reason) >= failures + 2.0);
    let during = samples(host);
    wait_until(&format!("{mode}: samples"), || samples(host) >= during + 20.0);
    assert_eq!(warnings(pping, ""), said + 1, "{mode}: {}", ok(pping.stderr()));
    let log = ok(pping.stderr());
    let line = log.lines().rfind(|line| line.contains("--otlp")).unwrap().to_owned();
    let dropped = counted(host, DROPPED, "refused") - dropped;
    let growth = memory(host) - memory_before;
    assert!(growth < GROWTH, "{mode}: {growth} bytes more");
    let accepted = counted(host, ACCEPTED, "");
    receiver.set("accept");
    wait_until(&format!("{mode}: it accepts again"), || counted(host, ACCEPTED, "") > accepted);
    wait_until("it says so", || warnings(pping, "again, after") == again + 1);
    assert_eq!(warnings(pping, ""), said + 2, "{mode}: {}", ok(pping.stderr()));
    (line, dropped)
}

#[test]
fn otlp_retries_only_transient_refusals() {
    let topology = topology();
    let host = topology.router();
    let receiver = Receiver::start(host);
    let (pping, _pings) = pushing(&topology, &receiver);
    for status in [429, 502, 503, 504] {
        let mode = format!("status {status}");
        let (said, dropped) = misbehave(host, &receiver, &pping, &mode, "status");
        assert!(said.contains(&status.to_string()) && said.contains("not now"), "{said}");
        assert!(dropped.abs() < 0.5, "{status}: {dropped} dropped");
    }
    for status in [301, 400, 401, 404, 413, 500] {
        let mode = format!("status {status}");
        let (said, dropped) = misbehave(host, &receiver, &pping, &mode, "status");
        assert!(said.contains(&status.to_string()), "{said}");
        assert!(dropped > 0.5, "{status}: none dropped");
    }
    // The receiver says how many seconds to wait before the next request (`Retry-After`).
    let before = receiver.requests().len();
    receiver.set("status 503 4");
    wait_until("a refusal", || receiver.requests().len() > before);
    receiver.set("accept");
    wait_until("another request", || receiver.requests().len() > before + 1);
    let times: Vec<f64> =
        receiver.requests()[before..].iter().map(|request| request["at"].as_f64().unwrap()).collect();
    assert!(times[1] - times[0] > 3.9, "{times:?}");
    interrupt(pping);
}

#[test]
fn otlp_garbage_and_endless_answers_are_bounded() {
    let topology = topology();
    let host = topology.router();
    let receiver = Receiver::start(host);
    let (pping, _pings) = pushing(&topology, &receiver);
    for mode in ["garbage", "page", "endless", "endless-head"] {
        let (said, _) = misbehave(host, &receiver, &pping, mode, "answer");
        assert!(said.contains("http://127.0.0.1:4318/v1/metrics"), "{said}");
    }
    interrupt(pping);
}

#[test]
fn otlp_a_receiver_that_never_answers_is_given_up_on() {
    let topology = topology();
    let host = topology.router();
    let receiver = Receiver::start(host);
    let (pping, _pings) = pushing(&topology, &receiver);
    let (said, _) = misbehave(host, &receiver, &pping, "hang", "timeout");
    assert!(said.contains("no answer within"), "{said}");
    // It has said that it accepted them, so they are not sent again.
    let (said, dropped) = misbehave(host, &receiver, &pping, "drip", "answer");
    assert!(said.contains("no end within 10 s") && dropped > 0.5, "{said}, {dropped} dropped");
    interrupt(pping);
}

#[test]
fn otlp_rejected_points_are_counted_and_logged_once() {
    let topology = topology();
    let host = topology.router();
    let receiver = Receiver::start(host);
    let (pping, _pings) = pushing(&topology, &receiver);
    receiver.set("partial 7");
    let rejected = || counted(host, "pping_otlp_points_rejected_total", "");
    wait_until("three requests", || rejected() >= 21.0);
    assert!((rejected() % 7.0).abs() < 0.5, "{}", rejected());
    assert_eq!(warnings(&pping, "rejected 7 of its data points (too old)"), 1);
    assert_eq!(warnings(&pping, ""), 1, "{}", ok(pping.stderr()));
    assert!(counted(host, DROPPED, "refused").abs() < 0.5);
    interrupt(pping);
}
