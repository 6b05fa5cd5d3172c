//! What the kernel's maps take.

use std::{fs, path::Path};

/// Logs how much memory the maps of this process take, as the kernel tells.
pub(super) fn log() {
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let mut maps = maps(Path::new("/proc/self/fdinfo"));
    maps.sort_unstable_by_key(|&(_, octets)| std::cmp::Reverse(octets));
    let total: u64 = maps.iter().map(|(_, octets)| octets).sum();
    let largest: Vec<String> = maps
        .iter()
        .take_while(|(_, octets)| *octets >= MEBIBYTE)
        .map(|(name, octets)| format!("{name} {}", in_mebibytes(*octets)))
        .collect();
    tracing::info!("maps take {} of kernel memory: {}", in_mebibytes(total), largest.join(", "));
}

const MEBIBYTE: u64 = 1 << 20;

fn in_mebibytes(octets: u64) -> String {
    format!("{:.1} MiB", octets as f64 / MEBIBYTE as f64)
}

/// Each map of a process by its name, and the octets it takes.
fn maps(descriptors: &Path) -> Vec<(String, u64)> {
    let names: std::collections::HashMap<u32, String> = aya::maps::loaded_maps()
        .filter_map(Result::ok)
        .map(|map| (map.id(), map.name_as_str().unwrap_or("?").to_owned()))
        .collect();
    let Ok(entries) = fs::read_dir(descriptors) else { return Vec::new() };
    let mut maps: Vec<(u32, u64)> = entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.ok()?.path()).ok()?;
            // `bpf_map_show_fdinfo` in kernel/bpf/syscall.c.
            Some((field(&text, "map_id:")? as u32, field(&text, "memlock:")?))
        })
        .collect();
    // A map may have several descriptors.
    maps.sort_unstable();
    maps.dedup();
    maps.into_iter().map(|(id, octets)| (names.get(&id).cloned().unwrap_or_default(), octets)).collect()
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}
