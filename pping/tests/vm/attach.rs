//! pping attaches at every attach point of a kernel, and leaves nothing attached.

use std::{process::Command, thread, time::Duration};

use pping_lab::{Namespace, Process, Signal, Topology, run};

use super::{
    features,
    monitor::{ENDING, PATIENCE, attachments, interrupt, ok, ping, tool, wait_until, watch},
    net::{FAMILIES, Net, ip},
    records::Records,
};

/// How long the kernel takes to clear a program array after its last descriptor was closed. If bpftool opens and closes
/// the array meanwhile, the kernel keeps it: each time, `prog_array_map_clear` takes a reference, but the work that it
/// schedules once returns only one.
const CLEARED: Duration = Duration::from_secs(1);

/// All BPF objects of the machine, and everything attached to an interface. Nothing else uses BPF here.
#[derive(Debug, PartialEq, Eq)]
struct Attached {
    programs: String,
    maps: String,
    links: String,
    interface: String,
}

impl Attached {
    fn see(host: &Namespace, interface: &str) -> Self {
        let show = |kind| tool("bpftool", &["--json", kind, "show"]).1;
        Self {
            programs: show("prog"),
            maps: show("map"),
            links: show("link"),
            interface: attachments(host, interface),
        }
    }
}

/// Returns the name of the kernel's attach point at tc.
fn tc_attach_point() -> &'static str {
    if features::has_tcx() { "tcx" } else { "clsact" }
}

/// Watches, measures, ends by `signal`, and asserts that nothing is left, if necessary after `pping cleanup`.
fn comes_and_goes(interface: &str, ingress: &str, attach_point: &str, signal: Signal) {
    let net = Net::new();
    let before = Attached::see(&net.router, interface);
    let mut pping = watch(&net.router, interface, &format!("--rate-limit 0 --ingress {ingress}"));
    let watching = format!("watching {interface} at {attach_point} and {}", tc_attach_point());
    let said = ok(pping.stderr());
    assert!(said.contains(&watching), "not `{watching}`: {said}");
    assert_ne!(Attached::see(&net.router, interface), before);
    if interface == Topology::WAN {
        for family in FAMILIES {
            ping(&net.client, family.server(), "-c3 -i0.1");
        }
        wait_until("a sample of each reply", || Records::parse(&ok(pping.stdout())).samples.len() == 6);
    }
    ok(pping.signal(signal));
    ok(pping.wait_timeout(ENDING));
    if signal == Signal::SIGKILL && !features::has_tcx() {
        // Unlike links, filters do not end with the process.
        ok(run(&mut super::monitor::pping(&net.router, "cleanup")));
    }
    thread::sleep(CLEARED);
    wait_until("nothing is left", || Attached::see(&net.router, interface) == before);
}

#[test]
fn at_tc() {
    comes_and_goes(Topology::WAN, "tc", tc_attach_point(), Signal::SIGTERM);
}

#[test]
fn at_xdp_in_the_driver() {
    comes_and_goes(Topology::WAN, "xdp", "xdp-native", Signal::SIGTERM);
}

#[test]
fn at_xdp_in_the_stack() {
    comes_and_goes("lo", "xdp", "xdp-generic", Signal::SIGTERM);
}

#[test]
fn a_kill_at_tc() {
    comes_and_goes(Topology::WAN, "tc", tc_attach_point(), Signal::SIGKILL);
}

#[test]
fn a_kill_at_xdp() {
    comes_and_goes(Topology::WAN, "xdp", "xdp-native", Signal::SIGKILL);
}

/// This also holds if filters stay at tc: the next run must be able to attach.
#[test]
fn after_a_kill_the_next_run_measures() {
    let net = Net::new();
    let mut killed = watch(&net.router, Topology::WAN, "--rate-limit 0");
    ok(killed.signal(Signal::SIGKILL));
    ok(killed.wait_timeout(ENDING));
    let next = watch(&net.router, Topology::WAN, "--rate-limit 0");
    ping(&net.client, Topology::SERVER_IPV4, "-c3 -i0.1");
    assert_eq!(Records::parse(&interrupt(next)).samples.len(), 3);
}

#[test]
fn an_interface_may_go_and_come() {
    let net = Net::new();
    let make = || {
        ip(&net.router, "link add extra0 type veth peer name extra1");
        ip(&net.router, "link set extra0 up");
        ip(&net.router, "link set extra1 up");
    };
    let mut pping: Process = watch(&net.router, Topology::WAN, "-i extra*");
    for number in 1..=3 {
        make();
        wait_until("the interface is watched", || {
            ok(pping.stderr()).matches("watching extra0 at").count() == number
        });
        ip(&net.router, "link delete extra0");
    }
    ok(pping.stop(Signal::SIGTERM, PATIENCE));
    assert!(!ok(run(Command::new("bpftool").args(["link", "show"]))).contains("pping"));
}
