//! `pping check` reports what other tools see, and changes nothing.

mod neighbours;
mod placement;
mod privileges;

use std::{fs, process::Output};

use pping_lab::{Namespace, run};
use serde_json::{Value, json};

use super::{
    bpffs::Bpffs,
    host::Host,
    monitor::{PPING, attachments, interrupt, ok, pping, tool, wait_until, watch},
};
use crate::schemas::validator;

/// The output of `pping check`.
struct CheckOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl CheckOutput {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The JSON report, validated against its schema.
    #[track_caller]
    fn report(&self) -> Report {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr));
        let faults: Vec<String> =
            validator("check.json").iter_errors(&document).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{document:#}: {faults:?}");
        assert_eq!(self.code, Some(i32::from(document["ok"] != true)), "{document:#}");
        Report(document)
    }
}

/// The output of `pping check --json`.
struct Report(Value);

impl Report {
    fn checks(&self) -> &[Value] {
        self.0["checks"].as_array().unwrap()
    }

    #[track_caller]
    fn get(&self, name: &str, subject: Option<&str>) -> &Value {
        let mut found =
            self.checks().iter().filter(|check| check["name"] == name && check["subject"] == json!(subject));
        let check = found.next().unwrap_or_else(|| panic!("no {name} of {subject:?} in {:#}", self.0));
        assert!(found.next().is_none(), "{name} of {subject:?} twice");
        check
    }

    fn has(&self, name: &str, subject: Option<&str>) -> bool {
        self.checks().iter().any(|check| check["name"] == name && check["subject"] == json!(subject))
    }

    #[track_caller]
    fn assert(&self, name: &str, subject: Option<&str>, status: &str, parts: &[&str]) {
        let check = self.get(name, subject);
        assert_eq!(check["status"], status, "{check:#}");
        let text = format!("{} {}", check["found"], check["remedy"]);
        for part in parts {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }
}

fn check_with(host: &Namespace, arguments: &str, variables: &[(&str, &str)]) -> CheckOutput {
    let mut command = pping(host, &format!("check {arguments}"));
    CheckOutput::of(command.envs(variables.iter().copied()).output().unwrap())
}

/// The report for a run with these options.
#[track_caller]
fn check(host: &Namespace, arguments: &str) -> Report {
    check_with(host, &format!("--json {arguments}"), &[]).report()
}

const ETH: Option<&str> = Some(Host::ETH);

#[test]
fn check_passes_on_a_healthy_host_and_leaves_nothing_behind() {
    let host = Host::new();
    let before = attachments(&host.namespace, Host::ETH);
    let report = check(&host.namespace, "");
    assert_eq!(report.0["ok"], true);
    assert_eq!(attachments(&host.namespace, Host::ETH), before);
    let release = tool("uname", &["-r"]).1;
    report.assert("kernel", None, "ok", &[release.trim()]);
    report.assert("capabilities", None, "ok", &["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"]);
    report.assert(
        "programs",
        None,
        "ok",
        &[
            "pping_ingress",
            "pping_egress",
            "pping_tc_slow",
            "pping_tc_step4",
            "pping_tc_step6",
            "pping_tc_report4",
            "pping_tc_report6",
            "pping_tc_networks4",
            "pping_tc_networks6",
            "pping_sweep",
        ],
    );
    report.assert("memory", None, "ok", &["for 131072 flows"]);
    report.assert("tc", ETH, "ok", &["no other program"]);
    report.assert("xdp", ETH, "ok", &["native", "no other program"]);
    let driver = ok(run(host.namespace.command("ethtool").args(["-i", Host::ETH])));
    let driver = driver.lines().find_map(|line| line.strip_prefix("driver: ")).unwrap();
    report.assert("interface", ETH, "ok", &["up, Ethernet", &format!("driver {driver}")]);
    // The default pattern leaves out loopback, but it can be named.
    assert!(report.checks().iter().all(|check| check["subject"] != "lo"));
    check(&host.namespace, "-i lo").assert("xdp", Some("lo"), "ok", &["generic only"]);
}

/// Status, name and interface of each row, without colours and without the text below the table.
fn rows(table: &str) -> Vec<(String, String, Option<String>)> {
    let mut rows = Vec::new();
    let mut subject = None;
    let (lines, _) = table.split_once("\npping can").unwrap();
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name] if !line.starts_with(' ') => subject = Some(name.to_owned()),
            [status, name, ..] if !line.starts_with(' ') => {
                rows.push((status.to_owned(), name.to_owned(), subject.clone()));
            }
            _ => {}
        }
    }
    rows
}

#[test]
fn the_table_agrees_with_the_json_document() {
    let host = Host::new();
    let arguments = "-i eth0 -i lo -i eth7 --ingress xdp";
    let table = check_with(&host.namespace, arguments, &[]);
    assert_eq!(table.code, Some(1), "{}", table.stderr);
    assert!(table.stderr.starts_with("pping: pping cannot run here: eth7 interface"), "{}", table.stderr);
    assert!(!table.stdout.contains('\x1b'), "{}", table.stdout);
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 100), "{}", table.stdout);
    let report = check(&host.namespace, arguments);
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let of_document: Vec<_> = report
        .checks()
        .iter()
        .map(|it| (text(&it["status"]).unwrap(), text(&it["name"]).unwrap(), text(&it["subject"])))
        .collect();
    assert_eq!(rows(&table.stdout), of_document);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The available memory changes from one moment to the next.
    for check in report.checks().iter().filter(|check| check["name"] != "memory") {
        for key in ["found", "remedy"] {
            let said = words(check[key].as_str().unwrap_or_default());
            assert!(words(&table.stdout).contains(&said), "no `{said}` in {}", table.stdout);
        }
    }
}

#[test]
fn colours_are_for_terminals() {
    let host = Host::new();
    let on_terminal = |variables: &[(&str, &str)]| {
        let mut script = host.namespace.command("script");
        script.args(["-qec", &format!("stty rows 25 columns 80; {PPING} check -i eth0"), "/dev/null"]);
        script.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
        ok(run(&mut script))
    };
    let coloured = on_terminal(&[]);
    assert!(coloured.contains("\x1b[32mok\x1b[0m"), "{coloured:?}");
    let plain = on_terminal(&[("NO_COLOR", "1")]);
    assert!(!plain.contains('\x1b') && plain.contains("pping can run here"), "{plain:?}");
    assert!(plain.lines().all(|line| line.trim_end().chars().count() <= 80), "{plain}");
}

/// True if `ethtool -k` shows a feature as on.
fn is_on(host: &Namespace, feature: &str) -> bool {
    let features = ok(run(host.command("ethtool").args(["-k", Host::ETH])));
    let prefix = format!("{feature}: ");
    features.lines().find_map(|line| line.trim().strip_prefix(&prefix)).unwrap().starts_with("on")
}

#[test]
fn offloads_are_reported_as_by_ethtool() {
    let host = Host::new();
    let switch = |feature, state| {
        ok(run(host.namespace.command("ethtool").args(["-K", Host::ETH, feature, state])));
    };
    for (name, feature, switched) in [
        ("gro", "generic-receive-offload", &["gro"][..]),
        ("segmentation", "tcp-segmentation-offload", &["tso", "gso"]),
    ] {
        for state in ["on", "off"] {
            for feature in switched {
                switch(feature, state);
            }
            assert_eq!(is_on(&host.namespace, feature), state == "on");
            check(&host.namespace, "-i eth0").assert(name, ETH, "ok", &[state]);
        }
    }
    assert!(!is_on(&host.namespace, "large-receive-offload"));
    check(&host.namespace, "-i eth0").assert("lro", ETH, "ok", &["off"]);
    for (state, status) in [("on", "degraded"), ("off", "ok")] {
        switch("rxvlan", state);
        let report = check(&host.namespace, "-i eth0 --ingress xdp");
        report.assert(
            "vlan",
            ETH,
            status,
            &[if state == "on" { "ethtool -K eth0 rxvlan off" } else { "tags" }],
        );
        check(&host.namespace, "-i eth0").assert("vlan", ETH, "ok", &[]);
    }
}

#[test]
fn missing_features_name_their_substitute() {
    let (host, bpffs) = (Host::new(), Bpffs::new());
    let without = [("PPING_WITHOUT", "tcx,fetch,for-each")];
    let report = check_with(&host.namespace, "--json -i eth0", &without).report();
    assert_eq!(report.0["ok"], true);
    report.assert("fetch", None, "degraded", &["not in this kernel", "Linux 5.12", "atomic additions"]);
    report.assert("for-each", None, "degraded", &["Linux 5.13", "a system call for each flow"]);
    report.assert("tcx", None, "degraded", &["Linux 6.6", "clsact"]);
    report.assert("btf", None, "ok", &[]);
    report.assert("tc", ETH, "ok", &["clsact"]);
    let pin = format!("-i eth0 --pin {}", bpffs.pins().display());
    check_with(&host.namespace, &format!("--json {pin}"), &without).report().assert(
        "pin",
        None,
        "degraded",
        &["Linux 6.6"],
    );
    check(&host.namespace, &pin).assert("pin", None, "ok", &["is on a bpffs"]);
    assert!(!bpffs.pins().exists(), "the check created something");
    check(&host.namespace, "-i eth0 --pin /tmp").assert("pin", None, "missing", &["bpffs", "mount -t bpf"]);
}

#[test]
fn absent_interfaces_are_missing_unless_pping_waits_for_them() {
    let host = Host::new();
    let report = check(&host.namespace, "-i eht0 -i eth0");
    assert_eq!(report.0["ok"], false);
    report.assert("interface", Some("eht0"), "missing", &["no such interface", "did you mean eth0?"]);
    report.assert("interface", ETH, "ok", &[]);
    let report = check(&host.namespace, "-i eht0 -i ppp* --wait");
    assert_eq!(report.0["ok"], true);
    report.assert("interface", Some("eht0"), "degraded", &["waits for it"]);
    report.assert("interface", Some("ppp*"), "degraded", &["waits for interfaces that match"]);
    check(&host.namespace, "-i eth?").assert("interface", ETH, "ok", &[]);
    // The kernel fills in a `%`, so no interface name can contain one.
    check(&host.namespace, "-i eth%d").assert("interface", Some("eth%d"), "missing", &["eth0"]);
    ok(run(host.namespace.command("ip").args(["link", "set", "eth0", "down"])));
    check(&host.namespace, "-i eth0").assert("interface", ETH, "degraded", &["ip link set dev eth0 up"]);
    check(&host.namespace, "").assert("interfaces", None, "degraded", &["only loopback is up"]);
}

#[test]
fn odd_names_and_kinds_of_interfaces_are_handled() {
    let host = Host::new();
    let ip = |arguments: &[&str]| ok(run(host.namespace.command("ip").args(arguments)));
    for (number, name) in ["fifteen-letters", "eth0.100", "a$b;c", "\u{1b}[2Jx"].into_iter().enumerate() {
        ip(&["link", "add", "name", name, "type", "veth", "peer", "name", &format!("far{number}")]);
        // A bracket begins a character class of a pattern.
        let arguments = format!("-i {}", name.replace('[', "?"));
        let report = check(&host.namespace, &arguments);
        let shown = name.replace('\u{1b}', "\\x1b");
        report.assert("interface", Some(&shown), "degraded", &["down, Ethernet, driver veth"]);
        let table = check_with(&host.namespace, &arguments, &[]);
        assert!(!table.stdout.contains('\x1b') && table.code == Some(0), "{}", table.stdout);
        if name.starts_with('a') {
            report.assert("interface", Some(name), "degraded", &["ip link set dev 'a$b;c' up"]);
        }
    }
    ip(&["tuntap", "add", "dev", "tun7", "mode", "tun"]);
    check(&host.namespace, "-i tun7").assert("interface", Some("tun7"), "degraded", &["IP without Ethernet"]);
}

#[test]
fn the_configuration_is_checked_as_a_run_reads_it() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pping.toml");
    let name = file.to_str().unwrap();
    fs::write(&file, "interface = [\"lo\"]\nmax-flows = 262144\n").unwrap();
    let report = check(&host.namespace, &format!("--config {name}"));
    report.assert("configuration", None, "ok", &[name]);
    report.assert("memory", None, "ok", &["for 262144 flows"]);
    report.assert("interface", Some("lo"), "ok", &[]);
    assert!(report.checks().iter().all(|check| check["subject"] != "eth0"));

    fs::write(&file, "interface = [\"lo\"]\nrate-limit = \"fast\"\n").unwrap();
    let variables = [("PPING_CONFIG", name)];
    let report = check_with(&host.namespace, "--json -i eth0", &variables).report();
    let position = format!("{name}:2:14");
    report.assert("configuration", None, "missing", &[&position, "pping does not start"]);
    report.assert("interface", ETH, "ok", &[]);

    for (arguments, part) in [
        ("-i eth0 --rate-limit soon", "--rate-limit"),
        ("-r trace.pcap", "check cannot be used with --read"),
        ("eth0", "eth0"),
        ("--jsonl", "--json"),
    ] {
        let said = check_with(&host.namespace, arguments, &[]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{arguments}: {}", said.stderr);
        assert!(said.stderr.contains(part), "no `{part}` in {}", said.stderr);
    }
}

#[test]
fn the_reported_memory_is_what_a_run_takes() {
    let host = Host::new();
    for options in
        ["--max-flows 50000", "--max-flows 20000 --aggregate 10s --group-by /24,/48 --max-groups 3000"]
    {
        let report = check(&host.namespace, &format!("-i eth0 {options}"));
        let found = report.get("memory", None)["found"].as_str().unwrap().to_owned();
        let reported: f64 = found.split(' ').nth(3).unwrap().parse().unwrap();
        let running = watch(&host.namespace, Host::ETH, options);
        wait_until("it says so", || ok(running.stderr()).contains("maps take "));
        let log = ok(running.stderr());
        interrupt(running);
        let (_, rest) = log.split_once("maps take ").unwrap();
        let taken: f64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!((reported - taken).abs() < 1.0 + taken / 20.0, "{options}: {found}, but {taken} MiB");
    }
}

/// The report on a machine that says it has so many kilobytes of memory.
fn check_with_memory(host: &Namespace, total: u64, available: u64, arguments: &str) -> Report {
    let real = fs::read_to_string("/proc/meminfo").unwrap();
    let line = |line: &str| match line.split(':').next() {
        Some("MemTotal") => format!("MemTotal: {total} kB\n"),
        Some("MemAvailable") => format!("MemAvailable: {available} kB\n"),
        _ => format!("{line}\n"),
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), real.lines().map(line).collect::<String>()).unwrap();
    let mut command = host.command("unshare");
    let script = "mount --bind \"$0\" /proc/meminfo && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(file.path()).args([PPING, "check", "--json"]);
    CheckOutput::of(command.args(arguments.split_whitespace()).output().unwrap()).report()
}

#[test]
fn the_small_profile_is_named_where_memory_is_short() {
    let host = Host::new();
    let mebibytes = |text: &str| -> u64 {
        let (_, rest) = text.split_once("the maps take ").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let mut advised = 0;
    for (total, available, status) in [(524_288, 420_000, "degraded"), (131_072, 61_440, "missing")] {
        let report = check_with_memory(&host.namespace, total, available, "-i eth0");
        let parts = ["for 131072 flows", "--profile small, with which the maps take", "for 8192 flows"];
        report.assert("memory", None, status, &parts);
        let check = report.get("memory", None);
        advised = mebibytes(check["remedy"].as_str().unwrap());
        assert!(advised < 16 && mebibytes(check["found"].as_str().unwrap()) > 130, "{check:#}");
    }
    let small = "-i eth0 --profile small";
    let report = check_with_memory(&host.namespace, 131_072, 40_960, small);
    let parts = ["8192 flows of each address family, 1024 groups and 32 interfaces (--profile small)"];
    report.assert("memory", None, "missing", &parts);
    let report = check_with_memory(&host.namespace, 131_072, 81_920, small);
    report.assert("memory", None, "ok", &parts);
    let found = report.get("memory", None)["found"].as_str().unwrap();
    assert!(mebibytes(found).abs_diff(advised) <= 1, "{found}, but {advised} MiB were said");
}

#[test]
fn the_schema_rejects_invalid_reports() {
    let validator = validator("check.json");
    let good = json!({ "name": "kernel", "subject": null, "status": "ok", "found": "Linux" });
    let document = |ok: bool, check: &Value| json!({ "ok": ok, "checks": [check] });
    assert!(validator.is_valid(&document(true, &good)));
    assert!(!validator.is_valid(&document(false, &good)), "not ok, and nothing is missing");
    assert!(!validator.is_valid(&json!({ "ok": true, "checks": [] })));
    for (name, value) in [
        ("name", json!("weather")),
        ("subject", json!(7)),
        ("status", json!("fine")),
        ("status", json!("degraded")),
        ("status", json!("missing")),
        ("found", json!("")),
        ("remedy", json!("nothing helps where nothing is wrong")),
        ("colour", json!("blue")),
    ] {
        let mut spoiled = good.clone();
        spoiled[name] = value;
        assert!(!validator.is_valid(&document(true, &spoiled)), "{spoiled}");
    }
}
