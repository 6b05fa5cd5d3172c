//! Checks that there is memory for the maps.

use std::{
    fs,
    path::{Path, PathBuf},
};

use caps::Capability;
use pping_common::limits::RING_BYTES;
use procfs::{Current as _, Meminfo};
use rustix::process::{Resource, getrlimit};

use super::{kernel, name::Name, privileges, report::Check};
use crate::kernel::inspect::maps::Size;

const MEBIBYTE: u64 = 1 << 20;

/// Compares the memory that the maps need for `flows` flows of each address family with the available memory.
pub(super) fn memory(maps: Option<Size>, flows: u32) -> Check {
    let Some(Size { taken: needed, .. }) = maps else {
        return Check::unknown(Name::Memory, "the size of the maps is not known");
    };
    let (available, source) = available();
    let Some(available) = available else {
        return Check::unknown(
            Name::Memory,
            format!("the maps take {} MiB; the available memory is not known", needed / MEBIBYTE),
        );
    };
    let found = format!(
        "the maps take {} MiB for {flows} flows of each address family; {} MiB are {source}",
        needed.div_ceil(MEBIBYTE),
        available / MEBIBYTE
    );
    let remedy = "lower --max-flows: flows beyond it are counted, not measured";
    if needed > available {
        Check::missing(Name::Memory, found, remedy)
    } else if needed > available / 2 {
        Check::degraded(Name::Memory, found, remedy)
    } else {
        Check::ok(Name::Memory, found)
    }
}

/// Checks the user's limit of locked memory, which limits maps before Linux 5.11.
pub(super) fn memlock(maps: Option<Size>) -> Option<Check> {
    if !kernel::has_memlock() {
        return None;
    }
    // pping raises the limit as far as it may.
    let limit =
        getrlimit(Resource::Memlock).maximum.filter(|_| !privileges::has(Capability::CAP_SYS_RESOURCE));
    Some(limit.map_or_else(
        || Check::ok(Name::Memlock, "no limit, or one that pping can raise"),
        |limit| limited(limit, maps.map(|maps| maps.charged)),
    ))
}

fn limited(limit: u64, needed: Option<u64>) -> Check {
    let found = format!("{} KiB, which limits maps before Linux 5.11", limit / 1024);
    let is_enough = needed.map(|needed| needed <= limit);
    match is_enough {
        Some(true) => Check::ok(Name::Memlock, found),
        // The event ring alone takes this much.
        None if limit >= u64::from(RING_BYTES) => {
            Check::unknown(Name::Memlock, format!("{found}; the size of the maps is not known"))
        }
        _ => {
            let remedy =
                "ulimit -l unlimited as root, or LimitMEMLOCK=infinity in the unit: pping does not start";
            Check::missing(Name::Memlock, found, remedy)
        }
    }
}

/// The available bytes, and what limits them.
fn available() -> (Option<u64>, &'static str) {
    let host = Meminfo::current().ok().and_then(|info| info.mem_available);
    match (host, cgroup_limit(Path::new("/sys/fs/cgroup"))) {
        (Some(host), Some(limit)) if limit < host => (Some(limit), "the limit of its cgroup (memory.max)"),
        (None, Some(limit)) => (Some(limit), "the limit of its cgroup (memory.max)"),
        (host, _) => (host, "available"),
    }
}

/// The lowest `memory.max` of this process' cgroup and those above it, which limit maps since Linux 5.11.
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
    fn too_little_memory_is_reported() {
        let (available, _) = available();
        let available = available.unwrap();
        assert!(available > 64 * MEBIBYTE);
        for (needed, status) in [
            (Some(MEBIBYTE), Status::Ok),
            // The available memory changes all the time.
            (Some(available / 10 * 8), Status::Degraded),
            (Some(available * 2), Status::Missing),
            (None, Status::Unknown),
        ] {
            let maps = needed.map(|taken| Size { taken, charged: 0 });
            assert_eq!(memory(maps, 7).status, status, "{needed:?}");
        }
    }

    #[test]
    fn a_limit_of_locked_memory_is_enough_or_not() {
        for (limit, needed, status) in [
            (64 << 10, None, Status::Missing),
            (64 << 20, None, Status::Unknown),
            (64 << 20, Some(65 << 20), Status::Missing),
            (64 << 20, Some(64 << 20), Status::Ok),
        ] {
            assert_eq!(limited(limit, needed).status, status, "{limit} {needed:?}");
        }
    }
}
