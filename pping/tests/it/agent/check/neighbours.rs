//! `pping check` names the foreign programs that are attached to an interface.

use pping_lab::run;
use serde_json::{Value, json};

use super::{
    super::{
        bpf::{AttachType, Program, Verdict},
        monitor::watch,
    },
    Bpffs, ETH, Host, attachments, check, check_with, interrupt, ok, tool,
};

#[test]
fn a_foreign_xdp_program_is_named() {
    let host = Host::new();
    let foreign = Program::load(Verdict::XdpPass, "scrubber");
    let link = foreign.attach(&host.namespace, Host::ETH, AttachType::Xdp);
    // The kernel shows the same program.
    let ip = ok(run(host.namespace.command("ip").args(["-json", "link", "show", "dev", Host::ETH])));
    let ip: Value = serde_json::from_str(&ip).unwrap();
    assert_eq!(ip[0]["xdp"]["prog"]["id"], foreign.id);
    let named = format!("scrubber id {} (xdp-native)", foreign.id);
    for (ingress, status) in [("tc", "degraded"), ("auto", "degraded"), ("xdp", "missing")] {
        let report = check(&host.namespace, &format!("-i eth0 --ingress {ingress}"));
        report.assert("xdp", ETH, status, &[&named]);
        assert_eq!(report.0["ok"], ingress != "xdp");
    }
    drop(link);
    check(&host.namespace, "-i eth0 --ingress xdp").assert("xdp", ETH, "ok", &["no other program"]);
}

#[test]
fn foreign_tcx_programs_are_named_in_their_order() {
    let host = Host::new();
    let [first, second, out] = ["first", "second", "out"].map(|name| Program::load(Verdict::TcNext, name));
    let _links = [
        first.attach(&host.namespace, Host::ETH, AttachType::TcxIngress),
        second.attach(&host.namespace, Host::ETH, AttachType::TcxIngress),
        out.attach(&host.namespace, Host::ETH, AttachType::TcxEgress),
    ];
    let [(.., a), (.., b), (.., c)] =
        [&first, &second, &out].map(|it| tool("bpftool", &["prog", "show", "id", &it.id.to_string()]));
    assert!(a.contains("name first") && b.contains("name second") && c.contains("name out"), "{a}{b}{c}");
    let order = format!(
        "after pping: first id {} (TCX, ingress), second id {} (TCX, ingress), out id {} (TCX, egress)",
        first.id, second.id, out.id
    );
    check(&host.namespace, "-i eth0").assert("tc", ETH, "ok", &[&order]);
    let without = check_with(&host.namespace, "--json -i eth0", &[("PPING_WITHOUT", "tcx")]).report();
    without.assert("tc", ETH, "degraded", &[&order.replace("after", "before")]);
}

#[test]
fn foreign_filters_are_named_and_come_after_tcx() {
    let (host, bpffs) = (Host::new(), Bpffs::new());
    let foreign = Program::load(Verdict::TcNext, "shaper");
    let pin = bpffs.path().join("shaper");
    foreign.pin(&pin);
    let tc = |arguments: &str| ok(run(host.namespace.command("tc").args(arguments.split(' '))));
    tc("qdisc add dev eth0 clsact");
    tc(&format!("filter add dev eth0 ingress pref 7 bpf da object-pinned {}", pin.display()));
    tc("filter add dev eth0 egress protocol ip pref 9 u32 match ip dst 192.0.2.1 flowid 1:1");
    let shown: Value = serde_json::from_str(&tc("-json filter show dev eth0 ingress")).unwrap();
    let shown = shown.as_array().unwrap().iter().find(|filter| filter["options"].is_object()).unwrap();
    assert_eq!((&shown["pref"], &shown["options"]["prog"]["id"]), (&json!(7), &json!(foreign.id)));
    let name = shown["options"]["bpf_name"].as_str().unwrap();

    let before = attachments(&host.namespace, Host::ETH);
    let named = format!("{name} id {} pref 7 (filter, ingress)", foreign.id);
    let parts = ["TCX; after pping: ", &named, "u32 pref 9 (filter, egress)"];
    check(&host.namespace, "-i eth0").assert("tc", ETH, "ok", &parts);
    let without = check_with(&host.namespace, "--json -i eth0", &[("PPING_WITHOUT", "tcx")]).report();
    without.assert("tc", ETH, "degraded", &["clsact; before pping: ", &named, "pref of 32768"]);
    assert_eq!(attachments(&host.namespace, Host::ETH), before);
    tc("filter delete dev eth0 ingress");
    tc("filter delete dev eth0 egress");
    tc("filter add dev eth0 egress protocol ip u32 match ip dst 192.0.2.1 flowid 1:1");
    let without = check_with(&host.namespace, "--json -i eth0", &[("PPING_WITHOUT", "tcx")]).report();
    without.assert("tc", ETH, "ok", &["clsact; after pping: u32 pref 49152"]);
}

#[test]
fn a_qdisc_without_egress_blocks_clsact() {
    let host = Host::new();
    ok(run(host.namespace.command("tc").args(["qdisc", "add", "dev", "eth0", "ingress"])));
    check(&host.namespace, "-i eth0").assert("tc", ETH, "ok", &["TCX"]);
    let without = check_with(&host.namespace, "--json -i eth0", &[("PPING_WITHOUT", "tcx")]).report();
    without.assert("tc", ETH, "missing", &["ingress qdisc", "replace it with clsact"]);
}

#[test]
fn a_running_pping_is_not_listed_as_foreign() {
    let host = Host::new();
    for ingress in ["tc", "xdp"] {
        let running = watch(&host.namespace, Host::ETH, &format!("--ingress {ingress}"));
        let before = attachments(&host.namespace, Host::ETH);
        let report = check(&host.namespace, &format!("-i eth0 --ingress {ingress}"));
        assert_eq!(attachments(&host.namespace, Host::ETH), before);
        let at = if ingress == "xdp" { "xdp" } else { "tc" };
        report.assert(at, ETH, "ok", &["a pping measures there: pping_"]);
        assert_eq!(report.0["ok"], true);
        interrupt(running);
    }
}
