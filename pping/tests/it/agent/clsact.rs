//! Who removes pping's filters, and when, on kernels without TCX, where filters outlive the process.

use std::fs;

use pping_lab::{Process, Signal, Topology, run};

use super::{
    bpffs::Bpffs,
    copy::Copy,
    foreign::INTERFACE,
    host::Host,
    http::LISTEN,
    interfaces::is_watched,
    monitor::{
        ENDING, MEASURING, PATIENCE, PPING, interrupt, ok, ping, pping, topology, wait_until, watch_with,
    },
    neighbours::{
        NO_PACKET, TcAttachment, add_u32_filter, assert_measure, attached, cleanup, end_and_clean_up, tc,
    },
};

/// Runs pping as on a kernel without TCX, and returns once it has printed `said` and measures.
fn start(host: &Host, arguments: &str, said: &str) -> Process {
    let mut command = pping(&host.namespace, &format!("-v {arguments}"));
    command.env("PPING_WITHOUT", "tcx");
    let mut process = ok(Process::spawn(command));
    ok(process.wait_for_output(said, PATIENCE));
    ok(process.wait_for_output(MEASURING, PATIENCE));
    process
}

fn ip(host: &Host, arguments: &str) {
    ok(run(host.namespace.command("ip").args(arguments.split_whitespace())));
}

fn kill(mut pping: Process) {
    ok(pping.signal(Signal::SIGKILL));
    ok(pping.wait_timeout(ENDING));
}

/// Returns the tc filters and qdiscs of all interfaces.
fn tc_state(host: &Host) -> String {
    let show = |arguments: &[&str]| ok(run(host.namespace.command("tc").args(arguments)));
    let links = ok(run(host.namespace.command("ip").args(["-o", "link"])));
    let names = links.lines().filter_map(|line| line.split([' ', '@', ':']).nth(2));
    let mut all = String::new();
    for name in names {
        all += &show(&["qdisc", "show", "dev", name]);
        for direction in ["ingress", "egress"] {
            all += &show(&["filter", "show", "dev", name, direction]);
        }
    }
    all
}

#[test]
fn a_clean_shutdown_leaves_nothing_and_keeps_foreign_qdiscs() {
    let topology = topology();
    for has_qdisc in [false, true] {
        if has_qdisc {
            tc(&topology, &format!("qdisc add dev {INTERFACE} clsact"));
        }
        let before = attached(&topology);
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            let pping = TcAttachment::Clsact.watch(&topology);
            assert!(ok(pping.stderr()).contains(&format!("watching {INTERFACE} at clsact and clsact")));
            assert_measure(&topology, &[&pping], 3);
            end_and_clean_up(&topology, pping, TcAttachment::Clsact, signal);
            assert_eq!(attached(&topology), before);
        }
    }
}

#[test]
fn the_next_run_removes_what_killed_ones_left_and_says_so() {
    let topology = topology();
    let before = attached(&topology);
    for _ in 0..2 {
        kill(TcAttachment::Clsact.watch(&topology));
    }
    assert_ne!(attached(&topology), before);
    for attachment in [TcAttachment::Clsact, TcAttachment::Tcx] {
        let pping = attachment.watch(&topology);
        let stderr = ok(pping.stderr());
        let warning =
            format!("removed leftovers of a killed pping on {INTERFACE}: 2 filters of 1 run, and the clsact");
        assert!(stderr.contains(&warning), "{stderr}");
        assert_measure(&topology, &[&pping], 3);
        if attachment == TcAttachment::Clsact {
            kill(pping);
        } else {
            end_and_clean_up(&topology, pping, attachment, Signal::SIGINT);
        }
    }
    assert_eq!(attached(&topology), before);
}

#[test]
fn the_qdisc_of_a_killed_run_goes_with_its_last_user() {
    let topology = topology();
    let before = attached(&topology);
    kill(TcAttachment::Clsact.watch(&topology));
    add_u32_filter(&topology, "egress", 5, NO_PACKET);
    let pping = TcAttachment::Clsact.watch(&topology);
    let stderr = ok(pping.stderr());
    assert!(stderr.contains("2 filters of 1 run; the clsact qdisc stays, since others use it"), "{stderr}");
    tc(&topology, &format!("filter delete dev {INTERFACE} egress prio 5"));
    end_and_clean_up(&topology, pping, TcAttachment::Clsact, Signal::SIGINT);
    assert_eq!(attached(&topology), before);
}

#[test]
fn the_qdisc_pping_created_stays_for_foreign_filters() {
    let topology = topology();
    let pping = TcAttachment::Clsact.watch(&topology);
    add_u32_filter(&topology, "egress", 5, NO_PACKET);
    end_and_clean_up(&topology, pping, TcAttachment::Clsact, Signal::SIGINT);
    let shown = tc(&topology, &format!("filter show dev {INTERFACE} egress"));
    assert!(shown.contains("u32") && !shown.contains("pping"), "{shown}");
}

#[test]
fn a_foreign_program_attached_instead_is_not_removed() {
    let topology = topology();
    let pping = TcAttachment::Clsact.watch(&topology);
    tc(&topology, &format!("qdisc delete dev {INTERFACE} clsact"));
    tc(&topology, &format!("qdisc add dev {INTERFACE} clsact"));
    end_and_clean_up(&topology, pping, TcAttachment::Clsact, Signal::SIGINT);
    assert!(tc(&topology, &format!("qdisc show dev {INTERFACE}")).contains("clsact"));
}

#[test]
fn an_ingress_qdisc_is_refused_and_stays() {
    let topology = topology();
    tc(&topology, &format!("qdisc add dev {INTERFACE} ingress"));
    let before = attached(&topology);
    let mut command = pping(topology.router(), &format!("-i {INTERFACE}"));
    command.env("PPING_WITHOUT", "tcx");
    let mut pping = ok(Process::spawn(command));
    assert_eq!(ok(pping.wait_timeout(PATIENCE)).code(), Some(1));
    let stderr = ok(pping.stderr());
    assert!(stderr.contains(INTERFACE) && stderr.contains("ingress qdisc"), "{stderr}");
    assert_eq!(attached(&topology), before);
}

#[test]
fn egress_is_measured_by_a_filter_beside_xdp_too() {
    let topology = topology();
    let before = attached(&topology);
    let mut command = pping(topology.router(), &format!("-v -i {INTERFACE} --rate-limit 0 --ingress xdp"));
    command.env("PPING_WITHOUT", "tcx");
    let pping = watch_with(command, INTERFACE);
    assert!(ok(pping.stderr()).contains("at xdp-native and clsact"), "{}", ok(pping.stderr()));
    assert_measure(&topology, &[&pping], 3);
    interrupt(pping);
    assert_eq!(attached(&topology), before);
}

#[test]
fn nothing_can_be_pinned_and_pping_goes_on_without() {
    let (host, pins) = (Host::new(), Bpffs::new());
    let mut command = pping(&host.namespace, &format!("-v -i {} --pin {}", Host::ETH, pins.pins().display()));
    command.env("PPING_WITHOUT", "tcx");
    let pping = watch_with(command, Host::ETH);
    let stderr = ok(pping.stderr());
    assert!(stderr.contains("continuing without --pin") && stderr.contains("Linux 6.6"), "{stderr}");
    interrupt(pping);
    assert!(!pins.pins().exists());
}

#[test]
fn interfaces_that_vanish_or_are_renamed_do_no_harm() {
    let host = Host::new();
    let before = tc_state(&host);
    let add = "link add dial0 type veth peer name far0";
    ip(&host, add);
    ip(&host, "link set lo up");
    let options = format!("-i dial* -i {} {LISTEN} --format none", Host::ETH);
    let mut pping = start(&host, &options, "watching dial0 at clsact");
    wait_until("it is watched", || is_watched(&host.namespace, "dial0"));
    ip(&host, "link set dial0 name dial1");
    ok(pping.wait_for_output("watching dial1 at clsact", PATIENCE));
    ip(&host, "link set dial1 name other");
    wait_until("it is not watched any more", || !is_watched(&host.namespace, "dial1"));
    assert_eq!(
        tc_state(&host).matches("pping_ingress").count(),
        2,
        "the name of the filter and of its program"
    );
    ip(&host, "link delete other");
    ip(&host, add);
    wait_until("it is watched", || is_watched(&host.namespace, "dial0"));
    ip(&host, "link delete dial0");
    wait_until("it is not watched any more", || !is_watched(&host.namespace, "dial0"));
    // pping ends while its interface is being deleted or is already gone.
    ip(&host, add);
    wait_until("it is watched", || is_watched(&host.namespace, "dial0"));
    ip(&host, "link delete dial0");
    ok(pping.stop(Signal::SIGINT, ENDING));
    let stderr = ok(pping.stderr());
    assert!(!stderr.contains("could not remove a tc filter") && !stderr.contains("ERROR"), "{stderr}");
    ip(&host, "link set lo down");
    assert_eq!(tc_state(&host), before);
}

#[test]
fn a_namespace_that_is_deleted_does_no_harm() {
    let host = Host::new();
    let mut pping = start(&host, &format!("-i {} --format none", Host::ETH), "watching eth0 at clsact");
    drop(host);
    ok(pping.stop(Signal::SIGINT, ENDING));
    let stderr = ok(pping.stderr());
    assert!(!stderr.contains("could not remove a tc filter") && !stderr.contains("ERROR"), "{stderr}");
}

#[test]
fn cleanup_takes_the_interfaces_that_are_named_or_all() {
    let host = Host::new();
    let before = tc_state(&host);
    for name in ["dial0", "dial1", "wan0"] {
        ip(&host, &format!("link add {name} type veth peer name {name}-far"));
    }
    kill(start(&host, "-i dial? -i wan0 -i eth0 --format none", "keeping "));
    kill(start(&host, "-i dial1 -i missing* --format none", "keeping "));
    let clean = |arguments: &[&str]| ok(run(host.namespace.command(PPING).arg("cleanup").args(arguments)));
    let removed = |name: &str| format!("{name}: removed 2 filters of 1 run, and the clsact qdisc\n");
    assert_eq!(clean(&["-i", "eth0"]), removed("eth0"));
    assert_eq!(clean(&["-i", "eth0", "--interface", "lo"]), "nothing to remove\n");
    let both = clean(&["-i", "dial*"]);
    assert!(both.lines().count() == 2 && both.contains(&removed("dial0")), "{both}");
    assert_eq!(clean(&[]), removed("wan0"));
    assert_eq!(clean(&[]), "nothing to remove\n");
    for name in ["dial0", "dial1", "wan0"] {
        ip(&host, &format!("link delete {name}"));
    }
    assert_eq!(tc_state(&host), before);
}

#[test]
fn cleanup_says_what_it_needs() {
    let (host, copy) = (Host::new(), Copy::new());
    let clean = |options: &[&str], arguments: &[&str]| {
        let mut command = host.namespace.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).args(options);
        command.arg(&copy.program).arg("cleanup").args(arguments);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, said) = clean(&[], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("missing CAP_NET_ADMIN: run as root, or grant"), "{said}");
    let (code, said) = clean(&[], &["-i", "eth7"]);
    assert!(code == Some(2) && said.contains("did you mean eth0?"), "{said}");
    kill(start(&host, "-i eth0 --format none", "keeping "));
    let one = ["--inh-caps=-all,+net_admin", "--ambient-caps=-all,+net_admin"];
    assert_eq!(clean(&one, &[]).1, "eth0: removed 2 filters of 1 run, and the clsact qdisc\n");
}

#[test]
fn filters_need_no_more_capabilities_than_links() {
    let (topology, copy) = (topology(), Copy::new());
    let before = attached(&topology);
    let three = ["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon"];
    for end_by in [Signal::SIGKILL, Signal::SIGINT] {
        let mut command = topology.router().command("setpriv");
        command.env("PPING_WITHOUT", "tcx").args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args(three).arg(&copy.program).args(["-v", "-i", INTERFACE]);
        let mut pping = watch_with(command, INTERFACE);
        let status = fs::read_to_string(format!("/proc/{}/status", pping.id())).unwrap();
        assert!(status.lines().any(|line| line.starts_with("Uid:\t65534\t65534")), "{status}");
        wait_until("it gave up the rest", || {
            ok(pping.stderr()).contains("keeping only CAP_NET_ADMIN, CAP_BPF")
        });
        ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
        wait_until("a sample", || ok(pping.stdout()).contains("icmp-echo"));
        ok(pping.signal(end_by));
        ok(pping.wait_timeout(ENDING));
    }
    assert_eq!(attached(&topology), before);
    assert_eq!(cleanup(&topology), "nothing to remove\n");
}
