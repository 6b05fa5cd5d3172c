//! Measures what `--residence` costs a packet. A router forwards through a queue, and pping watches it with and without
//! the option in turn, first without groups, then with groups.
//!
//! The queue is a token bucket with more tokens than packets need, so no packet waits. No packet bypasses the queue
//! either: each is enqueued and dequeued, and one in 64 is followed.

use std::thread;

use anyhow::{Result, ensure};
use pping_lab::run;

use crate::{
    exchanges::Connections,
    forwarding::{Route, Router, WATCHED},
    measure::Figure,
    report::Report,
    watcher::{self, Watcher},
};

/// How often pping is started in each configuration.
const TURNS: u32 = 9;

/// Measurements after each start, of which the median counts.
const ROUNDS: u32 = 15;

/// Concurrent connections.
const FLOWS: u32 = 8;
const CONNECTIONS: Connections =
    Connections { flows: FLOWS, is_v6: false, is_by_clock: false, is_opening: false };

/// Measures pping with and without `--residence`.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let cpus = thread::available_parallelism()?.get();
    ensure!(cpus > 1, "one core routes and another one watches: this machine has one");
    let mut router = Router::new()?;
    let mut tc = router.namespace.command("tc");
    let bucket = format!("qdisc replace dev {WATCHED} root tbf rate 100gbit burst 10mb limit 10mb");
    run(tc.args(bucket.split(' ')))?;
    println!(
        "\na router's one core forwards packets of {FLOWS} flows by a queue; ns per packet, {TURNS} starts of each in turn\n"
    );
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");
    let fixed = format!("taskset --cpu-list 0 {} -v -i {WATCHED} --format none", watcher::pping()?.display());
    let mut turn = |options: &str| {
        let command = Watcher::Command(format!("{fixed}{options}"));
        let watching = command.watch(&router.namespace, WATCHED, &mut router.traffic)?;
        // The first round opens the flows, and warms up.
        let opening = Connections { is_opening: true, ..CONNECTIONS };
        router.forward(Route::Watched, opening, cpus - 1)?;
        let rounds = (0..ROUNDS).map(|_| router.forward(Route::Watched, CONNECTIONS, cpus - 1));
        let rounds = rounds.collect::<Result<Vec<_>>>()?;
        watching.stop(&router.namespace)?;
        anyhow::Ok(Figure::of(rounds)?.median)
    };
    for (what, options) in [("watched", ""), ("watched by group", " --group-by /24,/48")] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            without.push(turn(options)?);
            with.push(turn(&format!("{options} --residence"))?);
        }
        let more = with.iter().zip(&without).map(|(with, without)| with - without);
        let more = Figure::of(more)?;
        let ratio = Figure::of(with.iter().zip(&without).map(|(with, without)| 100.0 * with / without))?;
        report.print(what, &Figure::of(without)?);
        report.print(&format!("{what}, with --residence"), &Figure::of(with)?);
        report.print("more", &more);
        report.print_as("%, with against without", "%", &ratio);
    }
    Ok(())
}
