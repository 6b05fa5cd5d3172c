//! What pping may do, and what it says when it may not.

use std::{fs, path::Path, process::Command};

use pping_lab::{Process, Topology};

use super::{
    copy::Copy,
    host::Host,
    monitor::{ENDING, interrupt, ok, ping, tool, topology, wait_until, watch_with},
};

const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// `setpriv` in front of a program.
fn setpriv(mut command: Command, options: &[&str], program: &Path, arguments: &[&str]) -> Command {
    command.args(NOBODY).args(options).arg(program).args(arguments);
    command
}

#[test]
fn without_privileges_the_message_names_the_capabilities_and_the_command_that_grants_them() {
    let host = Host::new();
    let copy = Copy::new();
    let setpriv = setpriv(host.namespace.command("setpriv"), &[], &copy.program, &["-i", Host::ETH]);
    let mut process = ok(Process::spawn(setpriv));
    let status = ok(process.wait_timeout(ENDING));
    let message = ok(process.stderr());
    assert_eq!(status.code(), Some(2), "{message}");
    for part in ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON", "CAP_SYS_ADMIN"] {
        assert!(message.contains(part), "no {part} in: {message}");
    }
    let grant = format!("setcap cap_bpf,cap_net_admin,cap_perfmon+ep {}", copy.program.display());
    assert!(message.contains(&format!("sudo {grant}")), "no `sudo {grant}` in: {message}");
}

#[test]
fn only_what_is_missing_is_said_to_be() {
    let host = Host::new();
    let copy = Copy::new();
    let some = ["--inh-caps=-all,+net_admin,+bpf", "--ambient-caps=-all,+net_admin,+bpf"];
    let command = setpriv(host.namespace.command("setpriv"), &some, &copy.program, &["-i", Host::ETH]);
    let mut process = ok(Process::spawn(command));
    assert_eq!(ok(process.wait_timeout(ENDING)).code(), Some(2));
    let message = ok(process.stderr());
    assert!(message.contains("missing CAP_PERFMON:"), "{message}");
}

#[test]
fn three_capabilities_are_enough() {
    let topology = topology();
    let copy = Copy::new();
    let three = ["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon"];
    assert_measures(&topology, &copy, &three);
}

#[test]
fn the_command_in_the_message_does_grant_what_is_needed() {
    let topology = topology();
    let copy = Copy::new();
    let program = copy.program.to_str().unwrap();
    let (granted, said) = tool("setcap", &["cap_bpf,cap_net_admin,cap_perfmon+ep", program]);
    assert!(granted, "{said}");
    assert_measures(&topology, &copy, &[]);
}

/// Runs the copy as nobody, on XDP too, and asks for samples.
fn assert_measures(topology: &Topology, copy: &Copy, options: &[&str]) {
    for ingress in ["tc", "xdp"] {
        let arguments = ["-v", "-i", Topology::WAN, "--ingress", ingress];
        let command = topology.router().command("setpriv");
        let pping = watch_with(setpriv(command, options, &copy.program, &arguments), Topology::WAN);
        let status = fs::read_to_string(format!("/proc/{}/status", pping.id())).unwrap();
        assert!(status.lines().any(|line| line.starts_with("Uid:\t65534\t65534")), "{status}");
        ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
        wait_until("a sample", || ok(pping.stdout()).contains("icmp-echo"));
        interrupt(pping);
    }
}
