//! Checks that the service does what its unit says, under a real systemd.

use anyhow::{Result, ensure};

use super::{machine::Machine, root::Root};

/// Asks pping itself whether it is ready.
pub(super) const READY: &str =
    r"exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3; grep '^HTTP/1.. 200' <&3";

/// The start of a session of `bob` at 10.1.2.3 with the secret `testing123`, as radclient 3.2.1 sent it, for printf.
const RADIUS_START: &str = concat!(
    r"\x04\xcc\x00\x85\x4d\xa7\xe8\x28\xbe\x4c\xb6\x71\xa2\xd4\x6f\x31\x53\x61\x29\x3c\x28\x06\x00\x00",
    r"\x00\x01\x01\x05\x62\x6f\x62\x2c\x03\x31\x08\x06\x0a\x01\x02\x03\x61\x14\x00\x40\x20\x01\x0d\xb8",
    r"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7b\x14\x00\x38\x20\x01\x0d\xb8\x01\x00\x00\x00",
    r"\x00\x00\x00\x00\x00\x00\x00\x00\xa8\x12\x20\x01\x0d\xb8\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00",
    r"\x00\x07\x20\x06\x62\x6e\x67\x31\x19\x04\x01\xff\x1f\x13\x30\x32\x3a\x30\x30\x3a\x30\x30\x3a\x30",
    r"\x30\x3a\x30\x30\x3a\x30\x31\x29\x06\x00\x00\x00\x03",
);

/// The sources of groups, each with an address that it has to give a name, and the name.
const SOURCES: [(&str, &str); 3] = [
    ("dhcp", "192.0.2.1/32,kitchen-radio"),
    ("radius", "10.1.2.3/32,bob"),
    ("shaped-devices", "192.0.2.2/32,circuit-7"),
];

/// The command lines of a package manager.
pub(super) struct Commands {
    pub(super) install: &'static str,
    pub(super) upgrade: &'static str,
    /// Removes as much as the package manager can.
    pub(super) remove: &'static str,
}

/// Boots the system and installs the package. Starts the service, reloads it, lets it hang, upgrades it, breaks its
/// configuration, and removes it.
pub(super) fn try_out(root: &Root, commands: &Commands) -> Result<()> {
    let machine = Machine::boot(root)?;
    let property =
        |name: &str| machine.run(&format!("systemctl show --property={name} --value pping.service"));

    machine.run(commands.install)?;
    ensure!(property("ActiveState")? == "inactive\n", "the installation started the service");
    // `systemctl start` returns once pping is ready, so pping answers at once.
    machine.run("systemctl start pping.service")?;
    machine.run(READY)?;
    ensure!(property("StatusText")? == "watching eth0\n", "systemd does not show what pping watches");
    let status = machine.run("cat /proc/$(systemctl show --property=MainPID --value pping)/status")?;
    for line in ["CapEff:\t0000008000001000", "CapBnd:\t000000c000001000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        ensure!(status.contains(line), "no `{line}` in\n{status}");
    }
    machine.run("runuser -u pping -- test -w /run/pping && ! runuser -u nobody -- test -r /run/pping")?;
    machine.run("systemctl reload pping.service && systemctl is-active pping.service")?;
    // Pinned programs go on measuring while pping is stopped.
    machine.run("systemctl stop pping.service && test -n \"$(ls -A /run/pping/pping)\"")?;
    machine.run("systemctl start pping.service")?;
    machine.run(READY)?;

    try_sources(&machine)?;

    // A second instance, with records that logrotate rotates.
    machine.run(
        "sed -e '/^listen/d; s/^format = .*/format = \"json\"/; $ a write = \"/var/log/pping/wan.json\"' \
         /etc/pping/pping.toml >/etc/pping/wan.toml && pping config check /etc/pping/wan.toml",
    )?;
    machine.run("systemctl start pping@wan.service && test -f /var/log/pping/wan.json")?;
    machine.run("logrotate --force /etc/logrotate.d/pping")?;
    machine.wait_for("a new file", "test -f /var/log/pping/wan.json && test -f /var/log/pping/wan.json.1")?;

    // After SIGSTOP pping sends no keep-alive, so systemd restarts it.
    machine.run("mkdir -p /run/systemd/system/pping.service.d")?;
    machine.run("printf '[Service]\\nWatchdogSec=4s\\nRestartSec=1s\\n' >/run/systemd/system/pping.service.d/test.conf")?;
    machine.run("systemctl daemon-reload && systemctl restart pping.service")?;
    machine.run("sleep 6 && test $(systemctl show --property=NRestarts --value pping) = 0")?;
    machine.run("kill -STOP $(systemctl show --property=MainPID --value pping)")?;
    machine.wait_for("a restart", "test $(systemctl show --property=NRestarts --value pping) = 1")?;
    machine.wait_for("it is ready again", READY)?;

    let before = property("MainPID")?;
    machine.run(commands.upgrade)?;
    machine.run(READY)?;
    ensure!(property("MainPID")? != before, "the old version still runs after the upgrade");

    // An invalid configuration is an error in the journal, and systemd tries again.
    machine.run("sed -i 's/^rate-limit/#&/; $ a rate-limit = \"fast\"' /etc/pping/pping.toml")?;
    machine.run("! systemctl restart pping.service")?;
    machine.wait_for(
        "an error in the journal",
        "journalctl --unit=pping --priority=err | grep 'rate-limit = \"fast\"'",
    )?;
    machine.run("sed -i '$ d' /etc/pping/pping.toml")?;
    machine.wait_for("systemd started it again", "systemctl is-active pping.service")?;

    machine.run(commands.remove)?;
    let left = machine.run(
        "systemctl list-units --plain --no-legend 'pping*' run-pping.mount; ls -d /run/pping 2>&1 || true",
    )?;
    ensure!(left == "ls: cannot access '/run/pping': No such file or directory\n", "removing leaves {left}");
    Ok(())
}

/// Gives pping a groups socket, and starts the sources of groups by their units: each has to give an address its name.
fn try_sources(machine: &Machine) -> Result<()> {
    machine.run("cp -p /etc/pping/pping.toml /srv/before.toml")?;
    machine.run("echo 'groups-socket = \"/run/pping-groups/pping/groups.sock\"' >>/etc/pping/pping.toml")?;
    machine.run("systemctl restart pping.service")?;
    machine.run("echo testing123 >/etc/pping/radius.secret && chmod 600 /etc/pping/radius.secret")?;
    machine.run("mkdir -p /var/lib/misc /opt/libreqos/src")?;
    machine.run("echo '0 02:00:5e:10:00:01 192.0.2.1 kitchen-radio *' >/var/lib/misc/dnsmasq.leases")?;
    machine.run(
        "printf 'Circuit ID,Circuit Name,Parent Node,IPv4\\n7,circuit-7,ap,192.0.2.2\\n' \
         >/opt/libreqos/src/ShapedDevices.csv",
    )?;
    for (source, _) in SOURCES {
        machine.run(&format!("systemctl start pping-groups-{source}.service"))?;
        let status = machine.run(&format!(
            "cat /proc/$(systemctl show --property=MainPID --value pping-groups-{source})/status"
        ))?;
        for line in
            ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]
        {
            ensure!(status.contains(line), "no `{line}` in\n{status}");
        }
    }
    // From a file, because bash sends a datagram for each line.
    machine
        .run(&format!("printf '{RADIUS_START}' >/srv/start && cat /srv/start >/dev/udp/127.0.0.1/1813"))?;
    let give_names = || {
        SOURCES.iter().try_for_each(|(source, listed)| {
            let line = format!("pping groups list | grep -F '{listed},{source},yes'");
            machine.wait_for(&format!("a name by {source}"), &line)
        })
    };
    give_names()?;
    // A pping that has forgotten everything is told again.
    machine.run(
        "systemctl stop pping.service && rm -f /var/lib/pping/*groups* && systemctl start pping.service",
    )?;
    give_names()?;
    machine.run("systemctl stop 'pping-groups-*.service'")?;
    let failed = machine.run("systemctl list-units --failed --plain --no-legend 'pping*'")?;
    ensure!(failed.is_empty(), "these have failed: {failed}");
    machine.run("cp -p /srv/before.toml /etc/pping/pping.toml && systemctl restart pping.service")?;
    machine.run(READY)?;
    Ok(())
}
