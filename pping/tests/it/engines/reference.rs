//! The answers worked out from what `pping history` prints, which the engines' answers are compared with.

use std::{collections::BTreeMap, path::Path, process::Command};

use pping_common::hist;
use serde_json::{Value, json};

use super::{PPING, moment, weeks::DAY};
use crate::clickhouse::Parameters;

const HOUR: u64 = 3600;

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// What tells series apart: group, interface, direction, side, method.
type Series = [Option<String>; 5];

/// What one box measured of a series in an interval.
#[derive(Clone)]
struct Cell {
    host: Option<String>,
    series: Series,
    start: u64,
    end: u64,
    measured: Value,
}

/// What some cells have together.
#[derive(Default)]
struct Sum {
    bins: BTreeMap<u64, u64>,
    /// The shortest and the longest RTT, ns.
    range: Option<(u64, u64)>,
}

/// All intervals of some histories.
pub(crate) struct Reference(Vec<Cell>);

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn ms(ns: u64) -> Value {
    json!((ns as f64 / 1e3).round() / 1e3)
}

fn rounded(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

impl Cell {
    fn is_of_hosts(&self) -> bool {
        self.series[4].as_deref() != Some("dns")
    }

    fn count(&self) -> u64 {
        self.measured["rtt"]["count"].as_u64().unwrap_or(0)
    }
}

impl Sum {
    fn of(cells: &[&Cell]) -> Self {
        let mut sum = Self::default();
        for cell in cells {
            for bin in cell.measured["histogram"].as_array().unwrap() {
                *sum.bins.entry(number(&bin[0])).or_default() += number(&bin[1]);
            }
            if cell.count() > 0 {
                let (min, max) = (number(&cell.measured["rtt"]["min"]), number(&cell.measured["rtt"]["max"]));
                let (shortest, longest) = sum.range.unwrap_or((min, max));
                sum.range = Some((shortest.min(min), longest.max(max)));
            }
        }
        sum
    }

    fn samples(&self) -> u64 {
        self.bins.values().sum()
    }

    fn quantile(&self, part: f64) -> Value {
        let Some((min, max)) = self.range else { return Value::Null };
        let rank = (part * self.samples() as f64).ceil() as u64;
        let mut seen = 0;
        let reaches = |(_, samples): &(&u64, &u64)| {
            seen += **samples;
            seen >= rank
        };
        let (upper, _) = self.bins.iter().find(reaches).unwrap();
        ms(hist::middle(hist::bin(*upper)).clamp(min, max))
    }
}

fn wanted(cells: &[Cell], is_wanted: impl Fn(&Cell) -> bool) -> Vec<&Cell> {
    cells.iter().filter(|cell| is_wanted(cell)).collect()
}

fn all(cells: &[Cell]) -> Vec<&Cell> {
    wanted(cells, |_| true)
}

/// Cells by what `key` says.
fn by<K: Ord>(cells: Vec<Cell>, key: impl Fn(&Cell) -> K) -> BTreeMap<K, Vec<Cell>> {
    let mut groups: BTreeMap<K, Vec<Cell>> = BTreeMap::new();
    for cell in cells {
        groups.entry(key(&cell)).or_default().push(cell);
    }
    groups
}

fn highest_first(rows: &mut [Value], column: &str) {
    let value = |row: &Value| row[column].as_f64().unwrap();
    rows.sort_by(|one, other| value(other).total_cmp(&value(one)));
}

/// A row that begins with the names of a series.
fn row(names: &[(&str, &Option<String>)], values: Value) -> Value {
    let mut row = values;
    for (name, value) in names {
        row[*name] = json!(value);
    }
    row
}

fn named<'s>(
    group: &'s str,
    [label, interface, matched, side, _]: &'s Series,
) -> [(&'s str, &'s Option<String>); 4] {
    [(group, label), ("interface", interface), ("matched", matched), ("side", side)]
}

/// The intervals of `group` that `pping history` prints.
fn printed(directory: &Path, group: &str, step: &str, range: (u64, u64)) -> Value {
    let mut command = Command::new(PPING);
    command.args(["history", "--json", "--step", step, "--group", group, "--history"]).arg(directory);
    command.args(["--from", &range.0.to_string(), "--to", &range.1.to_string()]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

impl Reference {
    /// Reads the intervals of these groups in a range, seconds since the epoch, from the directory of each box.
    pub(crate) fn read(
        boxes: &[(Option<&str>, &Path)],
        groups: &[String],
        step: &str,
        range: (u64, u64),
    ) -> Self {
        let mut cells = Vec::new();
        for (host, directory) in boxes {
            for group in groups {
                let answer = printed(directory, group, step, range);
                let length = number(&answer["cell"]) / SECOND;
                for series in answer["series"].as_array().unwrap() {
                    let text = |name: &str| series[name].as_str().map(ToOwned::to_owned);
                    let [interface, matched, side, method] =
                        ["interface", "matched", "side", "method"].map(text);
                    for cell in series["cells"].as_array().unwrap() {
                        let (start, measured) = (number(&cell["time"]) / SECOND, cell.clone());
                        let [host, group] = [*host, Some(group.as_str())].map(|it| it.map(ToOwned::to_owned));
                        let series =
                            [group, interface.clone(), matched.clone(), side.clone(), method.clone()];
                        cells.push(Cell { host, series, start, end: start + length, measured });
                    }
                }
            }
        }
        Self(cells)
    }

    /// The intervals that begin in a range.
    fn cells(&self, from: u64, until: u64, is_wanted: impl Fn(&Cell) -> bool) -> Vec<Cell> {
        let is_in = |cell: &&Cell| cell.start >= from && cell.start < until && is_wanted(cell);
        let cells: Vec<Cell> = self.0.iter().filter(is_in).cloned().collect();
        assert!(!cells.is_empty(), "nothing was measured from {from} until {until}");
        cells
    }

    pub(super) fn worst_prefixes(&self, asked: &Parameters<'_>, offset: u64) -> Vec<Value> {
        let evening = moment(&format!("{} 18:00:00", asked["night"])) - offset;
        let until = evening + HOUR * asked["hours"].parse::<u64>().unwrap();
        let cells = self.cells(evening - 7 * DAY, until, Cell::is_of_hosts);
        let mut rows = Vec::new();
        for (series, cells) in by(cells, |cell| cell.series.clone()) {
            let (week, night) =
                (Sum::of(&all(&cells)), Sum::of(&wanted(&cells, |cell| cell.start >= evening)));
            if night.samples() >= asked["least"].parse().unwrap() {
                let [baseline, p95] = [ms(week.range.unwrap().0), night.quantile(0.95)];
                let inflation = rounded(p95.as_f64().unwrap() - baseline.as_f64().unwrap());
                let values = json!({"method": series[4], "samples": night.samples(), "baseline_ms": baseline,
                    "p50_ms": night.quantile(0.5), "p95_ms": p95, "p99_ms": night.quantile(0.99), "inflation_ms": inflation});
                rows.push(row(&named("group", &series), values));
            }
        }
        highest_first(&mut rows, "p95_ms");
        rows.truncate(20);
        rows
    }

    pub(super) fn month_of_customer(&self, asked: &Parameters<'_>) -> Vec<Value> {
        let first = moment(&format!("{}-01 00:00:00", &asked["month"][..7]));
        let cells = self.cells(first, first + 31 * DAY, |cell| {
            let is_in_month = super::text(cell.start)[..7] == asked["month"][..7];
            is_in_month && cell.is_of_hosts() && cell.series[0].as_deref() == Some(&asked["customer"])
        });
        let mut rows = Vec::new();
        for ((day, series), cells) in by(cells, |cell| (cell.start / DAY, cell.series.clone())) {
            let sum = Sum::of(&all(&cells));
            let total =
                |way: &str, what: &str| cells.iter().map(|it| number(&it.measured[way][what])).sum::<u64>();
            let (to, from) = if series[3].as_deref() == Some("outside") {
                ("received", "sent")
            } else {
                ("sent", "received")
            };
            let retransmitted =
                100.0 * total("sent", "retransmissions") as f64 / total("sent", "packets").max(1) as f64;
            let values = json!({"day": super::text(day * DAY)[..10], "method": series[4], "samples": sum.samples(),
                "p50_ms": sum.quantile(0.5), "p95_ms": sum.quantile(0.95), "p99_ms": sum.quantile(0.99),
                "bytes_to_customer": total(to, "bytes"), "bytes_from_customer": total(from, "bytes"),
                "retransmitted_percent": (retransmitted * 100.0).round() / 100.0});
            rows.push(row(&named("group", &series)[1..], values));
        }
        rows
    }

    pub(super) fn before_and_after(&self, asked: &Parameters<'_>) -> Vec<Value> {
        let (change, length) = (moment(&asked["change"]), HOUR * asked["hours"].parse::<u64>().unwrap());
        let cells = self.cells(change - length, change + length, Cell::is_of_hosts);
        let least = asked["least"].parse().unwrap();
        let mut rows = Vec::new();
        for (series, cells) in by(cells, |cell| cell.series.clone()) {
            let before = Sum::of(&wanted(&cells, |cell| cell.end <= change));
            let after = Sum::of(&wanted(&cells, |cell| cell.start >= change));
            if before.samples().min(after.samples()) >= least {
                let [from, to] = [&before, &after].map(|sum| sum.quantile(0.95));
                let values = json!({"method": series[4], "samples_before": before.samples(),
                    "samples_after": after.samples(), "p50_before_ms": before.quantile(0.5),
                    "p50_after_ms": after.quantile(0.5), "p95_before_ms": from, "p95_after_ms": to,
                    "p95_change_ms": rounded(to.as_f64().unwrap() - from.as_f64().unwrap())});
                rows.push(row(&named("group", &series), values));
            }
        }
        highest_first(&mut rows, "p95_change_ms");
        rows
    }

    pub(super) fn failing_resolvers(&self, asked: &Parameters<'_>) -> Vec<Value> {
        let (from, until) = (moment(&asked["from"]), moment(&asked["until"]));
        let mut cells = self.cells(from, until, |cell| !cell.is_of_hosts() && cell.count() > 0);
        cells.sort_by_key(|cell| cell.start);
        let mut rows = Vec::new();
        for (series, cells) in by(cells, |cell| cell.series.clone()) {
            let sum = Sum::of(&all(&cells));
            let slow: u64 = sum.bins.range(1_000_000_001..).map(|(_, samples)| samples).sum();
            let ends = std::iter::once(from).chain(cells.iter().map(|cell| cell.end));
            let starts = cells.iter().map(|cell| cell.start).chain([until]);
            let silence = ends.zip(starts).map(|(end, start)| start.saturating_sub(end)).max();
            let percent = (10_000.0 * slow as f64 / sum.samples() as f64).round() / 100.0;
            let values = json!({"answers": sum.samples(), "p50_ms": sum.quantile(0.5), "p95_ms": sum.quantile(0.95),
                "slow_percent": percent, "longest_silence_s": silence});
            rows.push(row(&named("resolver", &series), values));
        }
        highest_first(&mut rows, "slow_percent");
        highest_first(&mut rows, "longest_silence_s");
        rows
    }

    pub(super) fn start_of_inflation(&self, asked: &Parameters<'_>) -> Vec<Value> {
        let (from, until) = (moment(&asked["from"]), moment(&asked["until"]));
        let cells = self.cells(from, until, |_| true);
        let (least, times): (u64, f64) = (asked["least"].parse().unwrap(), asked["times"].parse().unwrap());
        let mut rows = Vec::new();
        for ((host, series), mut cells) in by(cells, |cell| (cell.host.clone(), cell.series.clone())) {
            let Some((baseline, _)) = Sum::of(&all(&cells)).range else { continue };
            let median = |cell: &Cell| cell.measured["rtt"]["p50"].as_u64().unwrap_or(0);
            cells.retain(|cell| cell.count() >= least && median(cell) as f64 >= times * baseline as f64);
            let Some(since) = cells.iter().map(|cell| cell.start).min() else { continue };
            let highest = cells.iter().map(median).max().unwrap();
            let values = json!({"since": super::text(since), "host": host, "method": series[4],
                "intervals": cells.len(), "baseline_ms": ms(baseline), "highest_p50_ms": ms(highest)});
            rows.push(row(&named("group", &series), values));
        }
        let key = |row: &Value| {
            let text = |name: &str| row[name].as_str().unwrap_or("\u{10ffff}").to_owned();
            ["host", "interface", "matched", "side", "group", "method"].map(text)
        };
        rows.sort_by_key(key);
        highest_first(&mut rows, "highest_p50_ms");
        rows.sort_by_key(|row| row["since"].as_str().unwrap().to_owned());
        rows
    }
}
