//! Which privileges pping needs, and what it says when they are missing.

use std::{fs, path::Path, process::Command};

use pping_lab::{Process, Topology, run};

use super::{
    copy::Copy,
    host::Host,
    monitor::{ENDING, interrupt, ok, ping, tool, topology, wait_until, watch, watch_with},
};

const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// Makes `setpriv` run a program as nobody.
fn setpriv(mut command: Command, options: &[&str], program: &Path, arguments: &[&str]) -> Command {
    command.args(NOBODY).args(options).arg(program).args(arguments);
    command
}

#[test]
fn missing_capabilities_name_the_command_that_grants_them() {
    let host = Host::new();
    let copy = Copy::new();
    let setpriv = setpriv(host.namespace.command("setpriv"), &[], &copy.program, &["-i", Host::ETH]);
    let mut process = ok(Process::spawn(setpriv));
    let status = ok(process.wait_timeout(ENDING));
    let message = ok(process.stderr());
    assert_eq!(status.code(), Some(2), "{message}");
    for part in ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"] {
        assert!(message.contains(part), "no {part} in: {message}");
    }
    let grant = format!("setcap cap_bpf,cap_net_admin,cap_perfmon+ep {}", copy.program.display());
    assert!(message.contains(&format!("sudo {grant}")), "no `sudo {grant}` in: {message}");
}

#[test]
fn only_missing_capabilities_are_named() {
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
fn the_command_in_the_message_grants_what_is_needed() {
    let topology = topology();
    let copy = Copy::new();
    let program = copy.program.to_str().unwrap();
    let (granted, said) = tool("setcap", &["cap_bpf,cap_net_admin,cap_perfmon+ep", program]);
    assert!(granted, "{said}");
    assert_measures(&topology, &copy, &[]);
}

/// Runs the copy as nobody, at tc and at XDP, and asserts that it reports samples.
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

/// Returns for each thread of a process its name, its capabilities as bits, and whether it cannot gain more.
fn capabilities(pping: &Process) -> Vec<(String, u64, u64, bool)> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pping.id())).unwrap();
    let of_task = |path: &Path| -> Option<_> {
        let status = fs::read_to_string(path.join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let bits = |name| u64::from_str_radix(field(name), 16).unwrap();
        Some((field("Name:").to_owned(), bits("CapPrm:"), bits("CapBnd:"), field("NoNewPrivs:") == "1"))
    };
    tasks.filter_map(|task| of_task(&task.unwrap().path())).collect()
}

const CAP_DAC_OVERRIDE: u64 = 1 << 1;
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_BPF: u64 = 1 << 39;

#[test]
fn root_drops_all_but_needed_capabilities() {
    let topology = topology();
    let pping =
        watch(topology.router(), Topology::WAN, "--format none --hdr-log /dev/null --listen 127.0.0.1:0");
    wait_until("it says what it keeps", || ok(pping.stderr()).contains("keeping "));
    assert!(ok(pping.stderr()).contains("keeping only CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_BPF, to attach"));
    let threads = capabilities(&pping);
    assert!(threads.len() >= 4, "{threads:?}");
    for (name, permitted, bounding, no_new) in threads {
        let may = match name.as_str() {
            "pping" => CAP_DAC_OVERRIDE | CAP_NET_ADMIN | CAP_BPF,
            "pping-output" | "pping-hdr-log" => CAP_DAC_OVERRIDE,
            _ => 0,
        };
        assert_eq!(permitted, may, "{name}");
        assert!(no_new && (may == 0 || bounding == may), "{name}");
    }
    interrupt(pping);
}

#[test]
fn threads_of_groups_and_history_keep_what_they_need() {
    let (topology, directory) = (topology(), tempfile::tempdir().unwrap());
    let path = directory.path().display();
    let options = format!(
        "--format none --listen 127.0.0.1:0 --groups-socket {path}/groups.sock --groups-state {path}/state --history \
         {path}/history"
    );
    let pping = watch(topology.router(), Topology::WAN, &options);
    // Changing a map takes CAP_BPF. The others write files that are open, or that belong to this user.
    for (name, may) in
        [("pping-groups", CAP_BPF), ("pping-groups-wr", 0), ("pping-history", 0), ("pping-http", 0)]
    {
        wait_until(name, || {
            let threads = capabilities(&pping);
            let thread = threads.iter().find(|(of, ..)| of == name);
            thread.is_some_and(|(_, permitted, _, no_new)| *permitted == may && *no_new)
        });
    }
    interrupt(pping);
}

#[test]
fn later_interfaces_need_two_of_three_capabilities() {
    let (host, copy) = (Host::new(), Copy::new());
    let three = ["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon"];
    for ingress in ["tc", "xdp"] {
        let arguments = ["-v", "-i", "eth0", "-i", "dial*", "--ingress", ingress];
        let command = setpriv(host.namespace.command("setpriv"), &three, &copy.program, &arguments);
        let pping = watch_with(command, Host::ETH);
        wait_until("it gave up the rest", || {
            ok(pping.stderr()).contains("keeping only CAP_NET_ADMIN, CAP_BPF")
        });
        let main = capabilities(&pping).into_iter().find(|(name, ..)| name == "pping").unwrap();
        assert_eq!((main.1, main.3), (CAP_NET_ADMIN | CAP_BPF, true));
        let add = ["link", "add", "dial0", "type", "veth", "peer", "name", "far0"];
        ok(run(host.namespace.command("ip").args(add)));
        wait_until("it is watched", || ok(pping.stderr()).contains("watching dial0 at"));
        interrupt(pping);
        ok(run(host.namespace.command("ip").args(["link", "delete", "dial0"])));
    }
}
