//! `pping check` run with fewer privileges.

use super::{
    super::{
        bpf::{AttachType, Program, Verdict},
        copy::Copy,
    },
    CheckOutput, ETH, Host,
};

const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn unprivileged_check_names_unknowns_and_remedy() {
    let (host, copy) = (Host::new(), Copy::new());
    let mut command = host.namespace.command("setpriv");
    command.args(NOBODY).arg(&copy.program).args(["check", "--json", "-i", "eth0"]);
    let said = CheckOutput::of(command.output().unwrap());
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    let report = said.report();
    assert_eq!(said.code, Some(1));
    let grant = format!("sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {}", copy.program.display());
    let parts = ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON", &grant];
    report.assert("capabilities", None, "missing", &parts);
    for name in ["fetch", "for-each", "tcx", "btf", "ring-buffer", "programs", "jit"] {
        report.assert(name, None, "unknown", &["capabilities"]);
    }
    // These need no privileges.
    report.assert("interface", ETH, "ok", &["up, Ethernet"]);
    report.assert("xdp", ETH, "ok", &["native"]);
    report.assert("gro", ETH, "ok", &[]);
    report.assert("tc", ETH, "unknown", &["not permitted"]);
}

#[test]
fn three_capabilities_are_enough_for_all_but_names() {
    let (host, copy) = (Host::new(), Copy::new());
    let foreign = Program::load(Verdict::TcNext, "first");
    let _link = foreign.attach(&host.namespace, Host::ETH, AttachType::TcxIngress);
    let mut command = host.namespace.command("setpriv");
    command.args(NOBODY);
    command
        .args(["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon"]);
    command.arg(&copy.program).args(["check", "--json", "-i", "eth0"]);
    let report = CheckOutput::of(command.output().unwrap()).report();
    assert_eq!(report.0["ok"], true);
    report.assert("jit", None, "ok", &["machine code"]);
    report.assert("memory", None, "ok", &["MiB"]);
    let nameless = format!("program {} (TCX, ingress)", foreign.id);
    report.assert("tc", ETH, "ok", &["after pping", &nameless]);
    let mut mirror = host.namespace.command("setpriv");
    mirror.args(command.get_args());
    let said = CheckOutput::of(mirror.args(["--mirror", "--inside", "192.0.2.0/24"]).output().unwrap());
    assert_eq!(said.code, Some(1));
    said.report().assert("mirror", None, "missing", &["Operation not permitted", "grant CAP_NET_RAW"]);
    let report = CheckOutput::of(command.env("PPING_WITHOUT", "tcx").output().unwrap()).report();
    report.assert("tc", ETH, "degraded", &["before pping", &nameless, "as root to see their names"]);
}
