//! `--ingress` selects the attach point, also on interfaces with a foreign XDP program.

use std::collections::BTreeSet;

use aya::programs::{XdpMode, xdp::XdpLinkId};
use clap::Parser as _;
use pping::{
    config::{Arguments, Config},
    kernel::{load, load_options::LoadOptions, loaded::Kernel, object},
};
use pping_lab::{Process, Topology, run};
use serde_json::Value;

use super::{
    http::{LISTEN, is_ready, scrape},
    monitor::{ENDING, interrupt, ok, ping, pping, topology, wait_until, watch},
};

/// A foreign program, attached until dropped.
struct Foreign {
    program_id: u32,
    _kernel: Kernel,
}

impl Foreign {
    /// Attaches a program to the router's interface towards the server. It is pping's own program, but its maps know no
    /// interface, so it passes every packet and measures nothing.
    fn attach(topology: &Topology) -> Self {
        let arguments = Arguments::parse_from(["pping", "-i", Topology::WAN, "--max-flows", "16"]);
        let config = Config::try_from(arguments).unwrap();
        let settings = LoadOptions { rules: config.rules, ..LoadOptions::DEFAULT };
        let mut kernel = load::load(&settings, true).unwrap();
        let program = object::xdp(&mut kernel.programs).unwrap();
        let program_id = program.info().unwrap().id();
        let _: XdpLinkId =
            ok(topology.router().enter(|| program.attach(Topology::WAN, XdpMode::Driver))).unwrap();
        Self { program_id, _kernel: kernel }
    }
}

/// The id of the XDP program on the router's interface towards the server.
fn attached(topology: &Topology) -> Option<u64> {
    let mut ip = topology.router().command("ip");
    let links: Value =
        serde_json::from_str(&ok(run(ip.args(["-json", "link", "show", "dev", Topology::WAN])))).unwrap();
    links[0]["xdp"]["prog"]["id"].as_u64()
}

/// The attach points of an interface in `pping_interface_up`.
fn attach_points(topology: &Topology, interface: &str) -> BTreeSet<String> {
    wait_until("pping is ready", || is_ready(topology.router()));
    let metrics = scrape(topology.router());
    let up = metrics.series().filter(|series| series.name == "pping_interface_up" && series.value > 0.0);
    let here = up.filter(|series| series.labels["interface"] == interface);
    here.map(|series| series.labels["hook"].to_owned()).collect()
}

fn only(attach_point: &str) -> BTreeSet<String> {
    BTreeSet::from([attach_point.to_owned()])
}

#[track_caller]
fn assert_measures(topology: &Topology, pping: &Process) {
    ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.2");
    wait_until("a sample", || ok(pping.stdout()).contains("\"rtt\""));
}

#[test]
fn foreign_program_stays_and_the_error_helps() {
    let topology = topology();
    let foreign = Foreign::attach(&topology);
    assert_eq!(attached(&topology), Some(foreign.program_id.into()));
    let arguments = format!("-i {} --ingress xdp", Topology::WAN);
    let mut pping = ok(Process::spawn(pping(topology.router(), &arguments)));
    let status = ok(pping.wait_timeout(ENDING));
    let stderr = ok(pping.stderr());
    assert_eq!(status.code(), Some(1), "{stderr}");
    let who = format!("another XDP program is attached there (pping_xdp, id {})", foreign.program_id);
    for part in [Topology::WAN, &who, "--ingress auto", "--ingress tc"] {
        assert!(stderr.contains(part), "no `{part}` in: {stderr}");
    }
    assert_eq!(attached(&topology), Some(foreign.program_id.into()));
}

#[test]
fn auto_warns_of_a_foreign_program_and_measures_at_tc() {
    let topology = topology();
    let foreign = Foreign::attach(&topology);
    let pping = watch(topology.router(), Topology::WAN, &format!("--ingress auto {LISTEN}"));
    let stderr = ok(pping.stderr());
    let warning = stderr.lines().find(|line| line.contains("WARN"));
    let warning = warning.unwrap_or_else(|| panic!("no warning in {stderr}"));
    let who = format!("another XDP program is attached there (pping_xdp, id {})", foreign.program_id);
    for part in [Topology::WAN, &who, "at tc instead"] {
        assert!(warning.contains(part), "no `{part}` in: {warning}");
    }
    assert_eq!(attach_points(&topology, Topology::WAN), only("tcx"));
    assert_measures(&topology, &pping);
    assert_eq!(attached(&topology), Some(foreign.program_id.into()));
    interrupt(pping);
    assert_eq!(attached(&topology), Some(foreign.program_id.into()));
}

#[test]
fn auto_takes_xdp_where_the_driver_runs_it() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, &format!("--ingress auto {LISTEN}"));
    assert!(attached(&topology).is_some());
    assert_eq!(attach_points(&topology, Topology::WAN), BTreeSet::from(["xdp-native".into(), "tcx".into()]));
    assert_measures(&topology, &pping);
    let stderr = ok(pping.stderr());
    assert!(!stderr.contains("WARN"), "{stderr}");
    interrupt(pping);
    assert_eq!(attached(&topology), None);
}

#[test]
fn tc_is_the_default_and_leaves_xdp_alone() {
    let topology = topology();
    let pping = watch(topology.router(), Topology::WAN, LISTEN);
    assert_eq!(attached(&topology), None);
    assert_eq!(attach_points(&topology, Topology::WAN), only("tcx"));
    assert_measures(&topology, &pping);
    interrupt(pping);
}

#[test]
fn xdp_runs_in_the_stack_where_the_driver_has_none() {
    let topology = topology();
    // The loopback driver is the simplest, and every host has it.
    let pping = watch(topology.router(), "lo", &format!("--ingress xdp {LISTEN}"));
    assert_eq!(attach_points(&topology, "lo"), BTreeSet::from(["xdp-generic".into(), "tcx".into()]));
    interrupt(pping);
}

#[test]
fn auto_takes_tc_where_the_driver_has_no_xdp_and_says_so() {
    let topology = topology();
    let pping = watch(topology.router(), "lo", &format!("--ingress auto {LISTEN}"));
    assert_eq!(attach_points(&topology, "lo"), only("tcx"));
    let stderr = ok(pping.stderr());
    assert!(
        stderr.contains("its driver does not support XDP") && stderr.contains("at tc instead"),
        "{stderr}"
    );
    interrupt(pping);
}
