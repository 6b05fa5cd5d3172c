//! Whether there is memory for the maps.

use std::{
    fs,
    path::{Path, PathBuf},
};

use caps::Capability;
use procfs::{Current as _, Meminfo};
use rustix::process::{Resource, getrlimit};

use super::{kernel, privileges, report::Check};

const MEBIBYTE: u64 = 1 << 20;

/// What the maps need, against what there is. `flows` are those of each address family.
pub(super) fn memory(needed: Option<u64>, flows: u32) -> Check {
    let Some(needed) = needed else {
        return Check::unknown("memory", "the maps could not be made to see what they take");
    };
    let (available, place) = available();
    let Some(available) = available else {
        return Check::unknown(
            "memory",
            format!("the maps take {} MiB; how much there is nobody says", needed / MEBIBYTE),
        );
    };
    let found = format!(
        "the maps take {} MiB for {flows} flows of each address family; {} MiB are {place}",
        needed.div_ceil(MEBIBYTE),
        available / MEBIBYTE
    );
    let remedy = "give a smaller --max-flows: flows beyond it are counted, not measured";
    if needed > available {
        Check::missing("memory", found, remedy)
    } else if needed > available / 2 {
        Check::degraded("memory", found, remedy)
    } else {
        Check::ok("memory", found)
    }
}

/// The limit of each user's locked memory, which maps count against before Linux 5.11.
pub(super) fn memlock(needed: Option<u64>) -> Option<Check> {
    if !kernel::has_memlock() {
        return None;
    }
    // pping raises the limit as far as it may.
    let limit =
        getrlimit(Resource::Memlock).maximum.filter(|_| !privileges::has(Capability::CAP_SYS_RESOURCE));
    Some(match (limit, needed) {
        (None, _) => Check::ok("memlock", "no limit that pping could not raise"),
        (Some(limit), Some(needed)) if limit >= needed => {
            Check::ok("memlock", format!("{} MiB", limit / MEBIBYTE))
        }
        (Some(limit), _) => Check::missing(
            "memlock",
            format!("{} KiB, which maps count against before Linux 5.11", limit / 1024),
            "ulimit -l unlimited as root, or LimitMEMLOCK=infinity in the unit",
        ),
    })
}

/// Octets that can be had, and what says so.
fn available() -> (Option<u64>, &'static str) {
    let host = Meminfo::current().ok().and_then(|info| info.mem_available);
    match (host, cgroup_limit(Path::new("/sys/fs/cgroup"))) {
        (Some(host), Some(limit)) if limit < host => (Some(limit), "what its cgroup may have (memory.max)"),
        (None, Some(limit)) => (Some(limit), "what its cgroup may have (memory.max)"),
        (host, _) => (host, "available"),
    }
}

/// The lowest `memory.max` from this process' cgroup up. Maps are charged to it from Linux 5.11 on.
fn cgroup_limit(root: &Path) -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own: PathBuf = root.join(own);
    let groups = own.ancestors().take_while(|group| group.starts_with(root));
    groups.filter_map(|group| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::{super::report::Status, *};

    #[test]
    fn what_does_not_fit_is_said_to() {
        let (available, _) = available();
        let available = available.unwrap();
        assert!(available > 64 * MEBIBYTE);
        for (needed, status) in [
            (Some(MEBIBYTE), Status::Ok),
            // It changes all the time.
            (Some(available / 10 * 8), Status::Degraded),
            (Some(available * 2), Status::Missing),
            (None, Status::Unknown),
        ] {
            assert_eq!(memory(needed, 7).status, status, "{needed:?}");
        }
    }
}
