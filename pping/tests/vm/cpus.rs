//! The packets of one flow pass on several CPUs at once, while tables fill and empty, groups are reloaded and
//! interfaces come and go: `cargo xtask vm --cpus 8 cpus`.
//!
//! No sample may be wrong, each packet must be counted, and the packets that pping says it skipped must explain each
//! missing sample. tcpdump on the same interface is the reference; `comparison` has the rules.

mod assignment;
mod cable;
mod comparison;
mod counted;
mod disturbance;
mod lanes;
mod outcome;
mod scripts;
mod seen;

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{
    Signal,
    traffic::{Behaviour, Server},
};

use self::{
    cable::{Cable, FAR, NEAR},
    counted::Counted,
    disturbance::{Fills, GROUPS, come_and_go, converse, crowd, reload},
    lanes::{Ends, Progress, play},
    outcome::{Outcome, records},
    scripts::{Kind, Script},
};
use super::{
    capture::Capture,
    http::LISTEN,
    monitor::{PATIENCE, ok, pping, wait_until, watch_with},
    report::skip,
};

/// With fewer CPUs, packets of a flow hardly ever meet.
const FEWEST_CPUS: usize = 4;

/// Three flows of each kind and family in each of two lanes. The table also has room for the conversations, but not for
/// many more flows.
const LANES: usize = 2;
const FLOWS_PER_KIND: u16 = 3;
const MAX_FLOWS: u32 = 256;
/// The least number of script steps by which a run can be compared, and how much longer a run may take to reach it.
const FEWEST_STEPS: usize = 400;
const LONGER: Duration = Duration::from_mins(2);

/// Returns the number of CPUs if that is enough, and otherwise reports that the test is skipped.
fn cpus() -> Option<usize> {
    let cpus = thread::available_parallelism().unwrap().get();
    if cpus < FEWEST_CPUS {
        skip(&format!("{cpus} CPU of the machine; `cargo xtask vm --cpus 8 cpus` gives it several"));
        return None;
    }
    Some(cpus)
}

/// Returns the scripts of a lane.
fn scripts(lane: usize) -> Vec<Script> {
    let mut scripts = Vec::new();
    for number in 0..FLOWS_PER_KIND {
        for (offset, kind) in (0..).zip(Kind::ALL) {
            for is_ipv6 in [false, true] {
                let port = 20_000 + 1000 * lane as u16 + 100 * offset + number;
                scripts.push(Script::new(kind, is_ipv6, port));
            }
        }
    }
    scripts
}

/// Runs everything at once for `length` or longer, until the table has filled `fewest_fills` times.
fn everything_at_once(ingress: &str, length: Duration, fewest_fills: usize) {
    let Some(cpus) = cpus() else { return };
    let cable = Cable::new(cpus);
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    fs::write(&groups, GROUPS[0]).unwrap();
    let arguments = format!(
        "-v -i {NEAR} -i extra* --ingress {ingress} --rate-limit 0 --max-flows {MAX_FLOWS} --format jsonl \
         --flow-summary --with-samples --include-local --groups {} {LISTEN}",
        groups.display()
    );
    let began = Instant::now();
    let mut pping = watch_with(pping(&cable.near, &arguments), NEAR);
    println!("pping watches after {:.1} s", began.elapsed().as_secs_f64());
    let capture = ok(Capture::start(&cable.near, NEAR, &directory.path().join("reference.pcap"), ""));
    let before = Counted::once_quiet(&cable, None);
    let _steering = cable.steer(cpus, ingress);
    let servers = [&cable.near, &cable.far].map(|host| ok(Server::start(host, 0, Behaviour::Echo)));

    let ends = Ends { near: (&cable.near, NEAR), far: (&cable.far, FAR), is_by_queue: ingress == "xdp" };
    let (is_over, fills, progress) = (AtomicBool::new(false), Fills::default(), Progress::default());
    let began = Instant::now();
    thread::scope(|scope| {
        let (is_over, cable, fills, progress) = (&is_over, &cable, &fills, &progress);
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| scope.spawn(move || play(ends, scripts(lane), lane, cpus, is_over, progress)))
            .collect();
        // All flows begin while the table has room.
        wait_until("all flows have begun", || progress.opened.load(Relaxed) == LANES);
        println!("{:.1} s: all flows have begun", began.elapsed().as_secs_f64());
        converse(scope, cable, &servers, length);
        let comings = scope.spawn(|| come_and_go(cable, is_over));
        let reloads = scope.spawn(|| reload(&pping, &groups, is_over));
        scope.spawn(|| crowd(ends, cpus, &cable.near, is_over, fills));
        // On a busy machine it takes longer until enough has happened.
        let (least, most) = (Instant::now() + length, Instant::now() + length + LONGER);
        let is_enough =
            || progress.steps.load(Relaxed) >= FEWEST_STEPS && fills.filled.load(Relaxed) >= fewest_fills;
        while Instant::now() < least || Instant::now() < most && !is_enough() {
            thread::sleep(Duration::from_millis(100));
        }
        is_over.store(true, Relaxed);
        for lane in lanes {
            lane.join().unwrap();
        }
        println!(
            "{:.1} s: {} steps, {} interfaces came and went, {} reloads, the table filled {} times and emptied {} times",
            began.elapsed().as_secs_f64(),
            progress.steps.load(Relaxed),
            comings.join().unwrap(),
            reloads.join().unwrap(),
            fills.filled.load(Relaxed),
            fills.emptied.load(Relaxed)
        );
    });
    drop(servers);
    let filled = fills.filled.load(Relaxed);
    assert!(filled >= fewest_fills, "filled {filled} times; pping said:\n{}", ok(pping.stderr()));
    let after = Counted::once_quiet(&cable, Some(&before));
    let file = ok(capture.finish());
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let (samples, summaries) = records(&ok(pping.stdout()));
    let said = ok(pping.stderr());
    let outcome = Outcome { samples, summaries, packets: seen::read(&file), before, after, said };
    // Interfaces that go take their filters along.
    assert!(!outcome.said.contains("another program"), "{}", outcome.said);
    outcome.assert_all_counted();
    outcome.assert_flows_agree();
    outcome.assert_samples_agree();
}

#[test]
fn a_moment_at_tc() {
    everything_at_once("tc", Duration::from_secs(15), 1);
}

#[test]
fn a_moment_at_xdp() {
    everything_at_once("xdp", Duration::from_secs(15), 1);
}

#[test]
fn minutes_at_tc() {
    everything_at_once("tc", Duration::from_mins(2), 3);
}

#[test]
fn minutes_at_xdp() {
    everything_at_once("xdp", Duration::from_mins(2), 3);
}
