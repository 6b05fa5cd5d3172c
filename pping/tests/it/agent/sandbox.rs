//! systemd accepts the units, and pping runs within their restrictions.

use std::{collections::BTreeSet, fs, path::Path};

use pping_lab::{Process, Signal};

use super::{
    host::Host,
    http::{LISTEN, is_ready, scrape},
    monitor::{ENDING, PPING, ok, repository, tool, wait_until, watch_with},
    monitoring::stack::replace,
    unit::{self, SERVICES, SOURCES, Service, settings},
};

/// The highest accepted exposure, in tenths; `systemd-analyze security` rates from 0 to 10.
const THRESHOLD: &str = "--threshold=20";

/// Returns the complaints of `systemd-analyze verify` about a unit next to those in `deploy/`.
fn verify(name: &str, unit: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    for name in ["run-pping.mount"].iter().chain(&SERVICES).chain(&SOURCES) {
        fs::copy(repository("deploy/systemd").join(name), directory.path().join(name)).unwrap();
    }
    let path = directory.path().join(name);
    let unit =
        if name.ends_with(".service") { replace(unit, "/usr/bin/pping", PPING) } else { unit.to_owned() };
    fs::write(&path, unit).unwrap();
    // The package installs the man page, so it is missing here.
    let (succeeded, said) = tool("systemd-analyze", &["verify", "--man=no", path.to_str().unwrap()]);
    if succeeded { said } else { format!("failed: {said}") }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    assert_eq!(verify("pping.service", &unit::read("pping.service")), "");
    assert_eq!(verify("pping@wan.service", &unit::read("pping@.service")), "");
    assert_eq!(verify("run-pping.mount", &unit::read("run-pping.mount")), "");
    for name in SOURCES {
        assert_eq!(verify(name, &unit::read(name)), "");
    }
    let spoiled = verify("pping.service", &replace(&unit::read("pping.service"), "\nRestart=", "\nRestrt="));
    assert!(spoiled.contains("Restrt"), "a spoiled unit went unnoticed: {spoiled}");
}

#[test]
fn systemd_finds_the_units_as_little_exposed_as_they_should_be() {
    let security = |path: &str| tool("systemd-analyze", &["security", "--offline=true", THRESHOLD, path]);
    for name in SERVICES.iter().chain(&SOURCES) {
        let (passed, said) = security(repository("deploy/systemd").join(name).to_str().unwrap());
        assert!(passed, "{name}: {said}");
    }
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join("pping.service");
    fs::write(&open, "[Service]\nExecStart=/usr/bin/pping\n").unwrap();
    assert!(!security(open.to_str().unwrap()).0, "an open unit passes as well");
}

#[test]
fn an_instance_differs_in_its_name_and_configuration_only() {
    let lines = |name| -> Vec<String> {
        let said = unit::read(name);
        said.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned).collect()
    };
    let expected: Vec<_> = lines("pping.service")
        .into_iter()
        .map(|line| match line.split('=').next() {
            Some("Description") => line + " (%i)",
            _ => line.replace("/etc/pping/pping.toml", "/etc/pping/%i.toml"),
        })
        .collect();
    assert_eq!(lines("pping@.service"), expected);
}

/// Adds the system calls of one word of a filter: a name or a group.
fn expand(word: &str, groups: &str, into: &mut BTreeSet<String>) {
    if !word.starts_with('@') {
        into.insert(word.to_owned());
        return;
    }
    let mut lines = groups.lines().skip_while(|line| *line != word);
    assert!(lines.next().is_some(), "systemd knows no {word}");
    for member in lines.take_while(|line| line.starts_with(' ')).map(str::trim) {
        if !member.starts_with('#') {
            expand(member, groups, into);
        }
    }
}

/// Returns the system calls that a unit allows.
fn allowed(unit: &str) -> BTreeSet<String> {
    let (listed, groups) = tool("systemd-analyze", &["syscall-filter", "--no-pager"]);
    assert!(listed, "{groups}");
    let mut allowed = BTreeSet::new();
    // This group is allowed whatever the filter says.
    expand("@default", &groups, &mut allowed);
    for line in settings(unit, "SystemCallFilter") {
        let mut named = BTreeSet::new();
        let is_denied = line.starts_with('~');
        line.trim_start_matches('~').split(' ').for_each(|word| expand(word, &groups, &mut named));
        if is_denied {
            allowed.retain(|name| !named.contains(name));
        } else {
            allowed.extend(named);
        }
    }
    allowed
}

/// Asserts that the units allow the system calls and sockets in an strace.
#[track_caller]
fn assert_allowed(trace: &Path) {
    let trace = fs::read_to_string(trace).unwrap();
    // Calls before this one are setpriv's.
    let (_, trace) = trace.split_once("/pping\", [").expect("pping was started");
    let calls: BTreeSet<&str> = trace
        .lines()
        .filter_map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        .collect();
    assert!(calls.contains("bpf") && calls.contains("exit_group") && calls.len() > 30, "{calls:?}");
    let sockets = trace.split(" socket(").skip(1).filter_map(|rest| rest.split(',').next());
    let families: BTreeSet<&str> = sockets.collect();
    assert!(families.contains("AF_NETLINK"), "{families:?}");
    for name in SERVICES {
        let unit = unit::read(name);
        let allowed = allowed(&unit);
        let denied: Vec<_> = calls.iter().filter(|call| !allowed.contains(**call)).collect();
        assert!(denied.is_empty(), "{name} does not allow {denied:?}");
        assert!(!allowed.contains("mount") && !allowed.contains("init_module"), "{allowed:?}");
        let listed = settings(&unit, "RestrictAddressFamilies").join(" ");
        let listed: BTreeSet<&str> = listed.split(' ').collect();
        let denied: Vec<_> = families.difference(&listed).collect();
        assert!(denied.is_empty(), "{name} does not allow {denied:?}");
    }
}

#[test]
fn every_system_call_of_a_run_is_allowed() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let options = format!(
        "-v -i {} --ingress auto --aggregate 1s {LISTEN} -w {directory}/records --hdr-log {directory}/log",
        Host::ETH,
        directory = directory.path().display()
    );
    let behind = format!("strace -f -qq -o {}", trace.display());
    let unit = Service::new(&host.namespace, &behind, &options);
    let mut service = ok(Process::spawn(unit.command));
    wait_until("the service is ready", || {
        assert!(ok(service.status()).is_none(), "{}", ok(service.stderr()));
        is_ready(&host.namespace)
    });
    scrape(&host.namespace);
    // strace forwards no signals, so this signals pping itself.
    let pid = fs::read_to_string(format!("/proc/{0}/task/{0}/children", service.id())).unwrap();
    let signal = |name| assert!(tool("kill", &[name, pid.trim()]).0);
    fs::rename(directory.path().join("records"), directory.path().join("rotated")).unwrap();
    signal("-HUP");
    wait_until("the file is opened again", || directory.path().join("records").exists());
    signal("-TERM");
    let status = ok(service.wait_timeout(2 * ENDING));
    assert!(status.success(), "{}", ok(service.stderr()));
    assert_allowed(&trace);
}

#[test]
fn every_system_call_on_a_kernel_without_tcx_is_allowed() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    // The first run is killed, so that the next one has something to remove.
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let mut command = host.namespace.command("strace");
        command.env("PPING_WITHOUT", "tcx").args(["-f", "-qq", "-o"]).arg(&trace);
        command.args([PPING, "-v", "-i", Host::ETH, "--format", "none"]);
        let mut strace = watch_with(command, Host::ETH);
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", strace.id())).unwrap();
        assert!(tool("kill", &[&format!("-{}", signal as i32), children.trim()]).0);
        ok(strace.wait_timeout(2 * ENDING));
    }
    assert_allowed(&trace);
}
