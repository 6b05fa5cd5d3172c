//! Checks that the service does what its unit says, under a real systemd.

use anyhow::{Result, ensure};

use super::{machine::Machine, root::Root};

/// Asks pping itself whether it is ready.
pub(super) const READY: &str =
    r"exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3; grep '^HTTP/1.. 200' <&3";

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
