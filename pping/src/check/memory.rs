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
use crate::{
    config::{Config, Profile},
    kernel::inspect::maps::Size,
};

const MEBIBYTE: u64 = 1 << 20;

/// Bytes that the kernel takes to verify the programs at the start, about: on two CPUs, which verify two at a time.
const VERIFYING: u64 = 80 * MEBIBYTE;

/// The same with `--profile small`, one program at a time.
const VERIFYING_IN_TURN: u64 = 50 * MEBIBYTE;

/// What helps in any case.
const FEWER_FLOWS: &str = "lower --max-flows: flows beyond it are counted, not measured";

/// Compares the memory that the maps of a configuration need with the available memory. `small` returns what the maps would take
/// with `--profile small`, and for how many flows.
pub(super) fn memory(
    maps: Option<Size>,
    config: &Config,
    small: impl FnOnce() -> Option<(u64, u32)>,
) -> Check {
    let Some(Size { taken: needed, .. }) = maps else {
        return Check::unknown(Name::Memory, "the size of the maps is not known");
    };
    let host = Meminfo::current().ok();
    compare(needed, config, &Room::new(host.as_ref(), cgroup_limit(Path::new("/sys/fs/cgroup"))), small)
}

fn compare(needed: u64, config: &Config, room: &Room, small: impl FnOnce() -> Option<(u64, u32)>) -> Check {
    let is_small = config.live.profile == Profile::Small;
    let flows = config.max_flows;
    let what = if is_small {
        let Config { aggregation, live, .. } = config;
        let (groups, interfaces) = (aggregation.max_groups, live.max_interfaces);
        format!(
            "{flows} flows of each address family, {groups} groups and {interfaces} interfaces (--profile small)"
        )
    } else {
        format!("{flows} flows of each address family")
    };
    let found = format!("the maps take {} MiB for {what}", needed.div_ceil(MEBIBYTE));
    let Some(available) = room.available else {
        return Check::unknown(Name::Memory, format!("{found}; the available memory is not known"));
    };
    let found = format!("{found}; {} MiB are {}", available / MEBIBYTE, room.source);
    let verifying = if is_small { VERIFYING_IN_TURN } else { VERIFYING };
    let is_missing = needed + verifying > available;
    if !is_missing && needed <= available / 2 && room.total.is_none_or(|total| needed <= total / 4) {
        return Check::ok(Name::Memory, found);
    }
    let of_host = room.total.map(|total| format!(" of {}", total / MEBIBYTE)).unwrap_or_default();
    let found = format!(
        "{found}{of_host}; to verify the programs at the start, the kernel takes some {} MiB more",
        verifying / MEBIBYTE
    );
    let small = if is_small { None } else { small().filter(|&(bytes, _)| bytes < needed) };
    let remedy = match small {
        Some((bytes, flows)) => format!(
            "--profile small, with which the maps take {} MiB for {flows} flows, and a start some {} MiB more; or \
             {FEWER_FLOWS}",
            bytes.div_ceil(MEBIBYTE),
            VERIFYING_IN_TURN / MEBIBYTE
        ),
        None => FEWER_FLOWS.to_owned(),
    };
    if is_missing {
        Check::missing(Name::Memory, found, remedy)
    } else {
        Check::degraded(Name::Memory, found, remedy)
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

/// The memory that there is.
struct Room {
    /// The available bytes.
    available: Option<u64>,
    /// What limits them.
    source: &'static str,
    /// The bytes of the host, unless a cgroup limits what is available.
    total: Option<u64>,
}

impl Room {
    fn new(host: Option<&Meminfo>, limit: Option<u64>) -> Self {
        let available = host.and_then(|host| host.mem_available);
        match limit.filter(|limit| available.is_none_or(|available| *limit < available)) {
            Some(limit) => {
                Self { available: Some(limit), source: "the limit of its cgroup (memory.max)", total: None }
            }
            None => Self { available, source: "available", total: host.map(|host| host.mem_total) },
        }
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
    use crate::config::Loader;

    fn config(arguments: &str) -> Config {
        let typed = ["pping", "-i", "eth0"].into_iter().chain(arguments.split_whitespace());
        Loader::typed(typed).unwrap().load().unwrap().config
    }

    fn host(total: u64, available: u64) -> Room {
        let of = |mebibytes| Some(mebibytes * MEBIBYTE);
        Room { available: of(available), source: "available", total: of(total) }
    }

    #[test]
    fn too_little_memory_is_reported_with_what_takes_less() {
        let small = || Some((13 * MEBIBYTE, 8192));
        let maps = 140 * MEBIBYTE;
        let named = "--profile small, with which the maps take 13 MiB for 8192 flows";
        for (room, status) in [
            (host(4096, 3000), Status::Ok),
            // Half of what is available.
            (host(4096, 270), Status::Degraded),
            // A quarter of all.
            (host(512, 450), Status::Degraded),
            (host(512, 219), Status::Missing),
            (host(128, 60), Status::Missing),
        ] {
            let check = compare(maps, &config(""), &room, small);
            let said = format!("{check:?}");
            assert_eq!(check.status, status, "{said}");
            assert_eq!(said.contains(named), status != Status::Ok, "{said}");
        }
        let said = format!("{:?}", compare(maps, &config(""), &host(128, 60), small));
        assert!(
            said.contains("the maps take 140 MiB for 131072 flows")
                && said.contains("60 MiB are available of 128")
        );
    }

    #[test]
    fn the_small_profile_is_not_advised_where_it_does_not_help() {
        let (maps, room) = (13 * MEBIBYTE, host(64, 60));
        let check = compare(maps, &config("--profile small"), &room, || panic!("it is in use"));
        let said = format!("{check:?}");
        assert!(
            said.contains(
                "8192 flows of each address family, 1024 groups and 32 interfaces (--profile small)"
            )
        );
        assert!(check.status == Status::Missing && !said.contains("with which"), "{said}");
        // With sizes that are given, it may not save anything. Or the kernel does not make the maps.
        for small in [Some((maps, 131_072)), None] {
            let said = format!("{:?}", compare(maps, &config(""), &room, || small));
            assert!(!said.contains("small") && said.contains("lower --max-flows"), "{said}");
        }
    }

    #[test]
    fn what_is_unknown_is_said() {
        let known = Room { available: None, source: "available", total: None };
        assert_eq!(compare(1, &config(""), &known, || None).status, Status::Unknown);
        assert_eq!(memory(None, &config(""), || None).status, Status::Unknown);
    }

    #[test]
    fn a_cgroup_limits_what_is_available() {
        let groups = tempfile::tempdir().unwrap();
        assert_eq!(cgroup_limit(groups.path()), None);
        fs::write(groups.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(cgroup_limit(groups.path()), None);
        fs::write(groups.path().join("memory.max"), format!("{}\n", 64 * MEBIBYTE)).unwrap();
        let limit = cgroup_limit(groups.path());
        assert_eq!(limit, Some(64 * MEBIBYTE));
        let host = Meminfo::current().unwrap();
        let check = compare(80 * MEBIBYTE, &config(""), &Room::new(Some(&host), limit), || None);
        assert_eq!(check.status, Status::Missing);
        assert!(format!("{check:?}").contains("64 MiB are the limit of its cgroup"), "{check:?}");
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
