//! The cost of pping: `cargo xtask bench`.
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

mod agent;
mod capture;
mod client_library;
mod exchanges;
mod forwarding;
mod frames;
mod history;
mod iperf;
mod kernel;
mod machine;
mod measure;
mod memory;
mod networks;
mod pipeline;
mod recent;
mod replay;
mod report;
mod residence;
mod scrape;
mod serve;
mod stalls;
mod sweep;
mod touches;
mod watcher;

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Result;
use clap::{Parser, ValueEnum};
use measure::Rounds;
use pping_bench_programs::exchange::Traffic;
use report::Report;
use serde::Serialize;

/// Measure what pping costs: a packet in the kernel, in ns over an empty program, and under real traffic; the memory that it
/// touches; a router's loss of throughput, and what `--residence` adds; the agent's work for samples, and how many it can handle; the memory of flows; a sweep, and
/// how long packets wait for it; reading captures; scrapes; what is kept for people to look at; and the history of months.
#[derive(Parser)]
struct Arguments {
    /// Measure nothing else
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Also measure this command, in turn with pping, on the router: it must watch `wan1` until interrupted. May be given several
    /// times
    #[arg(long, value_name = "COMMAND")]
    beside: Vec<String>,
    /// Forward packets of so many flows, powers of two up to 262,144, instead of seven counts
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = flows)]
    flows: Vec<u32>,
    /// Rounds in the kernel, of which the median is reported
    #[arg(long, default_value_t = 21)]
    rounds: u32,
    /// Runs of each program in a round
    #[arg(long, default_value_t = 200_000)]
    repeat: u32,
    /// Packets in the capture
    #[arg(long, default_value_t = 2_000_000)]
    packets: u32,
    /// Also write the figures of each round to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure nothing, and serve metrics of made-up networks at this address until killed
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<SocketAddr>,
    /// Groups in the served metrics
    #[arg(long, default_value_t = 1_000)]
    groups: u32,
    /// Seconds of traffic added per second, so that a scrape interval of a second acts like one of this many
    #[arg(long, default_value_t = 1)]
    step: u64,
}

/// The parts that can be measured alone, in the order of a whole run.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// The programs in the kernel
    Kernel,
    /// The cache lines and pages of maps that a packet touches
    Touches,
    /// Sweeps of a million flows
    Sweep,
    /// Packets that arrive during a sweep of a million flows
    Stalls,
    /// A router with one busy core
    Forwarding,
    /// What `--residence` costs a router that has a queue
    Residence,
    /// The programs in the kernel, while iperf3 sends through a router
    Iperf,
    /// Events that the agent can handle on one core
    Pipeline,
    /// Memory of flows and of the agent, and how long it takes to start
    Memory,
    /// The agent, while samples arrive
    Agent,
    /// Captures, compared with tshark
    Replay,
    /// Scrapes of metrics
    Scrape,
    /// What is kept for people to look at
    Recent,
    /// What is kept for months
    History,
}

/// Parses a number of connections.
fn flows(text: &str) -> Result<u32, String> {
    let flows =
        text.parse().ok().filter(|flows: &u32| flows.is_power_of_two() && *flows <= Traffic::MAX_FLOWS);
    flows.ok_or_else(|| format!("give a power of two up to {}", Traffic::MAX_FLOWS))
}

fn main() -> Result<()> {
    let Arguments { only, beside, flows, rounds, repeat, packets, json, serve, groups, step } =
        Arguments::parse();
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
            Part::Touches => touches::measure(&mut report)?,
            Part::Sweep => sweep::measure(&mut report)?,
            Part::Stalls => stalls::measure(&mut report)?,
            Part::Forwarding => forwarding::measure(&beside, &flows, &mut report)?,
            Part::Residence => residence::measure(&mut report)?,
            Part::Iperf => iperf::measure(&beside, &mut report)?,
            Part::Pipeline => pipeline::measure(&mut report)?,
            Part::Memory => memory::measure(&mut report)?,
            Part::Agent => agent::measure(&mut report)?,
            Part::Replay => replay::measure(packets, &mut report)?,
            Part::Scrape => scrape::measure(&mut report)?,
            Part::Recent => recent::measure(&mut report)?,
            Part::History => history::measure(&mut report)?,
        }
    }
    json.map_or(Ok(()), |file| report.save(&file))
}
