//! The prefixes that the kernel programs know.

use std::{collections::HashSet, net::IpAddr};

use aya::maps::{LpmTrie, MapData, MapError, lpm_trie::Key};
use ipnet::IpNet;
use pping_common::{group::LabelKey, parse::IpAddress};

/// Prefixes in the kernel.
pub type Prefixes = LpmTrie<MapData, LabelKey, u32>;

/// The number of generations. Each is one set of prefixes in the map.
const GENERATIONS: u32 = 1 << 24;

/// Returns the generation after this one.
pub fn next(generation: u32) -> u32 {
    (generation + 1) % GENERATIONS
}

/// Adds a set of prefixes beside the existing ones. The programs use it only once `generation` is current.
///
/// # Errors
/// If the kernel has no room for them. Then none of them stays.
pub fn add(map: &mut Prefixes, generation: u32, prefixes: &[(IpNet, u32)]) -> Result<(), MapError> {
    for (position, (prefix, label)) in prefixes.iter().enumerate() {
        if let Err(error) = map.insert(&key(generation, *prefix), label, 0) {
            remove(map, generation, &prefixes[..position]);
            return Err(error);
        }
    }
    Ok(())
}

/// Replaces all prefixes of the map by `prefixes`. Those that are in both are there all the time.
///
/// # Errors
/// If the kernel has no room for them, or does not list the present ones.
pub fn replace(map: &mut Prefixes, generation: u32, prefixes: &[(IpNet, u32)]) -> Result<(), MapError> {
    add(map, generation, prefixes)?;
    let kept: HashSet<_> = prefixes.iter().map(|(prefix, _)| parts(&key(generation, *prefix))).collect();
    retain(map, |key| kept.contains(&parts(key)))
}

/// Removes all sets of prefixes but one.
///
/// # Errors
/// If the kernel does not list the present ones.
pub fn retain_generation(map: &mut Prefixes, generation: u32) -> Result<(), MapError> {
    let kept = LabelKey::new(generation, IpAddress::from_bytes([0; 16])).generation;
    retain(map, |key| key.data().generation == kept)
}

fn retain(map: &mut Prefixes, mut is_kept: impl FnMut(&Key<LabelKey>) -> bool) -> Result<(), MapError> {
    let mut others = Vec::new();
    for key in map.keys() {
        let key = key?;
        if !is_kept(&key) {
            others.push(key);
        }
    }
    others.iter().try_for_each(|key| map.remove(key))
}

fn parts(key: &Key<LabelKey>) -> (u32, LabelKey) {
    (key.prefix_len(), key.data())
}

/// Removes a set of prefixes that the programs no longer look at.
pub fn remove(map: &mut Prefixes, generation: u32, prefixes: &[(IpNet, u32)]) {
    for (prefix, _) in prefixes {
        // A prefix that is listed twice is gone by now.
        map.remove(&key(generation, *prefix)).ok();
    }
}

fn key(generation: u32, prefix: IpNet) -> Key<LabelKey> {
    let address = match prefix.network() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let key = LabelKey::new(generation, IpAddress::from_bytes(address));
    let len = match prefix {
        // The programs treat a mapped address as an IPv4 address.
        IpNet::V6(prefix) if key.version == 4 => prefix.prefix_len().saturating_sub(96),
        _ => prefix.prefix_len(),
    };
    Key::new(key.bits(len), key)
}
