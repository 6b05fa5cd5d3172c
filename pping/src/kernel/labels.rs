//! The prefixes that the kernel programs know.

use std::{collections::HashSet, net::IpAddr, os::fd::AsFd as _};

use aya::maps::{IterableMap as _, LpmTrie, Map, MapData, MapError, lpm_trie::Key};
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
pub fn add(
    map: &mut Prefixes,
    generation: u32,
    prefixes: impl Iterator<Item = (IpNet, u32)> + Clone,
) -> Result<(), MapError> {
    for (position, (prefix, label)) in prefixes.clone().enumerate() {
        if let Err(error) = set(map, generation, prefix, label) {
            remove(map, generation, prefixes.take(position));
            return Err(error);
        }
    }
    Ok(())
}

/// Adds one prefix to a set, or moves it to another label. The programs find either the previous label or this one.
///
/// # Errors
/// If the kernel has no room for it.
pub fn set(map: &mut Prefixes, generation: u32, prefix: IpNet, label: u32) -> Result<(), MapError> {
    map.insert(&key(generation, prefix), label, 0)
}

/// Removes one prefix of a set.
pub fn unset(map: &mut Prefixes, generation: u32, prefix: IpNet) {
    // One that is not there is gone already.
    map.remove(&key(generation, prefix)).ok();
}

/// Opens the same map once more, for another thread.
///
/// # Errors
/// If the kernel does not allow that.
pub fn open_again(map: &Prefixes) -> Result<Prefixes, MapError> {
    let descriptor = map.map().fd().as_fd().try_clone_to_owned().map_err(MapError::IoError)?;
    LpmTrie::try_from(Map::LpmTrie(MapData::from_fd(descriptor)?))
}

/// Replaces all prefixes of the map by `prefixes`. Those that are in both are there all the time.
///
/// # Errors
/// If the kernel has no room for them, or does not list the present ones.
pub fn replace(map: &mut Prefixes, generation: u32, prefixes: &[(IpNet, u32)]) -> Result<(), MapError> {
    add(map, generation, prefixes.iter().copied())?;
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
pub fn remove(map: &mut Prefixes, generation: u32, prefixes: impl Iterator<Item = (IpNet, u32)>) {
    for (prefix, _) in prefixes {
        unset(map, generation, prefix);
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
