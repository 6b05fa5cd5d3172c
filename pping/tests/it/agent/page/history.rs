//! Makes the history of a fortnight, at full speed.

use std::{path::Path, sync::atomic::Ordering, time::Duration};

use pping::{
    config::{HistoryKeep, HistoryLimits},
    groups::{GroupName, SeriesName},
    history::{HistoryWriter, Settings},
    quality,
};
use pping_common::{limits::SECOND, method::Method, parse::Direction, series::SeriesCounts};

use crate::agent::monitor::wait_until;

const MS: u64 = 1_000_000;
pub(super) const MINUTE: u64 = 60;
pub(super) const HOUR: u64 = 3600;
pub(super) const DAY: u64 = 24 * HOUR;
pub(super) const WEEK: u64 = 7 * DAY;

/// The groups of the history: the first is the slowest.
pub(super) const GROUPS: [&str; 3] = ["customer-slow", "customer-01", "customer-02"];

/// The time without samples before the end, s.
pub(super) const GAP: [u64; 2] = [10 * HOUR, 7 * HOUR];

/// Writes what three groups had until `end`, s: the last day and that of a week before at intervals of five minutes, the last four
/// hours by the minute, and else once an hour. In the last day, RTTs are twice those of the week before. There is a gap in
/// the last day.
pub(super) fn write(directory: &Path, end: u64) {
    let keep = HistoryKeep([3, 60, 730].map(|days| Duration::from_secs(days * DAY)));
    let settings =
        Settings { directory: directory.to_owned(), limits: HistoryLimits { disk: 1 << 30, keep } };
    let mut at = end - 8 * DAY - 2 * HOUR;
    let mut writer = HistoryWriter::start(settings, quality::load(None).unwrap(), at * SECOND).unwrap();
    while at < end {
        let age = end - at;
        if !(GAP[1]..GAP[0]).contains(&age) {
            add_minute(&mut writer, at, if age <= 26 * HOUR { 20 } else { 10 });
        }
        let is_compared = age <= 26 * HOUR || age >= WEEK - HOUR;
        at += match (age <= 4 * HOUR, is_compared) {
            (true, _) => MINUTE,
            (_, true) => 5 * MINUTE,
            _ => HOUR,
        };
    }
    assert_eq!(writer.stop(), 0, "no row is lost");
}

/// Adds what all groups have in a minute, and waits until it is written.
fn add_minute(writer: &mut HistoryWriter, at: u64, rtt: u64) {
    writer.tick(at * SECOND);
    for (rank, label) in (1..).zip(GROUPS) {
        let factor = if rank == 1 { 5 } else { 1 };
        for (matched, part) in [(Direction::Ingress, 1), (Direction::Egress, 10)] {
            let mut counts = SeriesCounts::EMPTY;
            for sample in 0..6 + rank {
                counts.sample(factor * rtt * MS * (10 + sample) / 10 / part, 0);
            }
            counts.sent.packets = 100;
            counts.received.packets = 50;
            writer.add(&[(name(label, matched), counts)]);
        }
    }
    let written = writer.state().rows.load(Ordering::Relaxed) + 2 * GROUPS.len() as u64;
    writer.tick((at + MINUTE) * SECOND);
    wait_until("the minute is written", || writer.state().rows.load(Ordering::Relaxed) >= written);
}

fn name(label: &str, matched: Direction) -> SeriesName {
    SeriesName {
        interface: Some("wan0".into()),
        method: Method::TcpTs,
        matched: Some(matched),
        side: None,
        group: GroupName::named(label).into(),
    }
}
