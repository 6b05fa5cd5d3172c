//! No BPF object and no attachment outlives pping, however it ends.

use std::{collections::BTreeSet, fs};

use pping_lab::{BpfObject, Process, Signal, Topology};

use super::monitor::{ENDING, attachments, endless_ping, ok, topology, wait_until, watch};

/// An object of the kernel's BPF subsystem, and its id.
pub(super) type Object = (BpfObject, u32);

/// The objects that a process holds, from `/proc/PID/fdinfo`. A count over the whole machine would include the
/// objects of other tests.
pub(super) fn objects(process: &Process) -> BTreeSet<Object> {
    let directory = format!("/proc/{}/fdinfo", process.id());
    let descriptors = fs::read_dir(directory).unwrap();
    let infos = descriptors.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    infos.flat_map(|info| info.lines().filter_map(object).collect::<Vec<_>>()).collect()
}

fn object(line: &str) -> Option<Object> {
    let (key, value) = line.split_once(':')?;
    let kind = match key {
        "prog_id" => BpfObject::Program,
        "link_id" => BpfObject::Link,
        "map_id" => BpfObject::Map,
        _ => return None,
    };
    Some((kind, value.trim().parse().ok()?))
}

fn exists((kind, id): Object) -> bool {
    kind.exists(id)
}

fn assert_leaves_nothing(ingress: &str, signal: Signal) {
    let topology = topology();
    let router = topology.router();
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    let before = attachments(router, Topology::WAN);
    let mut pping = watch(router, Topology::WAN, &format!("--rate-limit 0 --ingress {ingress}"));
    wait_until("samples", || !ok(pping.stdout()).is_empty());

    let held = objects(&pping);
    for (kind, at_least) in [(BpfObject::Program, 3), (BpfObject::Link, 2), (BpfObject::Map, 4)] {
        let of_kind = held.iter().filter(|(it, _)| *it == kind).count();
        assert!(of_kind >= at_least, "only {of_kind} of kind {kind:?} in {held:?}");
    }
    assert!(held.iter().copied().all(exists), "{held:?}");
    let during = attachments(router, Topology::WAN);
    // This bpftool may be too old to show TCX, but every version shows XDP.
    assert_eq!(during.contains("prog/xdp"), ingress == "xdp", "{during}");

    ok(pping.signal(signal));
    ok(pping.wait_timeout(ENDING));
    wait_until("the kernel has freed every program, link and map", || !held.iter().copied().any(exists));
    assert_eq!(attachments(router, Topology::WAN), before);
}

#[test]
fn a_kill_leaves_nothing_at_tc() {
    assert_leaves_nothing("tc", Signal::SIGKILL);
}

#[test]
fn a_kill_leaves_nothing_at_xdp() {
    assert_leaves_nothing("xdp", Signal::SIGKILL);
}

#[test]
fn a_clean_shutdown_leaves_nothing_at_tc() {
    assert_leaves_nothing("tc", Signal::SIGTERM);
}

#[test]
fn a_clean_shutdown_leaves_nothing_at_xdp() {
    assert_leaves_nothing("xdp", Signal::SIGTERM);
}
