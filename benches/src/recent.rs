//! Measures what the recent history costs, by the number of groups: keeping 15 minutes for people to look at, and answering them.

use std::{hint::black_box, process, time::Instant};

use anyhow::Result;
use pping::recent::{Column, MEMORY, Query, RecentHistory, SeriesQuery};
use pping_common::limits::SECOND;

use crate::{measure::Figure, memory::Resident, networks::slices, report::Report};

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
    GROUPS.into_iter().try_for_each(|groups| one(groups, report))
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
