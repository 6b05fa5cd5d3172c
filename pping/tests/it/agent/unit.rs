//! The systemd units in `deploy/systemd`, and pping started by their command lines, as far as that works without
//! systemd.

use std::{fs, process::Command};

use pping_lab::Namespace;
use tempfile::TempDir;

use super::{copy::Copy, monitor::repository, monitoring::stack::replace};

/// The units that start pping.
pub(super) const SERVICES: [&str; 2] = ["pping.service", "pping@.service"];

/// The units that start `pping groups`.
pub(super) const SOURCES: [&str; 3] =
    ["pping-groups-dhcp.service", "pping-groups-radius.service", "pping-groups-shaped-devices.service"];

/// The text of a unit.
pub(super) fn read(name: &str) -> String {
    fs::read_to_string(repository("deploy/systemd").join(name)).unwrap()
}

/// Returns all values of a key in a unit.
pub(super) fn settings<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

/// The unit's command line, run as nobody with the unit's capabilities and a private BPF file system.
pub(super) struct Service {
    pub(super) command: Command,
    /// Keeps the program and its pin directory.
    _kept: (Copy, TempDir),
}

impl Service {
    /// Creates the service, run by `host` under a program such as strace. `options` replace the configuration file.
    pub(super) fn new(host: &Namespace, behind: &str, options: &str) -> Self {
        let unit = read("pping.service");
        let [command] = settings(&unit, "ExecStart")[..] else { panic!("one ExecStart=") };
        let (copy, pins) = (Copy::new(), tempfile::tempdir().unwrap());
        let command = replace(command, "/usr/bin/pping", copy.program.to_str().unwrap());
        let command = replace(&command, "--config /etc/pping/pping.toml", options);
        let command = replace(&command, "/run/pping/%N", &format!("{}/pping", pins.path().display()));
        let [ambient] = settings(&unit, "AmbientCapabilities")[..] else {
            panic!("one AmbientCapabilities=")
        };
        assert_eq!(settings(&unit, "CapabilityBoundingSet"), [ambient]);
        let capabilities: String =
            ambient.split(' ').map(|name| name.to_lowercase().replace("cap_", ",+")).collect();
        let sets: Vec<_> = ["bounding-set", "inh-caps", "ambient-caps"]
            .map(|set| format!("--{set}=-all{capabilities}"))
            .into();
        let pins_path = pins.path().display();
        let script = format!(
            "mount -t bpf bpf {pins_path} && chown 65534:65534 {pins_path} && exec {behind} setpriv --reuid=65534 \
             --regid=65534 --clear-groups --no-new-privs {} {command}",
            sets.join(" ")
        );
        let mut command = host.command("unshare");
        command.args(["--mount", "sh", "-c", &script]);
        // Temporary directories are closed to other users, and the service runs as nobody.
        fs::set_permissions(pins.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Self { command, _kept: (copy, pins) }
    }
}
