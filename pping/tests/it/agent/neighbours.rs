//! pping neither replaces nor stops foreign tc programs on its interfaces.

use std::process::Command;

use aya::programs::TcAttachType;
use pping_lab::{Process, Signal, Topology, run};

use super::{
    bpf::{AttachType, Program, Verdict},
    foreign::{Foreign, INTERFACE, order},
    monitor::{
        ENDING, MEASURING, PATIENCE, PPING, attachments, ok, ping, pping, topology, wait_until, watch_with,
    },
};

const DIRECTIONS: [TcAttachType; 2] = [TcAttachType::Ingress, TcAttachType::Egress];

/// How pping attaches at tc.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TcAttachment {
    /// By links, which end with the process.
    Tcx,
    /// By filters, as on kernels before 6.6.
    Clsact,
}

impl TcAttachment {
    /// Returns a command that reports every sample.
    fn command(self, topology: &Topology) -> Command {
        let mut command = pping(topology.router(), &format!("-v -i {INTERFACE} --rate-limit 0"));
        if self == Self::Clsact {
            command.env("PPING_WITHOUT", "tcx");
        }
        command
    }

    fn start(self, topology: &Topology) -> Process {
        ok(Process::spawn(self.command(topology)))
    }

    /// Starts pping, and waits until it is attached.
    pub(super) fn watch(self, topology: &Topology) -> Process {
        watch_with(self.command(topology), INTERFACE)
    }
}

pub(super) fn tc(topology: &Topology, arguments: &str) -> String {
    ok(run(topology.router().command("tc").args(arguments.split_whitespace())))
}

/// Adds a filter that is not BPF. Later filters do not see the packets that it matches.
pub(super) fn add_u32_filter(topology: &Topology, direction: &str, priority: u16, matches: &str) {
    let filter = format!("{direction} prio {priority} protocol ip u32 match {matches} classid 1:1");
    tc(topology, &format!("filter add dev {INTERFACE} {filter}"));
}

/// A match for [`add_u32_filter`] that no packet meets.
pub(super) const NO_PACKET: &str = "ip protocol 255 0xff";
const EVERY_PACKET: &str = "u32 0 0";

/// Runs `pping cleanup` for all interfaces of the router.
pub(super) fn cleanup(topology: &Topology) -> String {
    ok(run(topology.router().command(PPING).arg("cleanup")))
}

/// What is attached to the interface.
pub(super) fn attached(topology: &Topology) -> String {
    attachments(topology.router(), INTERFACE)
}

/// Counts the pings that pping has reported.
pub(super) fn samples(pping: &Process) -> usize {
    ok(pping.stdout()).lines().filter(|line| line.contains("icmp-echo")).count()
}

/// Sends pings and asserts that each of `all` reports them.
#[track_caller]
pub(super) fn assert_measure(topology: &Topology, all: &[&Process], pings: usize) {
    let before: Vec<usize> = all.iter().map(|pping| samples(pping)).collect();
    ping(topology.client(), Topology::SERVER_IPV4, &format!("-c{pings} -i0.05"));
    for (pping, before) in all.iter().zip(before) {
        wait_until("as many samples as pings", || samples(pping) >= before + pings);
        assert_eq!(samples(pping), before + pings);
    }
}

/// Ends pping. If pping was killed at clsact, its filters may remain and are removed here.
pub(super) fn end_and_clean_up(
    topology: &Topology,
    mut pping: Process,
    attachment: TcAttachment,
    signal: Signal,
) {
    ok(pping.signal(signal));
    let status = ok(pping.wait_timeout(ENDING));
    assert_eq!(status.success(), signal != Signal::SIGKILL, "{}", ok(pping.stderr()));
    let stderr = ok(pping.stderr());
    assert!(!stderr.contains("could not remove a tc filter"), "{stderr}");
    let expected = if attachment == TcAttachment::Clsact && signal == Signal::SIGKILL {
        format!("{INTERFACE}: removed 2 filters of 1 run")
    } else {
        "nothing to remove".to_owned()
    };
    let said = cleanup(topology);
    assert!(said.starts_with(&expected), "{said}");
}

fn assert_links_keep_their_order(signal: Signal) {
    let topology = topology();
    for direction in DIRECTIONS {
        let mut first = Foreign::by_link(&topology, direction);
        let pping = TcAttachment::Tcx.watch(&topology);
        let mut last = Foreign::by_link(&topology, direction);
        let foreign = vec![first.program_id(), last.program_id()];
        let mut found = order(&topology, direction);
        assert_eq!(found.len(), 3);
        found.retain(|program_id| foreign.contains(program_id));
        assert_eq!(found, foreign);
        let mut both = [first, last];
        Foreign::assert_run(&mut both, || assert_measure(&topology, &[&pping], 4));
        end_and_clean_up(&topology, pping, TcAttachment::Tcx, signal);
        wait_until("the kernel detached it", || order(&topology, direction) == foreign);
        Foreign::assert_run(&mut both, || ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.05"));
        drop(both);
        wait_until("nothing is left", || order(&topology, direction).is_empty());
    }
}

#[test]
fn foreign_links_keep_their_order_when_pping_ends() {
    assert_links_keep_their_order(Signal::SIGINT);
}

#[test]
fn foreign_links_keep_their_order_when_pping_is_killed() {
    assert_links_keep_their_order(Signal::SIGKILL);
}

#[test]
fn foreign_link_that_ends_the_chain_hides_nothing() {
    let topology = topology();
    let accept = Program::load(Verdict::TcAccept, "accept");
    let links = [AttachType::TcxIngress, AttachType::TcxEgress]
        .map(|attach_type| accept.attach(topology.router(), INTERFACE, attach_type));
    let before = DIRECTIONS.map(|direction| order(&topology, direction));
    let pping = TcAttachment::Tcx.watch(&topology);
    assert_measure(&topology, &[&pping], 4);
    end_and_clean_up(&topology, pping, TcAttachment::Tcx, Signal::SIGINT);
    assert_eq!(DIRECTIONS.map(|direction| order(&topology, direction)), before);
    drop((accept, links));
    wait_until("nothing is left", || {
        DIRECTIONS.iter().all(|&direction| order(&topology, direction).is_empty())
    });
}

/// Asserts that pping leaves filters of all common kinds in place: BPF and others, for all protocols and for one.
fn assert_filters_stay(attachment: TcAttachment, signal: Signal) {
    let topology = topology();
    let empty = attached(&topology);
    tc(&topology, &format!("qdisc add dev {INTERFACE} clsact"));
    for direction in ["ingress", "egress"] {
        add_u32_filter(&topology, direction, 2, NO_PACKET);
        add_u32_filter(&topology, direction, 60_001, EVERY_PACKET);
    }
    let mut foreign: Vec<_> = DIRECTIONS
        .into_iter()
        .flat_map(|direction| [1, 60_000].map(|priority| Foreign::by_filter(&topology, direction, priority)))
        .collect();
    let before = attached(&topology);
    let pping = attachment.watch(&topology);
    assert_eq!(attached(&topology) == before, attachment == TcAttachment::Tcx);
    Foreign::assert_run(&mut foreign, || assert_measure(&topology, &[&pping], 4));
    // This one is attached while pping is running.
    foreign.push(Foreign::by_filter(&topology, TcAttachType::Ingress, 0));
    Foreign::assert_run(&mut foreign, || assert_measure(&topology, &[&pping], 3));
    foreign.pop();
    end_and_clean_up(&topology, pping, attachment, signal);
    assert_eq!(attached(&topology), before);
    Foreign::assert_run(&mut foreign, || ping(topology.client(), Topology::SERVER_IPV4, "-c2 -i0.05"));
    drop(foreign);
    tc(&topology, &format!("qdisc delete dev {INTERFACE} clsact"));
    assert_eq!(attached(&topology), empty);
}

#[test]
fn foreign_filters_stay_beside_links() {
    assert_filters_stay(TcAttachment::Tcx, Signal::SIGINT);
    assert_filters_stay(TcAttachment::Tcx, Signal::SIGKILL);
}

#[test]
fn foreign_filters_stay_when_a_pping_with_filters_ends() {
    assert_filters_stay(TcAttachment::Clsact, Signal::SIGINT);
}

#[test]
fn foreign_filters_stay_when_a_pping_with_filters_is_killed() {
    assert_filters_stay(TcAttachment::Clsact, Signal::SIGKILL);
}

/// Runs two ppings on one interface, and ends the first or the second first, as `first_ends` says.
fn assert_two_do_not_disturb_each_other(attachment: TcAttachment, first_ends: bool, signal: Signal) {
    let topology = topology();
    let before = attached(&topology);
    let first = attachment.watch(&topology);
    assert_measure(&topology, &[&first], 3);
    let second = attachment.watch(&topology);
    assert!(!ok(second.stderr()).contains("removed leftovers"), "{}", ok(second.stderr()));
    assert_measure(&topology, &[&first, &second], 5);
    assert_eq!(cleanup(&topology), "nothing to remove\n");
    assert_measure(&topology, &[&first, &second], 2);
    let (ends, stays) = if first_ends { (first, second) } else { (second, first) };
    end_and_clean_up(&topology, ends, attachment, signal);
    assert_measure(&topology, &[&stays], 5);
    // A third pping replaces the one that ended, and neither of the two disturbs the other.
    let third = attachment.watch(&topology);
    assert_measure(&topology, &[&stays, &third], 3);
    end_and_clean_up(&topology, third, attachment, Signal::SIGINT);
    assert_measure(&topology, &[&stays], 2);
    end_and_clean_up(&topology, stays, attachment, Signal::SIGINT);
    assert_eq!(attached(&topology), before);
}

#[test]
fn two_ppings_by_links_measure_the_same_and_end_in_any_order() {
    for first_ends in [true, false] {
        assert_two_do_not_disturb_each_other(TcAttachment::Tcx, first_ends, Signal::SIGINT);
        assert_two_do_not_disturb_each_other(TcAttachment::Tcx, first_ends, Signal::SIGKILL);
    }
}

#[test]
fn two_ppings_by_filters_measure_the_same_and_end_in_any_order() {
    for first_ends in [true, false] {
        assert_two_do_not_disturb_each_other(TcAttachment::Clsact, first_ends, Signal::SIGINT);
        assert_two_do_not_disturb_each_other(TcAttachment::Clsact, first_ends, Signal::SIGKILL);
    }
}

/// The first pping creates the qdisc, and the last one removes it.
#[test]
fn many_ppings_that_come_and_go_measure_and_leave_nothing() {
    let topology = topology();
    let before = attached(&topology);
    for _ in 0..3 {
        let mut all: Vec<_> = (0..4).map(|_| TcAttachment::Clsact.start(&topology)).collect();
        for pping in &mut all {
            ok(pping.wait_for_output(&format!("watching {INTERFACE} at"), PATIENCE));
            ok(pping.wait_for_output(MEASURING, PATIENCE));
        }
        assert_measure(&topology, &all.iter().collect::<Vec<_>>(), 3);
        // Half of them end while others start.
        let ending: Vec<_> = all.drain(..2).collect();
        let mut starting: Vec<_> = (0..2).map(|_| TcAttachment::Clsact.start(&topology)).collect();
        for (mut pping, signal) in ending.into_iter().zip([Signal::SIGKILL, Signal::SIGINT]) {
            ok(pping.signal(signal));
            ok(pping.wait_timeout(ENDING));
        }
        for pping in &mut starting {
            ok(pping.wait_for_output(&format!("watching {INTERFACE} at"), PATIENCE));
            ok(pping.wait_for_output(MEASURING, PATIENCE));
        }
        all.append(&mut starting);
        assert_measure(&topology, &all.iter().collect::<Vec<_>>(), 3);
        for pping in &mut all {
            ok(pping.signal(Signal::SIGTERM));
        }
        for pping in &mut all {
            ok(pping.wait_timeout(ENDING));
        }
        cleanup(&topology);
        assert_eq!(attached(&topology), before);
    }
}

#[test]
fn a_pping_by_links_and_one_by_filters_measure_the_same() {
    let topology = topology();
    let before = attached(&topology);
    let (links, filters) = (TcAttachment::Tcx.watch(&topology), TcAttachment::Clsact.watch(&topology));
    assert_measure(&topology, &[&links, &filters], 5);
    end_and_clean_up(&topology, links, TcAttachment::Tcx, Signal::SIGKILL);
    assert_measure(&topology, &[&filters], 5);
    end_and_clean_up(&topology, filters, TcAttachment::Clsact, Signal::SIGINT);
    assert_eq!(attached(&topology), before);
}
