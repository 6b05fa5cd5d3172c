//! `pping groups dhcp`, with the servers and a client that people run.

use std::{
    ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command, thread, time::Duration,
};

use pping_lab::{Process, Signal, Topology};

use super::client::{Agent, OPTIONS};
use crate::agent::monitor::{ENDING, PATIENCE, PPING, interrupt, ok, wait_until};

/// A DHCP server on the router, for the client. It has the file of leases and the directory.
type Server = fn(&Agent, &Path) -> Process;

fn dnsmasq(agent: &Agent, leases: &Path) -> Process {
    let mut command = agent.topology.router().command("dnsmasq");
    command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping", "--pid-file="]);
    command.args(["--user=root", "--dhcp-authoritative", "--log-facility=-", "--bind-interfaces"]);
    command.args([&format!("--interface={}", Topology::LAN), "--dhcp-range=10.11.1.100,10.11.1.150,2m"]);
    command.arg(format!("--dhcp-leasefile={}", leases.display()));
    let mut server = ok(Process::spawn(command));
    ok(server.wait_for_output("sockets bound", PATIENCE));
    server
}

fn kea(agent: &Agent, leases: &Path) -> Process {
    let configuration = agent.path("kea.conf");
    let text = format!(
        r#"{{"Dhcp4": {{
            "interfaces-config": {{"interfaces": ["{}"]}},
            "lease-database": {{"type": "memfile", "persist": true, "name": "{}", "lfc-interval": 2}},
            "valid-lifetime": 120,
            "subnet4": [{{"subnet": "10.11.1.0/24", "pools": [{{"pool": "10.11.1.100 - 10.11.1.150"}}]}}],
            "loggers": [{{"name": "kea-dhcp4", "output_options": [{{"output": "stdout"}}], "severity": "INFO"}}]
        }}}}"#,
        Topology::LAN,
        leases.display()
    );
    fs::write(&configuration, text).unwrap();
    let mut command = agent.topology.router().command("kea-dhcp4");
    command.arg("-c").arg(configuration);
    command.env("KEA_LOCKFILE_DIR", agent.directory.path()).env("KEA_PIDFILE_DIR", agent.directory.path());
    let mut server = ok(Process::spawn(command));
    ok(server.wait_for_output("DHCP4_STARTED", PATIENCE));
    server
}

fn dhcpd(agent: &Agent, leases: &Path) -> Process {
    let configuration = agent.path("dhcpd.conf");
    let text = "authoritative;\nping-check false;\ndefault-lease-time 120;\n\
                subnet 10.11.1.0 netmask 255.255.255.0 { range 10.11.1.100 10.11.1.150; }\n";
    fs::write(&configuration, text).unwrap();
    fs::write(leases, "").unwrap();
    let mut command = agent.topology.router().command("dhcpd");
    command.args(["-4", "-f", "-d", "-cf"]).arg(configuration).arg("-lf").arg(leases);
    command.arg("-pf").arg(agent.path("dhcpd.pid")).arg(Topology::LAN);
    let mut server = ok(Process::spawn(command));
    ok(server.wait_for_output("Server starting service", PATIENCE));
    server
}

/// A client that has a lease until it is stopped, and gives it back then.
fn client(agent: &Agent, hostname: &str) -> Process {
    // To give a lease back, the client needs the address.
    let script = agent.path("script");
    let text =
        "#!/bin/sh\ncase $1 in bound | renew) ip address replace \"$ip/24\" dev \"$interface\" ;; esac\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = agent.topology.client().command("busybox");
    command.args(["udhcpc", "-f", "-R", "-i", Topology::ETH, "-x", &format!("hostname:{hostname}"), "-s"]);
    ok(Process::spawn(with(command, script)))
}

fn with(mut command: Command, argument: impl AsRef<OsStr>) -> Command {
    command.arg(argument);
    command
}

fn labels(agent: &Agent) -> Vec<String> {
    let listed = agent.connect().list();
    listed
        .into_iter()
        .map(|(prefix, label, source)| {
            assert!(prefix.starts_with("10.11.1.1") && source == "dhcp", "{prefix} {source}");
            label
        })
        .collect()
}

/// Follows a lease file.
fn follow(agent: &Agent, options: &[&str]) -> Process {
    let mut command = Command::new(PPING);
    command.args(["groups", "dhcp"]).args(options).arg("--socket").arg(agent.socket());
    let mut process = ok(Process::spawn(command));
    ok(process.wait_for_output("following 1 lease files", PATIENCE));
    process
}

#[track_caller]
fn leases_are_followed(option: &str, server: Server) {
    let mut agent = Agent::new(None, OPTIONS);
    let leases = agent.path("leases");
    let follow = |agent: &Agent| follow(agent, &[option, leases.to_str().unwrap()]);
    // It may start before there is a file.
    let mut follower = follow(&agent);
    let server = server(&agent, &leases);
    let mut camera = client(&agent, "porch-camera");
    wait_until("the lease has a name", || labels(&agent) == ["porch-camera"]);
    ok(camera.stop(Signal::SIGTERM, ENDING));
    wait_until("the lease was given back", || labels(&agent).is_empty());
    let mut radio = client(&agent, "kitchen-radio");
    wait_until("another lease has a name", || labels(&agent) == ["kitchen-radio"]);
    // Neither a pping that forgot everything nor another follower changes that. Kea moves its file away meanwhile.
    ok(agent.process.stop(Signal::SIGINT, ENDING));
    fs::remove_file(agent.path("journal")).unwrap();
    agent.restart(OPTIONS);
    wait_until("pping knows it again", || labels(&agent) == ["kitchen-radio"]);
    ok(follower.stop(Signal::SIGTERM, ENDING));
    thread::sleep(Duration::from_secs(3));
    let mut follower = follow(&agent);
    thread::sleep(Duration::from_secs(1));
    assert_eq!(labels(&agent), ["kitchen-radio"]);
    ok(radio.stop(Signal::SIGTERM, ENDING));
    wait_until("it was given back, too", || labels(&agent).is_empty());
    ok(follower.stop(Signal::SIGTERM, ENDING));
    let said = ok(follower.stderr());
    assert!(said.contains("0 leases\n"), "{said}");
    drop(server);
    interrupt(agent.process);
}

#[test]
fn leases_of_dnsmasq_are_followed() {
    leases_are_followed("--dnsmasq", dnsmasq);
}

#[test]
fn leases_of_kea_are_followed() {
    leases_are_followed("--kea", kea);
}

#[test]
fn leases_of_isc_are_followed() {
    leases_are_followed("--isc", dhcpd);
}

#[test]
fn a_file_of_another_kind_takes_no_name_away() {
    let agent = Agent::new(None, OPTIONS);
    let (added, said) = agent.command(&["add", "10.11.1.100", "porch-camera", "--source", "dhcp"]);
    assert!(added, "{said}");
    let file = agent.path("kea-leases4.csv");
    fs::write(
        &file,
        "address,hwaddr,client_id,valid_lifetime,expire\n10.11.1.9,02:00:5e:00:00:05,,60,4000000000\n",
    )
    .unwrap();
    let mut command = Command::new(PPING);
    command.args(["groups", "dhcp", "--dnsmasq"]).arg(&file).arg("--socket").arg(agent.socket());
    let mut follower = ok(Process::spawn(command));
    assert_eq!(ok(follower.wait_timeout(ENDING)).code(), Some(2));
    let said = ok(follower.stderr());
    assert!(
        said.contains("kea-leases4.csv: this is no lease file of dnsmasq; give those of Kea to --kea"),
        "{said}"
    );
    assert_eq!(labels(&agent), ["porch-camera"]);
    interrupt(agent.process);
}

/// A server of addresses and prefixes for IPv6.
fn kea_for_ipv6(agent: &Agent, leases: &Path) -> Process {
    let configuration = agent.path("kea6.conf");
    let text = format!(
        r#"{{"Dhcp6": {{
            "interfaces-config": {{"interfaces": ["{lan}"]}},
            "lease-database": {{"type": "memfile", "persist": true, "name": "{}", "lfc-interval": 2}},
            "server-id": {{"type": "LL", "persist": false}},
            "valid-lifetime": 120, "preferred-lifetime": 100,
            "subnet6": [{{"subnet": "fd00:11:1::/64", "interface": "{lan}",
                "pools": [{{"pool": "fd00:11:1::100 - fd00:11:1::1ff"}}],
                "pd-pools": [{{"prefix": "fd00:11:aa00::", "prefix-len": 40, "delegated-len": 56}}]}}],
            "loggers": [{{"name": "kea-dhcp6", "output_options": [{{"output": "stdout"}}], "severity": "INFO"}}]
        }}}}"#,
        leases.display(),
        lan = Topology::LAN
    );
    fs::write(&configuration, text).unwrap();
    let mut command = agent.topology.router().command("kea-dhcp6");
    command.arg("-c").arg(configuration);
    command.env("KEA_LOCKFILE_DIR", agent.directory.path()).env("KEA_PIDFILE_DIR", agent.directory.path());
    let mut server = ok(Process::spawn(command));
    ok(server.wait_for_output("DHCP6_STARTED", PATIENCE));
    server
}

/// A client of an address and a prefix, with a name.
fn dhclient(agent: &Agent, options: &[&str]) -> Process {
    let (configuration, script) = (agent.path("dhclient.conf"), agent.path("script6"));
    fs::write(&configuration, "send fqdn.fqdn \"porch-camera.example.net.\";\n").unwrap();
    fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = agent.topology.client().command("dhclient");
    command.args(["-6", "-d", "-N", "-P", "-cf"]).arg(configuration).arg("-sf").arg(script);
    command
        .arg("-lf")
        .arg(agent.path("dhclient.leases"))
        .arg("-pf")
        .arg(agent.path("dhclient.pid"))
        .args(options);
    ok(Process::spawn(with(command, Topology::ETH)))
}

/// Addresses and prefixes with their labels.
fn named(agent: &Agent) -> Vec<(String, String)> {
    agent.connect().list().into_iter().map(|(prefix, label, _)| (prefix, label)).collect()
}

#[test]
fn addresses_and_delegated_prefixes_of_kea_are_followed() {
    let agent = Agent::new(None, OPTIONS);
    let leases = agent.path("leases6.csv");
    let options = ["--kea", leases.to_str().unwrap(), "--label-by", "client-id"];
    let mut follower = follow(&agent, &options);
    let server = kea_for_ipv6(&agent, &leases);
    let client = dhclient(&agent, &[]);
    wait_until("both leases have a name", || named(&agent).len() == 2);
    let both = named(&agent);
    let [(address, of_address), (prefix, of_prefix)] = &both[..] else { panic!("{both:?}") };
    assert!(address.starts_with("fd00:11:1::1") && address.ends_with("/128"), "{address}");
    assert!(prefix.starts_with("fd00:11:aa") && prefix.ends_with("/56"), "{prefix}");
    // The identifier of a client is that of both.
    assert!(of_address == of_prefix && of_address.starts_with("00:0"), "{both:?}");
    // Another follower knows them from the file.
    ok(follower.stop(Signal::SIGTERM, ENDING));
    let (removed, said) = agent.command(&["remove", "--source", "dhcp", address]);
    assert!(removed, "{said}");
    let mut follower = follow(&agent, &options);
    wait_until("it is named again", || named(&agent) == both);
    drop(client);
    ok(dhclient(&agent, &["-r"]).wait_timeout(ENDING));
    wait_until("both were given back", || named(&agent).is_empty());
    ok(follower.stop(Signal::SIGTERM, ENDING));
    drop(server);
    interrupt(agent.process);
}
