//! The memory of programs that are interpreted: regions, each at an address of its own.

use std::{collections::BTreeSet, mem};

use anyhow::{Context as _, Result, ensure};

/// The size of a cache line, as a shift.
pub(super) const LINE: u32 = 6;

/// The bits of an offset. The bits above are the number of the region.
const OFFSET_BITS: u32 = 40;

/// A piece of memory.
pub(super) struct Region {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// Whether it is noted which cache lines are touched.
    pub(super) is_counted: bool,
}

/// All memory, and the cache lines that were touched.
pub(super) struct Memory {
    regions: Vec<Region>,
    touched: BTreeSet<u64>,
}

/// Returns the address of a byte of a region.
pub(super) fn address(region: usize, offset: usize) -> u64 {
    (region as u64) << OFFSET_BITS | offset as u64
}

/// Returns the number of the region that an address belongs to.
pub(super) fn region_of(address: u64) -> usize {
    (address >> OFFSET_BITS) as usize
}

/// Returns the offset of an address in its region.
pub(super) fn offset_of(address: u64) -> usize {
    (address & ((1 << OFFSET_BITS) - 1)) as usize
}

impl Memory {
    /// Memory with one region that is empty, so that no valid address is 0.
    pub(super) fn new() -> Self {
        let mut memory = Self { regions: Vec::new(), touched: BTreeSet::new() };
        memory.add("null", Vec::new(), false);
        memory
    }

    /// Adds a region, and returns its number.
    pub(super) fn add(&mut self, name: &str, bytes: Vec<u8>, is_counted: bool) -> usize {
        self.regions.push(Region { name: name.to_owned(), bytes, is_counted });
        self.regions.len() - 1
    }

    /// Returns a region.
    pub(super) fn region(&self, number: usize) -> Result<&Region> {
        self.regions.get(number).with_context(|| format!("there is no region {number}"))
    }

    /// Returns the region with this name.
    pub(super) fn named(&self, name: &str) -> Result<&Region> {
        self.regions.iter().find(|region| region.name == name).with_context(|| format!("there is no {name}"))
    }

    /// Replaces the bytes of a region. That is no access of a program.
    pub(super) fn replace(&mut self, number: usize, bytes: &[u8]) -> Result<()> {
        let region = self.regions.get_mut(number).context("there is no such region")?;
        region.bytes.clear();
        region.bytes.extend(bytes);
        Ok(())
    }

    /// The bytes at an address, for a program that reads or writes them.
    pub(super) fn access(&mut self, address: u64, size: usize) -> Result<&mut [u8]> {
        let offset = offset_of(address);
        let region = self.regions.get_mut(region_of(address));
        let region = region.with_context(|| format!("{address:#x} is no address"))?;
        let bytes = region.bytes.get_mut(offset..offset + size);
        let bytes = bytes.with_context(|| format!("{size} bytes at {offset} are not in {}", region.name))?;
        ensure!(size > 0, "no bytes are accessed");
        if region.is_counted {
            self.touched.extend(address >> LINE..=(address + size as u64 - 1) >> LINE);
        }
        Ok(bytes)
    }

    /// Loads a number of up to 8 bytes.
    pub(super) fn load(&mut self, address: u64, size: usize) -> Result<u64> {
        let mut number = [0; 8];
        number[..size].copy_from_slice(self.access(address, size)?);
        Ok(u64::from_le_bytes(number))
    }

    /// Stores the lowest bytes of a number.
    pub(super) fn store(&mut self, address: u64, size: usize, number: u64) -> Result<()> {
        self.access(address, size)?.copy_from_slice(&number.to_le_bytes()[..size]);
        Ok(())
    }

    /// Takes the cache lines that were touched since the last call.
    pub(super) fn take_touched(&mut self) -> BTreeSet<u64> {
        mem::take(&mut self.touched)
    }
}
