//! Measures what a sweep of a million flows takes: CPU time of the agent's walk through the buckets, and of the kernel's runs.
//!
//! The programs that pping attaches make the flows: `BPF_PROG_TEST_RUN` runs them on a packet of each flow and its
//! answer. Sweeps of the empty table come first. Then, in each round, one sweep flushes the traffic of all flows, two
//! flush that of a share of them, and one finds the flows idle and only reads when they were last seen.

use anyhow::{Result, ensure};
use pping::{
    kernel::{load_options::LoadOptions, loaded::Kernel, sweep::MAX_FLUSHED},
    worst::MAX_SHOWN,
};
use pping_common::{abi::Emit, parse::Untracked, rtt::Rules};

use crate::{
    frames, kernel,
    measure::{self, Figure, cpu_time},
    report::Report,
};

/// The number of flows and the capacity: the first flow is refused when the table is nearly full.
pub(crate) const FLOWS: u32 = 1_000_000;
const MAX_FLOWS: u32 = FLOWS / 4 * 5;

/// How often each kind of sweep is measured.
const ROUNDS: u32 = 7;

/// Measures sweeps.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let mut kernel = with_room()?;
    println!(
        "\na sweep, ms of CPU time, of a table that has room for {MAX_FLOWS} flows of each family; {ROUNDS} rounds\n"
    );
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");
    // The first sweep allocates the pages of the mapping.
    timed(&mut kernel, Kernel::sweep)?;
    let empty = (0..ROUNDS).map(|_| timed(&mut kernel, Kernel::sweep)).collect::<Result<Vec<_>>>()?;
    report.print_as("no flows", "ms", &Figure::of(empty)?);
    send(&kernel, true)?;
    // Flows that have just opened are not like established ones.
    kernel.sweep_all()?;
    let (mut sent, mut ranked, mut all, mut idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        send(&kernel, false)?;
        all.push(timed(&mut kernel, Kernel::sweep_all)?);
        send(&kernel, false)?;
        sent.push(timed(&mut kernel, Kernel::sweep)?);
        // This sweep flushes the next share of the flows.
        kernel.sweeper.rank(MAX_SHOWN, 1);
        ranked.push(timed(&mut kernel, Kernel::sweep)?);
        ensure!(kernel.sweeper.worst().is_some_and(|it| it.all().count() >= MAX_SHOWN), "nothing was ranked");
        kernel.sweeper.rank(0, 1);
        // Two rounds through the table, after which nothing is left to do.
        for _ in 0..2 * (FLOWS as usize).div_ceil(MAX_FLUSHED) {
            kernel.sweep()?;
        }
        idle.push(timed(&mut kernel, Kernel::sweep)?);
    }
    let (made, refused) = counted(&kernel);
    ensure!(
        made == u64::from(FLOWS) && refused == 0,
        "{made} flows were made and {refused} packets refused: the figures are of something else"
    );
    let sent = Figure::of(sent)?;
    report.print_as("a million flows, of which each has sent", "ms", &sent);
    let ranked = Figure::of(ranked)?;
    report.print_as("the same, and the worst of them are found", "ms", &ranked);
    let all = Figure::of(all)?;
    report.print_as("a million flows, all of them at once", "ms", &all);
    let idle = Figure::of(idle)?;
    report.print_as("a million flows that are idle", "ms", &idle);
    println!(
        "\nA sweep of a million flows that have all sent takes {:.0} ms (50 are asked for) and adds up what {MAX_FLUSHED} of them sent, {:.0} % of \
         what it takes for all. To find the worst {MAX_SHOWN} takes {:.2} x that.",
        sent.median,
        100.0 * sent.median / all.median,
        ranked.median / sent.median,
    );
    Ok(())
}

/// The programs, with room for all flows.
pub(crate) fn with_room() -> Result<Kernel> {
    let rules = Rules { rate_limit: 100_000_000, ..Rules::UNLIMITED };
    let settings = LoadOptions { rules, emit: Emit::NOTHING, max_flows: MAX_FLOWS, ..LoadOptions::DEFAULT };
    kernel::watching_loopback(&settings)
}

/// The CPU time of a sweep, in ms.
fn timed(kernel: &mut Kernel, sweep: fn(&mut Kernel) -> Result<(), pping::kernel::Error>) -> Result<f64> {
    let before = cpu_time()?;
    sweep(kernel)?;
    Ok(cpu_time()?.saturating_sub(before).as_secs_f64() * 1e3)
}

/// Sends a packet of each flow, and its answer if wanted.
pub(crate) fn send(kernel: &Kernel, and_answers: bool) -> Result<()> {
    const SOURCE: usize = 26;
    const DESTINATION: usize = 30;
    let [mut packet, mut answer] = frames::volley(0);
    for number in 0..FLOWS {
        let client = ((20 << 24) + number).to_be_bytes();
        packet[SOURCE..][..4].copy_from_slice(&client);
        measure::run((&kernel.programs, "pping_egress"), &packet, 1)?;
        if and_answers {
            answer[DESTINATION..][..4].copy_from_slice(&client);
            measure::run((&kernel.programs, "pping_ingress"), &answer, 1)?;
        }
    }
    Ok(())
}

/// The number of flows that were made, and of packets that were refused a flow.
fn counted(kernel: &Kernel) -> (u64, u64) {
    let counters = kernel.counters.sum(0);
    (counters.entries_made[0], counters.untracked[Untracked::MapFull as usize])
}
