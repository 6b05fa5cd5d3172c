//! Measures how many events the agent can handle on one core: drained, aggregated, and written as JSON lines.
//!
//! The kernel programs fill the ring with samples. One thread, whose CPU time is measured, empties it as the agent
//! does; for comparison it drains the ring without further work. The ring is refilled each time, so events are in the
//! caches, as they are when they come from the network.

use std::{fs::OpenOptions, hint::black_box, io::Write as _};

use anyhow::{Result, ensure};
use pping::{
    agent::events,
    config::Aggregation,
    config::Format,
    groups::Names,
    kernel::{
        clock::{WallClock, wall},
        drain::drain,
        load_options::LoadOptions,
        loaded::Kernel,
    },
    output::Batch,
    records::{Reporter, format},
};
use pping_common::{
    limits::DEFAULT_MAX_FLOWS,
    method::{Method, Methods},
    rtt::Rules,
};

use crate::{
    exchanges, frames, kernel,
    measure::{self, Figure, cpu_time},
    report::Report,
};

/// The flows of the samples.
const FLOWS: u32 = 1_024;

/// Events that are certain to fit the ring.
const EVENTS: u32 = 16_384;

/// How often each way of handling events is measured.
const ROUNDS: u32 = 61;

/// What is done with events.
#[derive(Clone, Copy)]
enum Handling {
    Nothing,
    Aggregating,
    Records,
    JsonLines,
}

impl Handling {
    const ALL: [Self; 4] = [Self::Nothing, Self::Aggregating, Self::Records, Self::JsonLines];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "drained, and nothing done with them",
            Self::Aggregating => "aggregated by flow (--flow-summary)",
            Self::Records => "made records of",
            Self::JsonLines => "written as JSON lines to /dev/null",
        }
    }
}

/// Measures each way of handling events in turn.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let rules = Rules { methods: Methods::NONE.with(Method::TcpTs), ..Rules::UNLIMITED };
    let mut kernel = kernel::exchanging(&LoadOptions { rules, ..LoadOptions::DEFAULT })?;
    kernel::set_exchange(&mut kernel.programs, &exchanges::echoes(FLOWS))?;
    let mut agent = Agent::new()?;
    println!(
        "\nevents that the agent takes on one core, of {FLOWS} flows; million/s, {ROUNDS} rounds of {EVENTS}\n"
    );
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");
    let mut rates: [Vec<f64>; Handling::ALL.len()] = Default::default();
    for round in 0..=ROUNDS {
        for (handling, rates) in Handling::ALL.into_iter().zip(&mut rates) {
            fill(&mut kernel)?;
            let rate = agent.take(&mut kernel, handling)?;
            // The first round opens the flows, and warms up.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let mut medians = Vec::new();
    for (handling, rates) in Handling::ALL.into_iter().zip(rates) {
        let figure = Figure::of(rates)?;
        report.print_as(handling.name(), "million/s", &figure);
        medians.push(figure.median);
    }
    let [nothing, aggregated, _, lines] = medians[..] else { return Ok(()) };
    println!(
        "\nOne core aggregates {aggregated:.1} million events a second (2 are asked for), {:.2} x what it drains, and writes \
         {lines:.1} million JSON lines (1).",
        aggregated / nothing
    );
    Ok(())
}

/// Makes the programs emit samples.
fn fill(kernel: &mut Kernel) -> Result<()> {
    // The agent does this once a second, and then knows each series by its index.
    kernel.series.rotate();
    kernel.series.take(|_, _| ())?;
    kernel.series.commit()?;
    measure::run((&kernel.programs, "bench_exchange"), &frames::tcp(1, 2, 1400), EVENTS)?;
    Ok(())
}

/// The part of the agent that events pass through.
struct Agent {
    individual: Reporter,
    by_flow: Reporter,
    names: Names,
}

impl Agent {
    fn new() -> Result<Self> {
        let by_flow = Aggregation { flow_summary: true, ..Aggregation::NONE };
        Ok(Self {
            individual: Reporter::new(&Aggregation::NONE, DEFAULT_MAX_FLOWS, wall()?)?,
            by_flow: Reporter::new(&by_flow, DEFAULT_MAX_FLOWS, wall()?)?,
            names: Names::default(),
        })
    }

    /// Empties the ring, and returns the rate in million events a second.
    fn take(&mut self, kernel: &mut Kernel, handling: Handling) -> Result<f64> {
        let Self { individual, by_flow, names } = self;
        let mut encoder = format::encoder(Format::Jsonl);
        let mut file = OpenOptions::new().append(true).open("/dev/null")?;
        let mut taken = 0_u32;
        let before = cpu_time()?;
        let clock = WallClock::now()?;
        let is_empty = match handling {
            Handling::Nothing => drain(&mut kernel.events, |event| {
                black_box(&event);
                taken += 1;
            }),
            Handling::Aggregating => {
                // This makes no records that could be counted. Losses are checked below.
                taken = EVENTS;
                events::records(kernel, by_flow, names, clock, |_| ())
            }
            Handling::Records => events::records(kernel, individual, names, clock, |record| {
                black_box(record);
                taken += 1;
            }),
            Handling::JsonLines => {
                let mut batch = Batch::default();
                let is_empty = events::records(kernel, individual, names, clock, |record| {
                    encoder.append(record, &mut batch);
                    taken += 1;
                });
                file.write_all(batch.bytes())?;
                is_empty
            }
        };
        let took = cpu_time()?.saturating_sub(before);
        let lost: u64 = kernel.counters.sum(0).lost.iter().sum();
        ensure!(
            taken >= EVENTS && is_empty && lost == 0,
            "{taken} of {EVENTS} events came, {lost} were lost: the figure is of something else"
        );
        Ok(f64::from(taken) / took.as_secs_f64() / 1e6)
    }
}
