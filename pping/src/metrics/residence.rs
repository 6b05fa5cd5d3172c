//! Residence times, as histograms of each interface.

use std::time::SystemTime;

use pping_common::abi::{Part, Residence};

use super::{
    exposition::{Exposition, Kind, MetricFamily},
    family::IntegerFamily,
    histogram::RttHistogram,
    labels::Labels,
};
use crate::residence::InterfaceTimes;

/// The values of a counter, with their reasons.
type Series = Vec<(Option<&'static str>, u64)>;

/// Returns the name and help of a part's histogram.
pub(super) const fn histogram(part: Part) -> (&'static str, &'static str) {
    match part {
        Part::Forwarding => (
            "pping_forwarding_seconds",
            "Time of recorded TCP segments from the ingress hook of another watched interface to the egress hook of this one",
        ),
        Part::Queue => (
            "pping_queue_seconds",
            "Time of followed packets from the enqueue to the dequeue of the root qdisc of this interface",
        ),
    }
}

/// Writes the histograms; nothing without `--residence`. Counting began at `since`.
pub(super) fn write(page: &mut dyn Exposition, times: &[InterfaceTimes], since: SystemTime) {
    if times.is_empty() {
        return;
    }
    for part in Part::ALL {
        let (name, help) = histogram(part);
        let mut measured = times.iter().filter(|it| it.times.has(part)).peekable();
        if measured.peek().is_none() {
            continue;
        }
        page.family(&MetricFamily { name, unit: Some("seconds"), kind: Kind::Histogram, help });
        for InterfaceTimes { interface, times, .. } in measured {
            let Residence { bins, sum, .. } = times.part(part);
            let labels = Labels::new(&[("interface", interface)]);
            page.histogram(&labels, &RttHistogram::of(since, bins, u128::from(*sum)));
        }
    }
}

/// Returns the counters of followed packets, and of those that were lost.
pub(super) fn families(times: &[InterfaceTimes]) -> Vec<IntegerFamily> {
    if !times.iter().any(|it| it.times.has(Part::Queue)) {
        return Vec::new();
    }
    let counter = |name, help, series: &dyn Fn(&Residence) -> Series| {
        let of = |InterfaceTimes { interface, times, .. }: &InterfaceTimes| {
            let interface = ("interface", interface.to_string());
            let values = series(times.part(Part::Queue)).into_iter().map(move |(reason, value)| {
                let reason = reason.map(|reason| ("reason", reason.to_owned()));
                (std::iter::once(interface.clone()).chain(reason).collect::<Vec<_>>(), value)
            });
            values.collect::<Vec<_>>()
        };
        IntegerFamily { name, help, kind: Kind::Counter, series: times.iter().flat_map(of).collect() }
    };
    vec![
        counter(
            "pping_queue_followed_packets",
            "Packets that were followed into the queue of the root qdisc, one in --residence-every",
            &|queue| vec![(None, queue.followed)],
        ),
        counter(
            "pping_queue_lost_packets",
            "Packets that were followed into the queue of the root qdisc and have no time, by reason",
            &|queue| vec![(Some("dropped"), queue.dropped), (Some("replaced"), queue.replaced)],
        ),
    ]
}
