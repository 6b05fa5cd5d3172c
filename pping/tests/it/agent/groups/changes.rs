//! What a change does to packets.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use pping_lab::{Process, Signal, Topology};
use serde_json::{Value, json};

use super::client::{Agent, Client, OPTIONS};
use crate::agent::{
    http::scrape,
    monitor::{interrupt, ok, ping, wait_until},
};

/// The clock of records and that of this test may differ by this much, in ns.
const CLOCKS: u64 = 2_000_000;

/// The time of the wall clock, ns.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Pings the server a thousand times a second: four flows, each with fewer pings on their way than it has room for.
fn quick_pings(topology: &Topology) -> [Process; 4] {
    [(); 4].map(|()| {
        let mut ping = topology.client().command("ping");
        ping.args(["-q", "-i0.004"]).arg(Topology::SERVER_IPV4.to_string());
        ok(Process::spawn(ping))
    })
}

/// The groups of round trips of pings to the server, with their times, in order.
fn groups(written: &str) -> Vec<(u64, String)> {
    let records = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_ping = |record: &Value| record["type"] == "rtt" && record["method"] == "icmp-echo";
    let mut groups: Vec<_> = records
        .filter(of_ping)
        .map(|record| {
            (record["timestamp"].as_u64().unwrap(), record["group"].as_str().unwrap_or("unlisted").to_owned())
        })
        .collect();
    groups.sort();
    groups
}

#[test]
fn a_change_is_in_force_when_it_is_answered() {
    let agent = Agent::new(None, "--format jsonl");
    let mut client = agent.connect();
    let pings = quick_pings(&agent.topology);
    wait_until("pings are measured", || agent.samples_of("unlisted") > 100);
    let mut changes = vec![(0, 0, "unlisted".to_owned())];
    for number in 0..20 {
        let label = format!("customer-{number}");
        let asked = now();
        client.add("10.11.2.2", &label);
        changes.push((asked, now(), label));
        thread::sleep(Duration::from_millis(37));
    }
    let asked = now();
    client.remove("10.11.2.2");
    changes.push((asked, now(), "unlisted".to_owned()));
    thread::sleep(Duration::from_millis(100));
    drop(pings);
    let groups = groups(&interrupt(agent.process));
    let mut delays = Vec::new();
    for (index, (asked, answered, label)) in changes.iter().enumerate() {
        let end = changes.get(index + 1).map_or(u64::MAX, |(next, ..)| *next);
        let under: Vec<_> =
            groups.iter().filter(|(time, _)| *time > answered + CLOCKS && *time + CLOCKS < end).collect();
        assert!(under.len() >= 5, "{} samples under {label}", under.len());
        let others: Vec<_> = under.iter().filter(|(_, group)| group != label).collect();
        assert!(others.is_empty(), "after {label} at {answered}: {others:?}");
        let first = groups.iter().find(|(time, group)| time + CLOCKS > *asked && group == label);
        delays.push(first.unwrap().0.saturating_sub(*asked) / 1000);
    }
    // The first one is no change.
    let worst = delays.iter().skip(1).max().unwrap();
    let answers: Vec<u64> =
        changes.iter().skip(1).map(|(asked, answered, _)| (answered - asked) / 1000).collect();
    eprintln!("from the request to its answer, us: {answers:?}");
    eprintln!("from the request to the first sample under the new label, us: {:?}", &delays[1..]);
    assert!(*worst < 1_000_000, "{delays:?}");
}

#[test]
fn no_sample_is_lost_or_counted_twice_while_an_address_moves() {
    const PINGS: u64 = 600;
    let agent = Agent::new(Some("10.11.1.0/24,clients\n10.11.2.0/24,servers\n"), OPTIONS);
    ping(agent.topology.server(), Topology::CLIENT_IPV4, "-c5 -i0.01");
    let topology = &agent.topology;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut client, mut number) = (agent.connect(), 0);
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                client.add("10.11.2.2", &format!("customer-{}", number % 5));
                thread::sleep(Duration::from_millis(3));
            }
            client.add("10.11.2.2", "last");
        });
        ping(topology.client(), Topology::SERVER_IPV4, &format!("-q -c{PINGS} -i0.01"));
        is_over.store(true, Ordering::Relaxed);
    });
    let labels: Vec<String> = (0..5).map(|number| format!("customer-{number}")).collect();
    let of_customers = || labels.iter().map(|label| agent.samples_of(label)).collect::<Vec<_>>();
    let sum = || of_customers().iter().sum::<u64>() + agent.samples_of("last") + agent.samples_of("servers");
    // The last second counts when it is over.
    thread::sleep(Duration::from_secs(3));
    let all = scrape(agent.topology.router());
    let counts: Vec<_> =
        all.0.lines().filter(|line| line.contains("_count{") || line.contains("skipped")).collect();
    assert_eq!(sum(), PINGS, "{counts:#?}");
    let before = of_customers();
    assert!(before.iter().all(|&count| count > 0), "{before:?}");
    ping(topology.client(), Topology::SERVER_IPV4, "-c50 -i0.01");
    wait_until("all samples", || sum() >= PINGS + 50);
    assert_eq!((sum(), of_customers()), (PINGS + 50, before));
    // Another prefix was not touched.
    let mut client = agent.connect();
    client.remove("10.11.2.2");
    let expected = [("10.11.1.0/24", "clients"), ("10.11.2.0/24", "servers")];
    let expected = expected.map(|(prefix, label)| (prefix.to_owned(), label.to_owned(), "file".to_owned()));
    assert_eq!(client.list(), expected);
    let servers = agent.samples_of("servers");
    ping(topology.client(), Topology::SERVER_IPV4, "-c10 -i0.01");
    wait_until("the file counts again", || agent.samples_of("servers") == servers + 10);
    interrupt(agent.process);
}

/// The prefix of a number.
fn prefix(number: u32) -> String {
    let [a, b, c, d] = (100 << 24 | number).to_be_bytes();
    format!("{a}.{b}.{c}.{d}/32")
}

fn add_many(client: &mut Client, numbers: std::ops::Range<u32>, label: impl Fn(u32) -> String) {
    for start in numbers.clone().step_by(500) {
        let mut lines = String::new();
        for number in start..numbers.end.min(start + 500) {
            let request = json!({"op": "add", "prefix": prefix(number), "label": label(number)});
            lines.extend([request.to_string().as_str(), "\n"]);
        }
        client.send(lines.as_bytes());
        for _ in 0..lines.lines().count() {
            let answer = client.next().unwrap();
            assert_eq!(answer["ok"], true, "{answer}");
        }
    }
}

#[test]
fn tens_of_thousands_of_changes_are_made_while_pings_are_measured() {
    const CHANGES: u32 = 60_000;
    let agent = Agent::new(Some("10.11.2.0/24,servers\n"), OPTIONS);
    let mut client = agent.connect();
    let began = Instant::now();
    let pings = thread::scope(|scope| {
        let changes =
            scope.spawn(|| add_many(&mut client, 0..CHANGES, |number| format!("customer-{}", number / 2)));
        let mut pings = 0;
        while !changes.is_finished() {
            ping(agent.topology.client(), Topology::SERVER_IPV4, "-c20 -i0.01");
            pings += 20;
        }
        pings
    });
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{CHANGES} changes in {seconds:.2} s: {:.0} a second", f64::from(CHANGES) / seconds);
    wait_until("all samples", || agent.samples_of("servers") == pings);
    assert_eq!(agent.in_kernel(), 1 + CHANGES as usize);
    // Everything is said, but not in one line each.
    let said = ok(agent.process.stderr());
    assert!(said.lines().count() < 2000, "{} lines", said.lines().count());
    assert!(said.contains("in the last second also"), "{said}");
    assert!(seconds < 60.0, "{seconds} s");
    interrupt(agent.process);
}

#[test]
fn a_reload_loses_no_change_that_comes_meanwhile() {
    let mut agent = Agent::new(Some("10.11.2.0/24,servers\n"), OPTIONS);
    let file = |generation: u32| {
        let others = (0..30_000).map(|number| format!("{},file-{generation}\n", prefix(number)));
        format!("10.11.2.0/24,servers\n{}", others.collect::<String>())
    };
    let socket = agent.socket();
    let is_over = AtomicBool::new(false);
    let expected = thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let mut client = Client::connect(&socket);
            let (mut expected, mut number) = (BTreeMap::new(), 0_u32);
            while !is_over.load(Ordering::Relaxed) {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Half of them are in the file, too.
                let prefix = prefix((number >> 8) % 60_000);
                if expected.remove(&prefix).is_some() {
                    client.remove(&prefix);
                    continue;
                }
                let label = format!("socket-{}", number >> 24);
                client.add(&prefix, &label);
                expected.insert(prefix, label);
            }
            expected
        });
        for generation in 1..=3 {
            fs::write(agent.path("groups.csv"), file(generation)).unwrap();
            ok(agent.process.signal(Signal::SIGHUP));
            let said = "groups.csv: now 30001 prefixes of 2 groups";
            wait_until("it is read", || {
                ok(agent.process.stderr()).matches(said).count() == generation as usize
            });
            thread::sleep(Duration::from_millis(300));
        }
        is_over.store(true, Ordering::Relaxed);
        changes.join().unwrap()
    });
    assert!(expected.len() > 100, "{}", expected.len());
    let mut all: BTreeMap<String, (String, String)> = (0..30_000)
        .map(|number| (prefix(number), ("file-3".to_owned(), "file".to_owned())))
        .chain([("10.11.2.0/24".to_owned(), ("servers".to_owned(), "file".to_owned()))])
        .collect();
    all.extend(expected.into_iter().map(|(prefix, label)| (prefix, (label, "cli".to_owned()))));
    let listed: BTreeMap<_, _> =
        agent.connect().list().into_iter().map(|(prefix, label, source)| (prefix, (label, source))).collect();
    assert!(listed == all, "{} listed, {} expected", listed.len(), all.len());
    // The kernel has the same, once the old set is removed.
    wait_until("the old set is removed", || agent.in_kernel() == all.len());
    interrupt(agent.process);
}

#[test]
fn a_source_is_replaced_as_a_whole_and_others_stay() {
    let agent = Agent::new(Some("10.11.2.0/24,servers\n"), OPTIONS);
    let path = agent.path("radius.csv");
    let write = |text: &str| fs::write(&path, text).unwrap();
    let replace = || agent.command(&["replace", path.to_str().unwrap(), "--source", "radius"]);
    let rows = |list: &str| -> HashSet<String> { list.lines().skip(1).map(str::to_owned).collect() };
    let list = || rows(&agent.command(&["list"]).1);

    let (_, said) = agent.command(&["add", "10.11.2.2", "customer-2", "--column", "site=north"]);
    assert_eq!(said, "10.11.2.2/32: now customer-2\n");
    write(
        "prefix,group,site\n10.11.2.2,customer-3,south\n10.11.9.0/24,customer-9,\n2001:db8::/56,customer-9,\n",
    );
    assert_eq!(replace(), (true, "radius lists 3 prefixes now: 3 changed\n".to_owned()));
    let expected = [
        "10.11.2.0/24,servers,file,yes,,",
        "10.11.2.2/32,customer-2,cli,no,site=north,site=north",
        "10.11.2.2/32,customer-3,radius,yes,site=south,site=south",
        "10.11.9.0/24,customer-9,radius,yes,,",
        "2001:db8::/56,customer-9,radius,yes,,",
    ];
    assert_eq!(list(), expected.map(str::to_owned).into());
    write("10.11.9.0/24,customer-9\n");
    assert_eq!(replace(), (true, "radius lists 1 prefix now: 2 changed\n".to_owned()));
    let expected = [
        "10.11.2.0/24,servers,file,yes,,",
        "10.11.2.2/32,customer-2,cli,yes,site=north,site=north",
        "10.11.9.0/24,customer-9,radius,yes,,",
    ];
    assert_eq!(list(), expected.map(str::to_owned).into());
    assert_eq!(agent.in_kernel(), 3);
    let some = rows(&agent.command(&["list", "10.11.2.7"]).1);
    assert_eq!(some, [expected[0].to_owned()].into());
    let some = rows(&agent.command(&["list", "customer-9"]).1);
    assert_eq!(some, [expected[2].to_owned()].into());
    for (source, row) in [("file", 0), ("cli", 1), ("radius", 2)] {
        let of_source = rows(&agent.command(&["list", "--source", source]).1);
        assert_eq!(of_source, [expected[row].to_owned()].into(), "{source}");
    }
    let (succeeded, said) = agent.command(&["remove", "10.11.2.0/24", "--source", "file"]);
    assert!(!succeeded && said.contains("--source: `file` stands for the groups file"), "{said}");
    // A file with an error changes nothing, and neither does a client that goes away.
    write("10.11.9.0/24,customer-9\n10.11.9.1/24,customer-1\n");
    let (succeeded, said) = replace();
    assert!(!succeeded && said.contains("radius.csv:2:1: 10.11.9.1/24 has bits set"), "{said}");
    let mut client = agent.connect();
    assert_eq!(client.ask(&json!({"op": "replace", "source": "radius"}))["ok"], true);
    client.add("10.11.8.0/24", "half");
    drop(client);
    assert_eq!(list(), expected.map(str::to_owned).into());
    write("10.11.7.0/24,customer-7\n10.11.9.0/24,customer-7\n");
    let (_, said) = agent.command(&["import", path.to_str().unwrap()]);
    assert_eq!(said, "1 prefix added, 1 moved, 0 with other columns, 0 as before\n");
    let (_, said) = agent.command(&["remove", "10.11.7.0/24", "10.11.9.0/24"]);
    assert_eq!(
        said,
        "10.11.7.0/24: removed, before customer-7\n10.11.9.0/24: now customer-9, before customer-7\n"
    );
    let (_, said) = agent.command(&["remove", "--all", "--source", "radius"]);
    assert_eq!(said, "radius: 1 prefix removed\n");
    assert_eq!(list(), expected[..2].iter().map(|row| (*row).to_owned()).collect());
    interrupt(agent.process);
}
