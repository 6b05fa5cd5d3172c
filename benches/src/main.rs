//! What pping costs: `cargo xtask bench`.
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

mod agent;
mod capture;
mod exchanges;
mod forwarding;
mod frames;
mod iperf;
mod kernel;
mod machine;
mod measure;
mod memory;
mod networks;
mod pipeline;
mod replay;
mod report;
mod scrape;
mod serve;
mod stalls;
mod sweep;
mod watcher;

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use measure::Rounds;
use report::Report;
use serde::Serialize;

/// Measures what a packet costs in the kernel, in nanoseconds over an empty program, and under real traffic, how much less a
/// router forwards, what samples cost the agent and how many it can take, what memory flows take, how long a sweep of them
/// takes and packets wait for it, how fast captures are read, and how long a scrape takes.
#[derive(Parser)]
struct Arguments {
    /// Measure nothing else
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Also have this watch the router, in turn with pping: a command that watches `wan1` until it is interrupted
    #[arg(long, value_name = "COMMAND")]
    beside: Option<String>,
    /// Rounds in the kernel, of which the median is taken
    #[arg(long, default_value_t = 21)]
    rounds: u32,
    /// Runs of each program in a round
    #[arg(long, default_value_t = 200_000)]
    repeat: u32,
    /// Packets in the capture
    #[arg(long, default_value_t = 2_000_000)]
    packets: u32,
    /// Also write the figures to this file, with each round
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure nothing: serve metrics of made-up networks at this address until killed
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<SocketAddr>,
    /// Groups that are served
    #[arg(long, default_value_t = 1_000)]
    groups: u32,
    /// Seconds of traffic that pass in one, so that a scrape interval of a second is like one of this many
    #[arg(long, default_value_t = 1)]
    step: u64,
}

/// What can be measured by itself, in the order in which all is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// The programs in the kernel
    Kernel,
    /// Sweeps of a million flows
    Sweep,
    /// Packets that come while a million flows are swept
    Stalls,
    /// A router whose one core is busy
    Forwarding,
    /// The programs in the kernel, while iperf3 sends through a router
    Iperf,
    /// Events that the agent can take on one core
    Pipeline,
    /// Memory of flows and of the agent, and how long it takes to start
    Memory,
    /// The agent, while samples come
    Agent,
    /// Captures, beside tshark
    Replay,
    /// Scrapes of metrics
    Scrape,
}

fn main() -> Result<()> {
    let Arguments { only, beside, rounds, repeat, packets, json, serve, groups, step } = Arguments::parse();
    if let Some(address) = serve {
        return serve::serve(address, groups, step);
    }
    let machine = machine::describe();
    println!("{machine}");
    let mut report = Report::new(machine);
    for &part in Part::value_variants() {
        if only.is_some_and(|only| only != part) {
            continue;
        }
        report.begin(part);
        match part {
            Part::Kernel => kernel::measure(Rounds { rounds, repeat }, &mut report)?,
            Part::Sweep => sweep::measure(&mut report)?,
            Part::Stalls => stalls::measure(&mut report)?,
            Part::Forwarding => forwarding::measure(beside.as_deref(), &mut report)?,
            Part::Iperf => iperf::measure(beside.as_deref(), &mut report)?,
            Part::Pipeline => pipeline::measure(&mut report)?,
            Part::Memory => memory::measure(&mut report)?,
            Part::Agent => agent::measure(&mut report)?,
            Part::Replay => replay::measure(packets, &mut report)?,
            Part::Scrape => scrape::measure(&mut report)?,
        }
    }
    json.map_or(Ok(()), |file| report.save(&file))
}
