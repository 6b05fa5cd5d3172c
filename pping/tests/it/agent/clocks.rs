//! Both clocks of a process can differ from those of the kernel programs, and be set.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use pping_lab::{Namespace, Process, Signal, Topology};
use serde_json::Value;

use super::{
    formats::records,
    monitor::{ENDING, MEASURING, PATIENCE, PPING, interrupt, ok, ping, topology, wait_until},
};

const SECOND: u64 = 1_000_000_000;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Starts pping by another program, which takes the command as its last arguments.
fn start(mut command: Command, arguments: &str) -> Process {
    let arguments = format!("-i {} -v --rate-limit 0 {arguments}", Topology::WAN);
    command.arg(PPING).args(arguments.split_whitespace());
    let mut pping = ok(Process::spawn(command));
    ok(pping.wait_for_output(MEASURING, PATIENCE));
    pping
}

#[test]
fn records_in_a_time_namespace_have_the_right_time() {
    let topology = topology();
    for offset in ["100000", "-1"] {
        let mut unshare = topology.router().command("unshare");
        unshare.args(["-T", "--monotonic", offset]);
        let pping = start(unshare, "--format jsonl");
        let begun = now();
        ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.1");
        let output = interrupt(pping);
        let samples: Vec<Value> =
            records(&output).into_iter().filter(|record| record["rtt"].is_u64()).collect();
        assert_eq!(samples.len(), 5, "{output}");
        for sample in samples {
            let timestamp = sample["timestamp"].as_u64().unwrap();
            assert!((begun..now()).contains(&timestamp), "{timestamp} is not after {begun}");
        }
    }
}

/// A program that shows pping a wall clock which another file sets, and nothing else.
fn with_clock(host: &Namespace, file: &Path) -> Command {
    let mut command = host.command("env");
    let multiarch = format!("/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1", std::env::consts::ARCH);
    command.arg(format!("LD_PRELOAD={multiarch}"));
    command.arg(format!("FAKETIME_TIMESTAMP_FILE={}", file.display()));
    command.args(["FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_RESET=1"]);
    command
}

#[test]
fn interval_lengths_ignore_wall_clock_steps() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let (clock, log) = (directory.path().join("clock"), directory.path().join("rtts.hlog"));
    fs::write(&clock, "-20000d\n").unwrap();
    let arguments = format!("--format jsonl --aggregate 1h --hdr-log {}", log.display());
    let begun = Instant::now();
    let mut pping = start(with_clock(topology.router(), &clock), &arguments);
    // As after NTP has answered on a router without a clock of its own, and back.
    for (times, set) in [(1, "+0"), (2, "-5"), (3, "-20000d")] {
        ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
        fs::write(&clock, format!("{set}\n")).unwrap();
        wait_until("the interval ends", || {
            ok(pping.stderr()).matches("the wall clock was set").count() == times
        });
    }
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
    ok(pping.stop(Signal::SIGINT, ENDING));
    let passed = begun.elapsed().as_nanos() as u64 + SECOND;
    let output = ok(pping.stdout());
    let intervals: Vec<Value> = records(&output).into_iter().filter(|it| it["interval"].is_u64()).collect();
    let length = |it: &Value| (it["timestamp"].as_u64().unwrap(), it["interval"].as_u64().unwrap());
    let lengths: BTreeMap<u64, u64> = intervals.iter().map(length).collect();
    assert!(lengths.len() >= 4 && lengths.values().sum::<u64>() < passed, "{lengths:?} of {passed}");
    let samples: u64 = intervals.iter().map(|it| it["count"].as_u64().unwrap()).sum();
    assert_eq!(samples, 16, "{output}");
    let said = ok(pping.stderr());
    assert_eq!(said.matches("the wall clock was set").count(), 3, "{said}");
    let lines = fs::read_to_string(&log).unwrap();
    let in_log: Vec<f64> = lines
        .lines()
        .filter(|line| line.starts_with("Tag="))
        .map(|line| line.split(',').nth(2).unwrap().parse().unwrap())
        .collect();
    assert!(in_log.len() >= 4 && in_log.iter().sum::<f64>() < passed as f64 / 1e9, "{lines}");
}
