//! A machine like the kernel: with its programs and with copies of their maps.

use std::{
    collections::{HashMap, HashSet},
    mem::offset_of,
};

use anyhow::{Context as _, Result, ensure};
use aya::maps::MapType;
use aya_obj::Object;
use pping::kernel::{loaded::Kernel, object};
use pping_common::{
    abi::Counters,
    limits::DEFAULT_MAX_INTERFACES,
    pool::{BINS_PER_BLOCK, BinBlock},
};

use super::{
    machine::Machine,
    maps::{self, Copied},
};

/// Copies programs and maps that no packet has used yet.
pub(super) fn copy(kernel: &Kernel) -> Result<Machine> {
    let mut machine = Machine::new();
    let mut regions = HashMap::new();
    for map in maps::of(&kernel.programs)? {
        let name = maps::name(&map)?;
        let Copied { map, values, is_counted } =
            maps::copy(&map).with_context(|| format!("copying {name}"))?;
        let region = machine.memory.add(name, values, is_counted);
        machine.maps.insert(region, map);
        regions.insert(name.to_owned(), region);
    }
    let mut object = Object::parse(object::for_features(kernel.features)?)?;
    ensure!(!object.has_btf_relocations(), "the programs depend on the types of the kernel");
    let of_object: Vec<_> = object.maps.drain().collect();
    // The loaded programs do not use the others.
    let region = |name: &str| regions.get(maps::name_in_kernel(name)).map_or(0, |&region| region as i32);
    let text: HashSet<_> = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_maps(of_object.iter().map(|(name, map)| (name.as_str(), region(name), map)), &text)?;
    object.relocate_calls(&text)?;
    for (name, program) in &object.programs {
        let function = object.functions.get(&program.function_key()).context("a program without code")?;
        machine.add_program(name, &function.instructions);
    }
    Ok(machine)
}

/// Fails unless the kernel's programs did the same with the same packets. Returns the number of samples.
pub(super) fn compare(machine: &Machine, kernel: &Kernel) -> Result<u32> {
    let mut samples = None;
    for map in maps::of(&kernel.programs)? {
        if map.map_type()? != MapType::Array {
            continue;
        }
        let (name, theirs) = (maps::name(&map)?, maps::values(&map)?);
        let ours = &machine.memory.named(name)?.bytes;
        let is_same = match name {
            "COUNTERS" => of_all_cpus(ours) == of_all_cpus(&theirs),
            "BINS" => {
                samples = Some(sum_of_bins(ours));
                samples == Some(sum_of_bins(&theirs))
            }
            // Which bins a series has depends on the times, too.
            "SERIES" => true,
            "TABLES" | "INDEX_V4" | "INDEX_V6" => *ours == theirs,
            // Times differ, and nothing else should.
            _ => is_set(ours).eq(is_set(&theirs)),
        };
        ensure!(is_same, "{name} has other contents than in the kernel: the figures are of something else");
    }
    samples.context("no program has bins")
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word))
}

fn is_set(bytes: &[u8]) -> impl Iterator<Item = bool> {
    words(bytes).map(|word| word != 0)
}

/// The counters, all CPUs added up: the kernel may have run programs on any.
fn of_all_cpus(counters: &[u8]) -> Vec<u32> {
    let of_cpu = DEFAULT_MAX_INTERFACES as usize * size_of::<Counters>();
    let mut sums = vec![0_u32; of_cpu / 4];
    for counters in counters.chunks_exact(of_cpu) {
        sums.iter_mut().zip(words(counters)).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
    }
    sums
}

/// The samples in all bins. Which bins they are in depends on the time.
fn sum_of_bins(blocks: &[u8]) -> u32 {
    let bins = offset_of!(BinBlock, bins);
    let of_block = |block: &[u8]| words(&block[bins..][..4 * BINS_PER_BLOCK]).sum::<u32>();
    blocks.chunks_exact(size_of::<BinBlock>()).map(of_block).sum()
}
