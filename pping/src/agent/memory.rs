//! What the kernel's maps take.

use std::{cmp::Reverse, collections::HashMap};

use crate::kernel::inspect::maps::{self, Map};

const MEBIBYTE: u64 = 1 << 20;

/// Logs how much memory the maps of this process take, as the kernel tells. Those of prefixes, which take more as they fill,
/// are left out: before Linux 6.4 the kernel tells of them as if they were full.
pub(super) fn log() {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let names: HashMap<u32, String> = aya::maps::loaded_maps()
        .filter_map(Result::ok)
        .map(|map| (map.id(), map.name_as_str().unwrap_or("?").to_owned()))
        .collect();
    let mut maps: Vec<Map> = maps::own().into_iter().filter(|map| !map.grows).collect();
    maps.sort_unstable_by_key(|map| Reverse(map.bytes));
    let total: u64 = maps.iter().map(|map| map.bytes).sum();
    let largest: Vec<String> = maps
        .iter()
        .take_while(|map| map.bytes >= MEBIBYTE)
        .map(|map| format!("{} {}", names.get(&map.id).map_or("?", String::as_str), in_mebibytes(map.bytes)))
        .collect();
    tracing::info!("maps take {} of kernel memory: {}", in_mebibytes(total), largest.join(", "));
}

fn in_mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / MEBIBYTE as f64)
}
