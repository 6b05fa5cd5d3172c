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
            "Time that recorded TCP segments took from ingress at another watched interface to egress at this one",
        ),
        Part::Queue => (
            "pping_queue_seconds",
            "Time that followed packets spent in the queue of the root qdisc of this interface",
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
        let mut measured = times.iter().filter(|it| it.times.is_measured(part)).peekable();
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
    if !times.iter().any(|it| it.times.is_measured(Part::Queue)) {
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
            "Followed packets without a time in the queue of the root qdisc, by reason",
            &|queue| vec![(Some("dropped"), queue.dropped), (Some("replaced"), queue.replaced)],
        ),
    ]
}
