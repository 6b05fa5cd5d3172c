//! The prefixes in the kernel, and flows that look up their groups there.

use std::time::{Duration, Instant};

use aya::maps::MapError;
use ipnet::IpNet;

use crate::{
    Error,
    groups::Directory,
    kernel::{
        labels::{self, Prefixes},
        loaded::Kernel,
        series::Generations,
    },
};

/// The groups in the kernel.
pub(super) struct InKernel {
    map: Prefixes,
    generations: Generations,
    /// The current set of prefixes.
    generation: u32,
    /// Whether flows have to look up their groups again.
    is_unresolved: bool,
    last_resolved: Instant,
}

impl InKernel {
    /// Writes all prefixes into the kernel, and makes them current. Returns `None` if groups are not listed there.
    ///
    /// # Errors
    /// If the kernel has no room for them.
    pub(super) fn enter(kernel: &mut Kernel, directory: &Directory) -> Result<Option<Self>, Error> {
        let generation = labels::next(kernel.series.generation());
        let Some(mut map) = kernel.labels.take() else { return Ok(None) };
        labels::add(&mut map, generation, directory.prefixes())?;
        kernel.series.set_generation(generation);
        // A pinned map may have the prefixes of the previous run.
        labels::retain_generation(&mut map, generation)?;
        let generations = kernel.series.generations()?;
        let last_resolved = Instant::now();
        Ok(Some(Self { map, generations, generation, is_unresolved: false, last_resolved }))
    }

    /// Writes one prefix, and touches no other.
    ///
    /// # Errors
    /// If there is no room for it.
    pub(super) fn write(&mut self, prefix: IpNet, label: Option<u32>) -> Result<(), MapError> {
        write(&mut self.map, self.generation, prefix, label)?;
        self.is_unresolved = true;
        Ok(())
    }

    /// Makes flows look up their groups again if a change asks for that, but at most once in this time. Returns whether nothing is
    /// left to do.
    pub(super) fn resolve_at_most_each(&mut self, interval: Duration) -> bool {
        if !self.is_unresolved {
            return true;
        }
        if self.last_resolved.elapsed() < interval {
            return false;
        }
        self.generations.resolve_again();
        (self.is_unresolved, self.last_resolved) = (false, Instant::now());
        true
    }

    /// Another handle of the map, and the number of the set of prefixes after the current one.
    ///
    /// # Errors
    /// If the map cannot be opened once more.
    pub(super) fn begin_again(&self) -> Result<(Prefixes, u32), Error> {
        Ok((labels::open_again(&self.map)?, labels::next(self.generation)))
    }

    /// Makes another set of prefixes current. Returns the number of the one before.
    pub(super) fn switch(&mut self, generation: u32) -> u32 {
        let old = std::mem::replace(&mut self.generation, generation);
        self.generations.set(generation);
        (self.is_unresolved, self.last_resolved) = (false, Instant::now());
        old
    }
}

/// Writes one prefix of a set.
///
/// # Errors
/// If there is no room for it.
pub(super) fn write(
    map: &mut Prefixes,
    generation: u32,
    prefix: IpNet,
    label: Option<u32>,
) -> Result<(), MapError> {
    if let Some(label) = label {
        return labels::set(map, generation, prefix, label);
    }
    labels::unset(map, generation, prefix);
    Ok(())
}
