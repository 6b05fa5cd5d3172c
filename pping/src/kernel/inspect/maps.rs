//! The memory of this process' maps.

use std::{cmp::Reverse, fs};

use aya::maps::MapInfo;
use pping_common::table::bucket_count;

use crate::kernel::load_options::LoadOptions;

/// `BPF_F_NO_PREALLOC` of linux/bpf.h.
const NO_PREALLOC: u32 = 1;

const MEBIBYTE: u64 = 1 << 20;

/// The maps whose sizes follow from the number of interfaces.
const OF_INTERFACES: [&str; 5] = ["COUNTERS", "DUE", "INTERFACES", "INTERFACE_NAMES", "RESIDENCES"];

/// A map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Map {
    pub(crate) id: u32,
    /// Entries it has room for.
    max_entries: u32,
    /// Bytes of the kernel's memory.
    pub(crate) bytes: u64,
    /// Whether it takes memory as it fills.
    pub(crate) grows: bool,
}

/// The memory of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes of memory at the start. Maps that grow as they fill are left out, because before Linux 6.4 the kernel
    /// reports them as if they were full.
    pub(crate) taken: u64,
    /// Bytes that count against `RLIMIT_MEMLOCK` before Linux 5.11: those of all maps, as if all were full.
    pub(crate) charged: u64,
}

/// Computes the memory of maps with `large` settings from that of the maps that this process loaded with `small` ones.
/// The small sizes must differ from each other, and from those of all other maps but [`OF_INTERFACES`]. `None` if the kernel does not report
/// maps, for example without /proc.
pub(crate) fn scaled(small: &LoadOptions, large: &LoadOptions) -> Option<Size> {
    let sizes = [
        (small.max_flows, large.max_flows),
        (small.pending_entries(), large.pending_entries()),
        (bucket_count(small.max_flows), bucket_count(large.max_flows)),
        (small.max_groups, large.max_groups),
        (small.series_wanted(), large.series_wanted()),
        (small.blocks_for(small.series_wanted()), large.blocks_for(large.series_wanted())),
    ];
    let scaled = |map: &Map| match sizes.iter().find(|(few, many)| few != many && *few == map.max_entries) {
        // It depends on how many interfaces there may be whether another map has one of these sizes.
        Some((few, many)) if !OF_INTERFACES.contains(&name(map.id).as_str()) => {
            map.bytes * u64::from(*many) / u64::from(*few)
        }
        _ => map.bytes,
    };
    let maps = own();
    (!maps.is_empty()).then(|| Size {
        taken: maps.iter().filter(|map| !map.grows).map(scaled).sum(),
        charged: maps.iter().map(scaled).sum(),
    })
}

/// The memory of the maps that this process has open. `None` if the kernel does not report maps.
pub(crate) fn size() -> Option<Size> {
    let maps = own();
    (!maps.is_empty()).then(|| Size {
        taken: maps.iter().filter(|map| !map.grows).map(|map| map.bytes).sum(),
        charged: maps.iter().map(|map| map.bytes).sum(),
    })
}

/// Describes how much memory the maps of this process take, naming the large ones. Maps that grow as they fill are left
/// out, because before Linux 6.4 the kernel reports them as if they were full.
pub(crate) fn describe() -> String {
    let in_mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / MEBIBYTE as f64);
    let mut maps: Vec<Map> = own().into_iter().filter(|map| !map.grows).collect();
    maps.sort_unstable_by_key(|map| Reverse(map.bytes));
    let total: u64 = maps.iter().map(|map| map.bytes).sum();
    let largest: Vec<String> = maps
        .iter()
        .take_while(|map| map.bytes >= MEBIBYTE)
        .map(|map| format!("{} {}", name(map.id), in_mebibytes(map.bytes)))
        .collect();
    format!("maps take {} of kernel memory: {}", in_mebibytes(total), largest.join(", "))
}

/// Returns the name of a map of this process. Maps of others are not opened for this: the kernel would keep a program
/// array that another process has just closed (see docs/operation.md).
fn name(id: u32) -> String {
    let info = MapInfo::from_id(id).ok();
    info.and_then(|info| info.name_as_str().map(ToOwned::to_owned)).unwrap_or("?".to_owned())
}

/// The maps that this process has open.
pub(crate) fn own() -> Vec<Map> {
    let Ok(entries) = fs::read_dir("/proc/self/fdinfo") else { return Vec::new() };
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let mut maps: Vec<Map> = texts.filter_map(|text| map(&text)).collect();
    // A map may have several descriptors.
    maps.sort_unstable();
    maps.dedup();
    maps
}

/// Reads what `bpf_map_show_fdinfo` of kernel/bpf/syscall.c writes; `None` for other files.
fn map(text: &str) -> Option<Map> {
    let field = |name| Some(text.lines().find_map(|line| line.strip_prefix(name))?.trim());
    let number = |name| -> Option<u64> { field(name)?.parse().ok() };
    let flags = u32::from_str_radix(field("map_flags:")?.trim_start_matches("0x"), 16).ok()?;
    Some(Map {
        id: number("map_id:")? as u32,
        max_entries: number("max_entries:")? as u32,
        bytes: number("memlock:")?,
        grows: flags & NO_PREALLOC != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_told_from_other_files() {
        let text = "pos:\t0\nflags:\t02000002\nmap_type:\t1\nmap_flags:\t0x1\nmax_entries:\t64\nmemlock:\t8192\nmap_id:\t9\n";
        assert_eq!(map(text), Some(Map { id: 9, max_entries: 64, bytes: 8192, grows: true }));
        assert_eq!(map("pos:\t0\nflags:\t0100002\nmnt_id:\t12\n"), None);
    }
}
