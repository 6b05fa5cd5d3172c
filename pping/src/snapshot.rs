//! The counters of the kernel programs, and the CPU time and memory of pping, as plain values: `kernel` reads the
//! counters, `metrics` and `recent` serve both.

use std::{sync::Arc, time::Duration};

use pping_common::abi::Counters;

/// The counters of all watched interfaces.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// One element per interface.
    pub interfaces: Vec<InterfaceCounters>,
}

/// The counters of an interface, all CPUs added up.
#[derive(Clone, Debug)]
pub struct InterfaceCounters {
    /// The name of the interface.
    pub name: Arc<str>,
    /// The current attach points of programs, or the last ones, without duplicates: `tcx`, `xdp-native`.
    pub attach_points: Vec<&'static str>,
    /// Whether the interface exists at present.
    pub is_up: bool,
    /// The counters.
    pub counters: Counters,
    /// What it has to do with joined interfaces.
    pub place: Place,
}

/// What an interface has to do with joined ones, as in `eth1+eth2`. Each of them counts its packets, and their
/// flows and samples count for all of them together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    #[default]
    Alone,
    /// It is one of those with this name.
    OneOf(Arc<str>),
    /// It stands for all of them.
    Joined,
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

/// The CPU time and memory of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// CPU time of the process, in user and kernel space.
    pub cpu: Duration,
    /// Resident memory of the process at present, bytes.
    pub memory: u64,
}

impl Usage {
    /// Reads both; they are 0 if that fails.
    pub fn read() -> Self {
        let stat = procfs::process::Process::myself().and_then(|process| process.stat());
        stat.map_or_else(
            |_| Self::default(),
            |stat| Self {
                cpu: Duration::from_secs(stat.utime + stat.stime) / procfs::ticks_per_second() as u32,
                memory: stat.rss * procfs::page_size(),
            },
        )
    }
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
