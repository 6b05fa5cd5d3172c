//! Checks of the kernel as a whole.

use std::fs;

use super::{name::Name, report::Check};

/// The oldest kernel that runs the programs.
const OLDEST: Version = Version(5, 10);

/// The first kernel that does not charge maps to the user's limit of locked memory (`RLIMIT_MEMLOCK`).
const UNLIMITED: Version = Version(5, 11);

/// The first two numbers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// Reads a release, as in `6.1.0-32-amd64`.
    fn of(release: &str) -> Option<Self> {
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        Some(Self(numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

/// Checks that the kernel is recent enough.
pub(super) fn release() -> Check {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let found = format!("Linux {release}, {}", system.machine().to_string_lossy());
    match Version::of(&release) {
        None => Check::unknown(Name::Kernel, format!("{found}: this release has no version number")),
        Some(version) if version < OLDEST => Check::missing(
            Name::Kernel,
            found,
            format!("boot Linux {}.{} or newer: this kernel cannot load the programs", OLDEST.0, OLDEST.1),
        ),
        Some(_) => Check::ok(Name::Kernel, found),
    }
}

/// Whether the kernel charges maps to the user's limit of locked memory.
pub(super) fn has_memlock() -> bool {
    Version::of(&rustix::system::uname().release().to_string_lossy()).is_some_and(|it| it < UNLIMITED)
}

/// Checks whether the kernel measures the time of each run of a program.
pub(super) fn statistics() -> Check {
    match fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled") {
        Ok(text) if text.trim() != "0" => Check::degraded(
            Name::Statistics,
            "on: the kernel measures the time of each run of each program",
            "sysctl kernel.bpf_stats_enabled=0 saves two clock readings per packet, and ends the pping_bpf_* metrics",
        ),
        Ok(_) => Check::ok(Name::Statistics, "off: runs of programs are not measured"),
        Err(error) => Check::unknown(Name::Statistics, format!("kernel.bpf_stats_enabled: {error}")),
    }
}

/// Checks the cost of a clock reading.
pub(super) fn clock() -> Check {
    let sources = "/sys/devices/system/clocksource/clocksource0";
    let source = match fs::read_to_string(format!("{sources}/current_clocksource")) {
        Ok(source) => source.trim().to_owned(),
        Err(error) => return Check::unknown(Name::Clock, format!("{sources}: {error}")),
    };
    let cost = match source.as_str() {
        "hpet" | "acpi_pm" | "hyperv_clocksource_msr" => "each reading costs a microsecond or more",
        "jiffies" | "refined-jiffies" => {
            "it advances only a few hundred times a second, so RTTs are that coarse"
        }
        _ => return Check::ok(Name::Clock, source),
    };
    let available = fs::read_to_string(format!("{sources}/available_clocksource")).unwrap_or_default();
    let better = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let better = available.split_whitespace().find(|name| better.contains(name));
    let remedy = better.map_or_else(
        || "the kernel has no better clock here, usually because it found the TSC unstable: see dmesg".to_owned(),
        |name| format!("echo {name} >{sources}/current_clocksource, unless dmesg says that the kernel does not trust it"),
    );
    Check::degraded(Name::Clock, format!("{source}: {cost}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_all_kinds_are_compared() {
        for (release, version) in [
            ("6.18.44-fc-v669", Some(Version(6, 18))),
            ("5.10.0-32-amd64", Some(Version(5, 10))),
            ("5.9", Some(Version(5, 9))),
            ("4.19.0+", Some(Version(4, 19))),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(Version::of(release), version, "{release}");
        }
        assert!(Version(5, 9) < OLDEST && Version(5, 10) >= OLDEST && Version(6, 1) > UNLIMITED);
    }
}
