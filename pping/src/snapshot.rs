//! The counters of the kernel programs so far, as plain values: `kernel` reads them, `metrics` serves them.

use std::{sync::Arc, time::Duration};

use pping_common::abi::Counters;

/// The counters of all watched interfaces.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// One element an interface.
    pub interfaces: Vec<InterfaceCounters>,
}

/// The counters of an interface, all CPUs added up.
#[derive(Clone, Debug)]
pub struct InterfaceCounters {
    /// The name of the interface.
    pub name: Arc<str>,
    /// The attach points of programs, present or last, without duplicates: `tcx`, `xdp-native`.
    pub attach_points: Vec<&'static str>,
    /// Whether the interface exists at present.
    pub is_up: bool,
    /// The counters.
    pub counters: Counters,
}

/// The cost of a kernel program so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// The name of the program.
    pub program: String,
    /// The number of runs.
    pub runs: u64,
    /// The time of all runs.
    pub time: Duration,
}

impl Snapshot {
    /// The counters of all interfaces added up.
    pub fn total(&self) -> Counters {
        let mut total = Counters::ZERO;
        for interface in &self.interfaces {
            total.add(&interface.counters);
        }
        total
    }
}
