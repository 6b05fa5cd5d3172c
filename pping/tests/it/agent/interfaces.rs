//! Which interfaces are watched, and what happens when one disappears.

use std::{
    collections::BTreeMap,
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use pping_lab::{Namespace, Process, Signal, Topology, run};
use serde_json::Value;

use super::{
    formats::records,
    host::Host,
    http::{LISTEN, PORT, get, scrape},
    leftovers::objects,
    monitor::{ENDING, PATIENCE, interrupt, ok, ping, pping, topology, wait_until, watch, watch_with},
};

/// Counts the samples by interface and by whether the echo left through it.
fn samples_by_interface(jsonl: &str) -> BTreeMap<(String, bool), usize> {
    let mut samples = BTreeMap::new();
    for record in records(jsonl) {
        if let Some(egress) = record["match_on_egress"].as_bool() {
            let interface = record["interface"].as_str().unwrap().to_owned();
            *samples.entry((interface, egress)).or_default() += 1;
        }
    }
    samples
}

#[test]
fn two_interfaces_are_counted_apart() {
    let topology = topology();
    let arguments = format!("-v -i {} -i {} --rate-limit 0", Topology::LAN, Topology::WAN);
    let pping = watch_with(pping(topology.router(), &arguments), Topology::WAN);
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
    let expected = BTreeMap::from([((Topology::LAN.into(), true), 4), ((Topology::WAN.into(), false), 4)]);
    let output = interrupt(pping);
    assert_eq!(samples_by_interface(&output), expected, "{output}");
}

#[test]
fn an_interface_given_twice_is_watched_once() {
    let topology = topology();
    let arguments = format!("-i {} --rate-limit 0", Topology::WAN);
    let pping = watch(topology.router(), Topology::WAN, &arguments);
    ping(topology.client(), Topology::SERVER_IPV4, "-c4 -i0.1");
    let expected = BTreeMap::from([((Topology::WAN.into(), false), 4)]);
    let output = interrupt(pping);
    assert_eq!(samples_by_interface(&output), expected, "{output}");
}

/// True if the metrics say that an interface is watched.
pub(super) fn is_watched(host: &Namespace, interface: &str) -> bool {
    // An interface has one series per attach point; with one attach point for both directions, it has one.
    scrape(host)
        .sum("pping_interface_up", &[("interface", interface)])
        .is_some_and(|attached| attached >= 1.0)
}

fn ip(host: &Namespace, arguments: &str) {
    ok(run(host.command("ip").args(arguments.split_whitespace())));
}

/// Returns the packets in and out of an interface, first as the kernel counts them, then as pping does.
pub(super) fn packet_counts(host: &Namespace, interface: &str) -> [[u64; 2]; 2] {
    let shown = ok(run(host.command("ip").args(["-s", "-j", "link", "show", "dev", interface])));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let by_kernel = ["rx", "tx"].map(|direction| shown[0]["stats64"][direction]["packets"].as_u64().unwrap());
    let exposition = scrape(host);
    let by_pping = ["ingress", "egress"].map(|direction| {
        let labels = [("interface", interface), ("direction", direction)];
        exposition.sum("pping_packets_total", &labels).unwrap_or(0.0) as u64
    });
    [by_kernel, by_pping]
}

/// Starts pping on a host, with interfaces selected by a pattern.
pub(super) fn watch_pattern(host: &Host, arguments: &str) -> Process {
    ip(&host.namespace, "link set lo up");
    let arguments = format!("-v --format none {LISTEN} {arguments}");
    let mut pping = ok(Process::spawn(pping(&host.namespace, &arguments)));
    wait_until("pping is ready", || {
        assert_eq!(ok(pping.status()), None, "{}", ok(pping.stderr()));
        get(&host.namespace, PORT, "/readyz", "*/*").is_some_and(|response| response.status == 200)
    });
    pping
}

/// Creates a pair of interfaces, waits until pping watches one of them, and sends packets through it. Returns how long
/// it took to be watched, and the packets that the kernel counted.
fn make_and_use(host: &Namespace, name: &str, packets: u32) -> (Duration, [u64; 2]) {
    ip(host, &format!("link add {name} type veth peer name far0"));
    let made = Instant::now();
    wait_until("it is watched", || is_watched(host, name));
    let took = made.elapsed();
    ip(host, "link set far0 up");
    ip(host, &format!("link set {name} up"));
    // Pings all hosts without multicast loopback (`-L`), which would count as incoming packets.
    let mut ping = host.command("ping");
    ping.args(["-q", "-L", "-i0.01", "-W1", &format!("-c{packets}"), "-I", name, "ff02::1"]);
    // ping exits with 1 if no reply came in time, as on a busy machine. The packets are counted anyway.
    assert!(matches!(ping.stdout(Stdio::null()).status().unwrap().code(), Some(0 | 1)));
    ip(host, "link set far0 down");
    let [by_kernel, _] = packet_counts(host, name);
    ip(host, &format!("link delete {name}"));
    (took, by_kernel)
}

#[test]
fn interfaces_come_and_go_and_none_of_their_packets_is_missed() {
    let host = Host::new();
    let pping = watch_pattern(&host, "-i dial*");
    let mut sums = [0; 2];
    for round in 0..12 {
        let (took, counted) = make_and_use(&host.namespace, "dial0", 5);
        assert!(took < PATIENCE, "{took:?}");
        sums = std::array::from_fn(|direction| sums[direction] + counted[direction]);
        wait_until(&format!("it is reported gone, round {round}"), || !is_watched(&host.namespace, "dial0"));
    }
    let count = |direction| {
        let labels = [("interface", "dial0"), ("direction", direction)];
        scrape(&host.namespace).sum("pping_packets_total", &labels).unwrap_or(0.0) as u64
    };
    wait_until(&format!("all packets, {sums:?}, of all of them"), || {
        let now = ["ingress", "egress"].map(count);
        // Packets that the kernel sends after the cable was removed pass the programs, but the kernel drops them
        // uncounted.
        assert!(now[0] <= sums[0] && now[1] <= sums[1] + 12 * 5, "{now:?} and {sums:?}");
        now[0] == sums[0] && now[1] >= sums[1]
    });
    assert!(sums.iter().all(|&sum| sum >= 12 * 5), "{sums:?}");
    let said = ok(pping.stderr());
    // It is gone, or was made again before pping looked.
    assert_eq!(said.matches("is not watched any more").count(), 12, "{said}");
    assert_eq!(said.matches("is watched again").count(), 11, "{said}");
    interrupt(pping);
}

#[test]
fn hundreds_of_interfaces_leave_nothing_behind() {
    let host = Host::new();
    let pping = watch_pattern(&host, "-i dial* --wait -i eth0");
    let open = || fs::read_dir(format!("/proc/{}/fd", pping.id())).unwrap().count();
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", pping.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let churn = |first: u32| {
        // These interfaces come and go faster than pping can follow: some are gone before it sees them.
        for number in first..first + 150 {
            let name = format!("dial{}", number % 7);
            ip(&host.namespace, &format!("link add {name} type veth peer name far0"));
            ip(&host.namespace, &format!("link set {name} up"));
            if number % 3 == 0 {
                ip(&host.namespace, &format!("link set {name} down"));
                ip(&host.namespace, &format!("link set {name} name dial9{}", number % 10));
                ip(&host.namespace, &format!("link delete dial9{}", number % 10));
            } else {
                ip(&host.namespace, &format!("link delete {name}"));
            }
        }
        wait_until("all of them are gone", || {
            let up = scrape(&host.namespace).sum("pping_interface_up", &[]);
            up == Some(1.0)
        });
    };
    churn(0);
    let (held, descriptors, before) = (objects(&pping), open(), memory());
    churn(1000);
    churn(2000);
    assert_eq!(objects(&pping), held);
    // The scrape itself may have a descriptor open.
    assert!(open().abs_diff(descriptors) <= 1, "{} and {descriptors}", open());
    assert!(memory() < before + before / 4 + 2048, "{} KiB, and {before} before", memory());
    interrupt(pping);
}

#[test]
fn a_renamed_interface_is_watched_by_its_name() {
    let host = Host::new();
    let pping = watch_pattern(&host, "-i eth* -i wan7 --wait");
    assert!(is_watched(&host.namespace, "eth0"));
    ip(&host.namespace, "link set eth0 down");
    ip(&host.namespace, "link set eth0 name lan0");
    wait_until("it is not watched", || !is_watched(&host.namespace, "eth0"));
    ip(&host.namespace, "link set lan0 name wan7");
    wait_until("it is watched", || is_watched(&host.namespace, "wan7"));
    ip(&host.namespace, "link set wan7 name eth0");
    wait_until("it is watched again", || {
        is_watched(&host.namespace, "eth0") && !is_watched(&host.namespace, "wan7")
    });
    interrupt(pping);
}

#[test]
fn a_deleted_interface_does_not_end_it_and_is_watched_once_back() {
    let host = Host::new();
    let pping = watch_pattern(&host, "-i eth0");
    ip(&host.namespace, "link delete eth0");
    wait_until("it is reported gone", || !is_watched(&host.namespace, "eth0"));
    ip(&host.namespace, "link add eth0 type veth peer name far0");
    wait_until("it is watched again", || is_watched(&host.namespace, "eth0"));
    interrupt(pping);
}

#[test]
fn unwatchable_interface_is_reported_once() {
    let host = Host::new();
    let taken = ok(Process::spawn(pping(&host.namespace, "-v -i eth0 --ingress xdp --format none")));
    wait_until("the attach point is taken", || ok(taken.stderr()).contains("watching eth0"));
    ip(&host.namespace, "link add dial0 type veth peer name far0");
    let pping = watch_pattern(&host, "--ingress xdp -i dial* -i eth*");
    assert!(is_watched(&host.namespace, "dial0"));
    let said = ok(pping.stderr());
    assert_eq!(said.matches("eth0: not watched").count(), 1, "{said}");
    interrupt(taken);
    wait_until("it is tried again", || is_watched(&host.namespace, "eth0"));
    interrupt(pping);
}

#[test]
fn a_missing_interface_is_an_error_without_wait() {
    let host = Host::new();
    let mut pping = ok(Process::spawn(pping(&host.namespace, "-i eth0 -i ppp0")));
    assert_eq!(ok(pping.wait_timeout(ENDING)).code(), Some(2));
    let said = ok(pping.stderr());
    assert!(said.contains("--interface ppp0: there is no such interface here"), "{said}");
    let pping = watch_pattern(&host, "-i eth0 -i ppp0 --wait");
    assert!(ok(pping.stderr()).contains("ppp0: there is no such interface yet; waiting for it"));
    ip(&host.namespace, "link add ppp0 type veth peer name far0");
    wait_until("it is watched", || is_watched(&host.namespace, "ppp0"));
    interrupt(pping);
}

#[test]
fn other_interfaces_may_come_and_go() {
    let host = Host::new();
    let mut pping = watch(&host.namespace, Host::ETH, "");
    for change in
        ["link add v0 type veth peer name v1", "link set v0 up", "link delete v0", "link set eth0 down"]
    {
        ok(run(host.namespace.command("ip").args(change.split_whitespace())));
    }
    let early = pping.wait_timeout(Duration::from_millis(500));
    assert!(early.is_err(), "{}", ok(pping.stderr()));
    ok(pping.stop(Signal::SIGINT, ENDING));
}
