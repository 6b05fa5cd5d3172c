//! Measures what the recent history costs, by the number of groups: keeping 15 minutes for people to look at, and answering them.

use std::{
    hint::black_box,
    process,
    time::{Duration, Instant},
};

use anyhow::Result;
use pping::{
    config::Aggregation,
    groups::roll_up,
    metrics::Metrics,
    recent::{Column, MEMORY, Query, RecentHistory, SeriesQuery},
    records::Reporter,
};
use pping_common::limits::SECOND;

use crate::{
    measure::Figure,
    memory::Resident,
    networks::{slices, slices_in_tree},
    report::Report,
};

/// The numbers of groups.
const GROUPS: [u32; 3] = [100, 1_000, 16_384];

/// How much is kept, s.
const KEPT: u64 = 15 * 60;

/// How many answers of each kind are measured. Ten times as many seconds are measured, of which each tenth ends a cell.
const ROUNDS: u64 = 41;

/// A time at the start of a cell, ns.
const START: u64 = 1_800_000_000 * SECOND;

/// Measures the recent history's work for a second once it is full, and its answers.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    println!(
        "\nwhat people look at, by the number of groups (one series each, samples in every second); ms, median of {ROUNDS}"
    );
    println!(
        "groups  a second  with its cell's end  share of a core  summary  100 groups  history  one group    MiB"
    );
    GROUPS.into_iter().try_for_each(|groups| one(groups, report))?;
    println!("\na tree of three levels, once a second; ms, median of {ROUNDS}");
    println!(
        "groups  nodes  roll up  the groups: history + metrics + records  with nodes  roll up and nodes  share of a core"
    );
    GROUPS.into_iter().try_for_each(|groups| tree(groups, report))
}

/// Measures what the levels of a tree add to the work of a second.
fn tree(groups: u32, report: &mut Report) -> Result<()> {
    let kinds: Vec<_> = (0..10).map(|second| slices_in_tree(groups, second)).collect();
    let (recent, metrics) = (RecentHistory::new(MEMORY), Metrics::new(100, Duration::from_mins(10)));
    let interval = Some(Duration::from_secs(10));
    let mut reporter = Reporter::new(&Aggregation { interval, ..Aggregation::NONE }, 10, START)?;
    let mut second = 0;
    let mut pass = |has_tree: bool| {
        let slices = &kinds[(second % 10) as usize];
        let at = START + second * SECOND;
        second += 1;
        let begin = Instant::now();
        let nodes = if has_tree { roll_up(slices) } else { Vec::new() };
        let rolled_up = begin.elapsed().as_secs_f64() * 1e3;
        // The agent has room for both in one list.
        let all = [&slices[..], &nodes].concat();
        let begin = Instant::now();
        recent.add(&all, at);
        metrics.add(&all, Instant::now());
        for (name, counts) in &all {
            reporter.take(name, counts);
        }
        reporter.tick(at).map(|records| black_box(records.len()))?;
        Ok::<_, anyhow::Error>((nodes.len(), rolled_up, begin.elapsed().as_secs_f64() * 1e3))
    };
    let mut measured = |has_tree| -> Result<(usize, Figure, Figure, f64)> {
        for _ in 0..30 {
            pass(has_tree)?;
        }
        let passed = (0..10 * ROUNDS).map(|_| pass(has_tree)).collect::<Result<Vec<_>>>()?;
        let mean = passed.iter().map(|(_, up, rest)| up + rest).sum::<f64>() / passed.len() as f64;
        let nodes = passed.first().map_or(0, |(nodes, ..)| *nodes);
        let [up, rest] = [|it: &(usize, f64, f64)| it.1, |it: &(usize, f64, f64)| it.2]
            .map(|of| Figure::of(passed.iter().map(of)));
        Ok((nodes, up?, rest?, mean))
    };
    let (_, _, without, mean_without) = measured(false)?;
    let (nodes, up, with, mean_with) = measured(true)?;
    report.take(format!("a tree of three levels, {groups} groups: rolling up"), "ms", &up);
    let added = mean_with - mean_without;
    report.take_one(
        format!("a tree of three levels, {groups} groups: share of a core"),
        "%",
        added / 10.0,
    )?;
    println!(
        "{groups:>6} {nodes:>6} {:>8.3} {:>43.3} {:>11.3} {added:>18.3} {:>15.3}%",
        up.median,
        without.median,
        with.median,
        added / 10.0
    );
    Ok(())
}

fn one(groups: u32, report: &mut Report) -> Result<()> {
    let kinds: Vec<_> = (0..10).map(|second| slices(groups, second)).collect();
    let before = Resident::of(process::id())?.own;
    let recent = RecentHistory::new(MEMORY);
    let mut second = 0;
    let mut pass = || {
        let begin = Instant::now();
        recent.add(&kinds[(second % 10) as usize], START + second * SECOND);
        second += 1;
        begin.elapsed().as_secs_f64() * 1e3
    };
    for _ in 0..KEPT {
        pass();
    }
    let kept = Resident::of(process::id())?.own.saturating_sub(before) as f64 / f64::from(1 << 20);
    let passed: Vec<f64> = (0..10 * ROUNDS).map(|_| pass()).collect();
    let ends = passed.iter().step_by(10).copied();
    let mean = passed.iter().sum::<f64>() / passed.len() as f64;
    let figures = [
        ("a second", Figure::of(passed.iter().copied())?),
        ("a second that ends a cell", Figure::of(ends)?),
        ("the summary", time(|| black_box(recent.summary()).sequence)?),
        ("100 groups", time(|| black_box(recent.groups(&busiest())).sequence)?),
        ("the history of interfaces", time(|| black_box(recent.history(&SeriesQuery::default())).sequence)?),
        ("one group", {
            let id = recent.groups(&busiest()).groups[0].id.clone();
            time(|| black_box(recent.group(&id)).map_or(0, |it| it.history.sequence))?
        }),
    ];
    for (name, figure) in &figures {
        report.take(format!("what people look at, {groups} groups: {name}"), "ms", figure);
    }
    report.take_one(format!("what people look at, {groups} groups: share of a core"), "%", mean / 10.0)?;
    report.take_one(format!("what people look at, {groups} groups: memory"), "MiB", kept)?;
    let [second, end, summary, some, history, group] = figures.map(|(_, figure)| figure.median);
    println!(
        "{groups:>6} {second:>9.3} {end:>20.3} {:>15.3}% {summary:>8.3} {some:>11.2} {history:>8.2} {group:>10.2} {kept:>6.1}",
        mean / 10.0
    );
    Ok(())
}

fn busiest() -> Query {
    Query { sort: Some(Column::P95), limit: 100, ..Query::default() }
}

fn time(mut answer: impl FnMut() -> u64) -> Result<Figure> {
    Figure::of((0..ROUNDS).map(|_| {
        let begin = Instant::now();
        black_box(answer());
        begin.elapsed().as_secs_f64() * 1e3
    }))
}
