//! Checks the Debian package: with lintian, and through its life on a machine.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use pping_chores::{arch::Arch, command, environment};

use super::{
    emulation::Emulation,
    root::{Root, only_in},
    service::Commands,
};

/// What an administrator adds to the configuration. Only a purge may remove it.
pub(super) const EDIT: &str = "# edited\n";

/// A capture in `pping/tests/golden`, beside which its samples are.
const CAPTURE: &str = "tcp-options";

/// A line of the format `jsonl`.
#[derive(serde::Deserialize)]
struct Line {
    /// The round-trip time in nanoseconds, if the line is a sample.
    rtt: Option<u64>,
}

/// The files that an installation adds, beside the program.
const FILES: [&str; 17] = [
    "/etc/logrotate.d/pping",
    "/etc/pping/pping.toml",
    "/usr/lib/systemd/system/pping-groups-dhcp.service",
    "/usr/lib/systemd/system/pping-groups-radius.service",
    "/usr/lib/systemd/system/pping-groups-shaped-devices.service",
    "/usr/lib/systemd/system/pping.service",
    "/usr/lib/systemd/system/pping@.service",
    "/usr/lib/systemd/system/run-pping.mount",
    "/usr/lib/sysusers.d/pping.conf",
    "/usr/share/bash-completion/completions/pping",
    "/usr/share/doc/pping/README.md",
    "/usr/share/doc/pping/copyright",
    "/usr/share/fish/vendor_completions.d/pping.fish",
    "/usr/share/pping/clickhouse/schema.sql",
    "/usr/share/pping/grafana/pping.json",
    "/usr/share/pping/grafana/pping.native.json",
    "/usr/share/zsh/vendor-completions/_pping",
];

/// How apt manages the packages in [`root`].
pub(super) const APT: Commands = Commands {
    install: "apt-get install --yes /srv/pping.deb",
    upgrade: "apt-get install --yes /srv/newer.deb",
    remove: "apt-get purge --yes pping",
};

/// Returns a system with a package, and a newer one for the upgrade, to install.
pub(super) fn root(arch: Arch, package: &Path, newer: &Path) -> Result<Root> {
    let root = Root::of(arch)?;
    root.copy_in(package, "/srv/pping.deb")?;
    root.copy_in(newer, "/srv/newer.deb")?;
    Ok(root)
}

/// Checks the package with lintian. An error or a warning fails.
pub(super) fn lintian(package: &Path) -> Result<()> {
    command::run(
        Command::new("lintian")
            .args(["--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0"])
            .arg(package),
    )
}

/// Installs, configures, measures a capture, upgrades, removes, installs again and purges. Another architecture's
/// programs run in QEMU.
pub(super) fn lifecycle(arch: Arch, package: &Path, newer: &Path) -> Result<()> {
    let _emulation = Emulation::of(arch)?;
    let root = root(arch, package, newer)?;
    let before = root.listing()?;
    // apt checks the dependencies, which are installed already.
    root.run(APT.install)?;
    let version = installed(&root)?;
    for file in FILES {
        ensure!(root.path(file).is_file(), "no {file} after the installation");
    }
    measures(&root)?;
    root.run("bash -n /usr/share/bash-completion/completions/pping")?;
    root.run("systemd-analyze verify /usr/lib/systemd/system/pping.service")?;
    root.run("logrotate --debug /etc/logrotate.d/pping")?;
    ensure!(
        !root.path("/etc/systemd/system/multi-user.target.wants/pping.service").exists(),
        "the installation enabled the service"
    );
    root.run("systemctl enable pping.service pping@wan.service")?;
    let configuration = root.path("/etc/pping/pping.toml");
    let edited = fs::read_to_string(&configuration)? + EDIT;
    fs::write(&configuration, &edited)?;
    root.run("mkdir /var/log/pping && touch /var/log/pping/records.jsonl && chown -R pping: /var/log/pping")?;

    root.run(APT.upgrade)?;
    ensure!(installed(&root)? != version, "the package was not upgraded");
    ensure!(fs::read_to_string(&configuration)? == edited, "an upgrade changed the configuration");
    root.run("systemctl is-enabled pping.service pping@wan.service")?;

    root.run("apt-get remove --yes pping")?;
    ensure!(!root.path("/usr/bin/pping").exists(), "the program is still there after removal");
    ensure!(fs::read_to_string(&configuration)? == edited, "removing changed the configuration");
    ensure!(root.path("/var/log/pping/records.jsonl").exists(), "removing deleted the records");
    root.run(APT.install)?;
    ensure!(installed(&root)? == version, "the version is not the one that was installed");
    ensure!(fs::read_to_string(&configuration)? == edited, "installing again changed the configuration");

    root.run(APT.remove)?;
    let after = root.listing()?;
    let left = only_in(&after, &before);
    ensure!(left.is_empty(), "a purge leaves or changes:\n{}", left.join("\n"));
    let missing = only_in(&before, &after);
    ensure!(missing.is_empty(), "a purge removes or changes:\n{}", missing.join("\n"));
    Ok(())
}

/// Checks that the installed pping finds the samples of a capture.
pub(super) fn measures(root: &Root) -> Result<()> {
    let golden = environment::repository().join("pping/tests/golden");
    root.copy_in(&golden.join(format!("{CAPTURE}.pcap")), "/tmp/capture.pcap")?;
    let found = root.run("pping --format jsonl --rate-limit 0 -r /tmp/capture.pcap")?;
    let expected = fs::read_to_string(golden.join(format!("{CAPTURE}.samples.jsonl")))?;
    let (found, expected) = (rtts(&found)?, rtts(&expected)?);
    ensure!(
        found == expected,
        "of {CAPTURE}.pcap pping finds the RTTs {found:?}, and {expected:?} are in it"
    );
    Ok(())
}

/// Returns the round-trip times of samples, in order. Other lines have none.
fn rtts(lines: &str) -> Result<Vec<u64>> {
    let rtt = |line| Ok(serde_json::from_str::<Line>(line)?.rtt);
    lines.lines().filter_map(|line| rtt(line).transpose()).collect()
}

/// Returns the installed version. Checks that pping runs, and that dpkg finds no changed file except the edited
/// configuration.
fn installed(root: &Root) -> Result<String> {
    root.run("pping --version")?;
    root.run("pping config check")?;
    root.run("man --where pping && man --where 5 pping.toml")?;
    root.run("getent passwd pping")?;
    let changed = root.run("dpkg --verify pping")?;
    let strange: Vec<_> = changed.lines().filter(|line| !line.ends_with(" /etc/pping/pping.toml")).collect();
    ensure!(strange.is_empty(), "dpkg finds that files differ:\n{}", strange.join("\n"));
    root.run("dpkg-query --show --showformat='${Version}' pping")
}
