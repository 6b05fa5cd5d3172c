//! The kernel's aggregates add up, whatever happens meanwhile.

mod bins;
mod concurrent;
mod groups;
mod hosts;
mod labels;
mod shares;

use std::collections::HashMap;

use pping::{aggregate::Distribution, groups::Names, kernel::loaded::Kernel};
use pping_common::series::SeriesKey;

use super::{
    frames::{Ip, TCP, Tcp, echo, v4, v6},
    rig::{self, Program, SETTINGS, run},
};

/// Sums over all epochs, by series.
#[derive(Default)]
struct Sums(HashMap<SeriesKey, Distribution>);

impl Sums {
    /// Sweeps, then rotates.
    fn sweep_and_rotate(&mut self, kernel: &mut Kernel) {
        kernel.sweep().unwrap();
        self.rotate(kernel);
    }

    /// Rotates, and takes the sums.
    fn rotate(&mut self, kernel: &mut Kernel) {
        kernel.series.rotate();
        self.take(kernel);
    }

    /// Takes the sums of the epoch that ended last.
    fn take(&mut self, kernel: &mut Kernel) {
        kernel.series.take(|key, counts| self.0.entry(*key).or_default().add(counts)).unwrap();
        kernel.series.commit().unwrap();
    }

    /// Returns the samples by label of their group, over all methods and directions.
    fn samples(&self) -> HashMap<String, u64> {
        self.by_label(Distribution::count)
    }

    fn by_label(&self, value: impl Fn(&Distribution) -> u64) -> HashMap<String, u64> {
        let (mut names, mut sums) = (Names::default(), HashMap::new());
        for (key, distribution) in &self.0 {
            *sums.entry(names.group(&key.group).label.to_string()).or_default() += value(distribution);
        }
        sums
    }

    fn total(&self) -> u64 {
        self.0.values().map(Distribution::count).sum()
    }
}
