//! Histories of days, which pping's own writer makes of made-up round-trip times: no test can measure for weeks.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use pping::{
    config::{HistoryKeep, HistoryLimits},
    groups::{GroupName, SeriesName},
    history::{HistoryWriter, Settings},
    quality,
};
use pping_common::{group::Side, limits::SECOND, method::Method, parse::Direction, series::SeriesCounts};

/// 2026-11-03 00:00 UTC, a Tuesday.
pub(super) const BEGIN: u64 = 1_793_664_000;

pub(super) const HOUR: u64 = 3600;
pub(super) const DAY: u64 = 24 * HOUR;

/// The end of the last hour. Its day is not over, so files of hours and of days are side by side.
pub(super) const END: u64 = BEGIN + 8 * DAY + 19 * HOUR;

/// The time between two minutes that are measured: the others would only make the test slower.
const PAUSE: u64 = HOUR;

/// The number of customers.
const CUSTOMERS: u64 = 6;

/// A resolver that falls silent, and a slow one.
const RESOLVERS: [(&str, u64); 2] = [("192.0.2.53", 2_000_000), ("198.51.100.53", 700_000_000)];

/// When the link of wan0 is changed: in the middle of an interval of five minutes.
pub(super) const CHANGE: u64 = BEGIN + 8 * DAY + 10 * HOUR + 120;

/// When the first resolver does not answer.
const SILENCE: std::ops::Range<u64> = BEGIN + 8 * DAY + 3 * HOUR..BEGIN + 8 * DAY + 5 * HOUR;

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A series of `customer`. From the fifth day on the groups file has a column with the site.
fn name(customer: &str, place: (&str, Direction, Side), method: Method, time: u64) -> SeriesName {
    let (interface, matched, side) = place;
    let columns = if time >= BEGIN + 4 * DAY { vec![("site".into(), "north".into())] } else { Vec::new() };
    let group = Arc::new(GroupName { columns, ..GroupName::named(customer) });
    SeriesName { interface: Some(interface.into()), method, matched: Some(matched), side: Some(side), group }
}

/// Round-trip times around `base`, with a tail, and traffic.
fn counts(numbers: &mut Numbers, base: u64, samples: u64) -> SeriesCounts {
    let mut counts = SeriesCounts::EMPTY;
    for _ in 0..samples {
        counts.sample(base + numbers.below(base) * numbers.below(8) * numbers.below(8) / 64, 0);
    }
    counts.sent.packets = 10 + numbers.below(100);
    counts.sent.bytes = counts.sent.packets * 900;
    counts.sent.retransmissions = numbers.below(3);
    counts.received.packets = 10 + numbers.below(50);
    counts.received.bytes = counts.received.packets * 80;
    counts
}

/// What a minute measured.
fn minute(numbers: &mut Numbers, time: u64) -> Vec<(SeriesName, SeriesCounts)> {
    const LAN: (&str, Direction, Side) = ("lan0", Direction::Egress, Side::Inside);
    const WAN: (&str, Direction, Side) = ("wan0", Direction::Ingress, Side::Outside);
    let mut slices = Vec::new();
    let is_evening = (18..23).contains(&(time % DAY / HOUR));
    for customer in 1..=CUSTOMERS {
        let label = format!("customer-{customer}");
        let own = 3_000_000 * customer;
        // The line of customer-3 is full in the evening, and wan0 is slower after the change.
        let queue = if customer == 3 && is_evening { 90_000_000 } else { 0 };
        let detour = if time >= CHANGE { 15_000_000 } else { 0 };
        // Scores take a hundred samples.
        slices.push((name(&label, LAN, Method::TcpTs, time), counts(numbers, own + queue, 120)));
        let samples = numbers.below(4);
        slices.push((
            name(&label, WAN, Method::TcpTs, time),
            counts(numbers, 9_000_000 + own + detour, samples),
        ));
        if customer % 2 == 0 {
            slices.push((name(&label, WAN, Method::QuicSpin, time), counts(numbers, 9_000_000 + own, 2)));
        }
    }
    for (resolver, base) in RESOLVERS {
        if resolver != RESOLVERS[0].0 || !SILENCE.contains(&time) {
            slices.push((name(resolver, WAN, Method::Dns, time), counts(numbers, base, 3)));
        }
    }
    // Shorter than the lowest bin, and longer than the highest one.
    let mut extremes = SeriesCounts::EMPTY;
    for rtt in [300, 700, 900, 70_000_000_000, 90_000_000_000] {
        extremes.sample(rtt, 0);
    }
    slices.push((name("extremes", LAN, Method::TcpSeq, time), extremes));
    slices
}

fn start(directory: &Path, profiles: Option<&Path>, time: u64) -> HistoryWriter {
    let keep = HistoryKeep([3, 60, 730].map(|days| Duration::from_secs(days * DAY)));
    let limits = HistoryLimits { disk: 1 << 30, keep };
    let settings = Settings { directory: directory.to_owned(), limits };
    HistoryWriter::start(settings, quality::load(profiles).unwrap(), time * SECOND).unwrap()
}

/// The labels of all groups.
pub(super) fn groups() -> Vec<String> {
    let customers = (1..=CUSTOMERS).map(|customer| format!("customer-{customer}"));
    customers
        .chain(RESOLVERS.map(|(resolver, _)| resolver.to_owned()))
        .chain(["extremes".to_owned()])
        .collect()
}

/// Writes the history of a box. Its round-trip times are those of the `seed`. From the seventh day on there is another profile of
/// quality.
pub(super) fn write(directory: &Path, seed: u64) {
    let own = tempfile::NamedTempFile::new().unwrap();
    let profile = "[[profile]]\nname = \"radio\"\nlatency = [{ percentile = 95, optimal = \"20ms\", unacceptable = \"400ms\" }]\n";
    std::fs::write(own.path(), profile).unwrap();
    let mut numbers = Numbers(seed);
    let mut writer = start(directory, None, BEGIN);
    // The minute at the end lets the hour before it be merged.
    for time in (BEGIN..=END).step_by(PAUSE as usize) {
        if time == BEGIN + 6 * DAY {
            writer.stop();
            writer = start(directory, Some(own.path()), time);
        }
        let slices = minute(&mut numbers, time);
        writer.tick(time * SECOND);
        let before = writer.state().rows.load(Ordering::Relaxed);
        writer.add(&slices);
        writer.tick((time + 60) * SECOND);
        let is_written = |writer: &HistoryWriter| {
            assert_eq!(writer.state().lost_rows.load(Ordering::Relaxed), 0, "rows are lost");
            writer.state().rows.load(Ordering::Relaxed) >= before + slices.len() as u64
        };
        while !is_written(&writer) {
            thread::sleep(Duration::from_micros(200));
        }
    }
    writer.stop();
}
