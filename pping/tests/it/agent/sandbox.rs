//! systemd accepts the units, and pping runs within their restrictions.

use std::{collections::BTreeSet, fs, path::Path};

use pping_lab::{Process, Signal, run};

use super::{
    host::Host,
    http::{LISTEN, is_ready, scrape},
    monitor::{ENDING, PPING, interrupt, ok, pping, repository, tool, wait_until, watch_with},
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

/// Asserts that the units of the service allow the system calls and sockets in an strace.
#[track_caller]
fn assert_allowed(trace: &Path) {
    let trace = fs::read_to_string(trace).unwrap();
    let (calls, families) = assert_units_allow(&SERVICES, &trace);
    assert!(calls.contains("bpf") && calls.len() > 30, "{calls:?}");
    assert!(families.contains("AF_NETLINK"), "{families:?}");
}

/// Asserts that units allow the system calls and sockets of a trace, and returns these.
#[track_caller]
fn assert_units_allow<'a>(units: &[&str], trace: &'a str) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    // Calls before this one are setpriv's.
    let (_, trace) = trace.split_once("/pping\", [").expect("pping was started");
    let calls: BTreeSet<&str> = trace
        .lines()
        .filter_map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').split_once('('))
        .map(|(name, _)| name)
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        .collect();
    assert!(calls.contains("exit_group"), "{calls:?}");
    let sockets = trace.split(" socket(").skip(1).filter_map(|rest| rest.split(',').next());
    let families: BTreeSet<&str> = sockets.collect();
    for name in units {
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
    (calls, families)
}

/// Changes groups in all ways that there are.
fn change_groups(socket: &str, file: &str) {
    for line in [
        "add 192.0.2.7 customer-7 --column site=north",
        "add 192.0.2.7 customer-8",
        &format!("import {file} --source file-of-test"),
        &format!("replace {file} --source other"),
        "list",
        "remove 192.0.2.7",
    ] {
        let arguments: Vec<_> =
            ["groups"].into_iter().chain(line.split(' ')).chain(["--socket", socket]).collect();
        let (done, said) = tool(PPING, &arguments);
        assert!(done, "{line}: {said}");
    }
}

#[test]
fn every_system_call_of_a_run_is_allowed() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let file = directory.path().join("groups.csv");
    fs::write(&file, "prefix,group,site\n198.51.100.0/24,others,south\n").unwrap();
    let (socket, file) = (directory.path().join("groups.sock"), file.to_str().unwrap());
    let options = format!(
        "-v -i {} --ingress auto --aggregate 1s {LISTEN} -w {directory}/records --hdr-log {directory}/log --groups {file} \
         --groups-socket {directory}/groups.sock --groups-state {directory}/state --roll-up site --history \
         {directory}/history",
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
    change_groups(socket.to_str().unwrap(), file);
    // strace forwards no signals, so this signals pping itself.
    let pid = fs::read_to_string(format!("/proc/{0}/task/{0}/children", service.id())).unwrap();
    let signal = |name| assert!(tool("kill", &[name, pid.trim()]).0);
    fs::rename(directory.path().join("records"), directory.path().join("rotated")).unwrap();
    signal("-HUP");
    wait_until("the file is opened again", || directory.path().join("records").exists());
    change_groups(socket.to_str().unwrap(), file);
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

#[test]
fn every_system_call_of_a_source_of_groups_is_allowed() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (socket, trace, secret) = (path("groups.sock"), path("trace"), path("secret"));
    fs::write(&secret, "a-secret\n").unwrap();
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(path("leases"), "0 02:00:5e:10:00:01 192.0.2.1 radio *\n").unwrap();
    let devices = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,\
                   Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n1,radio,1,one,ap,,192.0.2.1,,1,1,20,10,\n";
    fs::write(path("ShapedDevices.csv"), devices).unwrap();
    let options = format!("-v -i {} --format none --groups-socket {socket}", Host::ETH);
    let pping = watch_with(pping(&host.namespace, &options), Host::ETH);
    for (source, options) in [
        ("dhcp", format!("--dnsmasq {}", path("leases"))),
        ("radius", format!("--secret-file {secret}")),
        ("shaped-devices", format!("--follow {}", path("ShapedDevices.csv"))),
    ] {
        let name = &*format!("pping-groups-{source}.service");
        let mut command = host.namespace.command("strace");
        command.args(["-f", "-qq", "-o", &trace, PPING, "groups", source]).args(options.split(' '));
        command.args(["--socket", &socket]);
        let mut running = ok(Process::spawn(command));
        wait_until("the source speaks to pping", || {
            assert!(ok(running.status()).is_none(), "{name}: {}", ok(running.stderr()));
            fs::read_to_string(&trace).unwrap_or_default().contains("groups.sock")
        });
        if name.contains("radius") {
            let start = "Acct-Status-Type = Start, Acct-Session-Id = 1, User-Name = radio, Framed-IP-Address = 192.0.2.1\n";
            fs::write(path("request"), start).unwrap();
            let mut radclient = host.namespace.command("radclient");
            ok(run(radclient.args(["-f", &path("request"), "127.0.0.1:1813", "acct", "a-secret"])));
        }
        wait_until("it gives a name", || {
            tool(PPING, &["groups", "list", "--socket", &socket]).1.contains("192.0.2.1/32,radio")
        });
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.id())).unwrap();
        assert!(tool("kill", &["-TERM", children.trim()]).0);
        assert!(ok(running.wait_timeout(2 * ENDING)).success());
        let said = fs::read_to_string(&trace).unwrap();
        let (_, families) = assert_units_allow(&[name], &said);
        assert!(families.contains("AF_UNIX"), "{families:?}");
        tool(PPING, &["groups", "remove", "192.0.2.1", "--source", source, "--socket", &socket]);
    }
    interrupt(pping);
}
