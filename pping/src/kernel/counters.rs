//! What the kernel programs count.

use std::sync::Arc;

use pping_common::abi::Counters;

use super::{attach::AttachPoints, load::Kernel};
use crate::Error;

/// An interface that is being watched, or was until it went away.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: Arc<str>,
    /// Its interface id.
    pub id: u16,
    /// Where its packets are seen, or were.
    pub attach_points: AttachPoints,
    /// Whether it is there at present.
    pub is_up: bool,
}

/// The counters of the watched interfaces at one time, all CPUs added up.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Each interface with its counters.
    pub interfaces: Vec<(Watched, Counters)>,
}

impl Snapshot {
    /// Reads the counters.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(kernel: &Kernel, watched: &[Watched]) -> Result<Self, Error> {
        let mut interfaces = Vec::with_capacity(watched.len());
        for watched in watched {
            let mut sum = Counters::ZERO;
            for cpu in kernel.counters.get(&u32::from(watched.id), 0)?.iter() {
                sum.add(cpu);
            }
            interfaces.push((watched.clone(), sum));
        }
        Ok(Self { interfaces })
    }

    /// All interfaces added up.
    pub fn total(&self) -> Counters {
        let mut total = Counters::ZERO;
        for (_, counters) in &self.interfaces {
            total.add(counters);
        }
        total
    }
}
