//! Residence times, as histograms of each interface.

use std::time::SystemTime;

use pping_common::abi::{Part, Residence};

use super::{
    exposition::Exposition,
    histogram::RttHistogram,
    labels::FormattedLabels,
    metric::{Kind, Metric},
};
use crate::residence::InterfaceTimes;

static FORWARDING: Metric = Metric::new(
    Kind::Histogram,
    "pping_forwarding",
    "s",
    "Time that recorded TCP segments took from ingress at another watched interface to egress at this one",
);
static QUEUE: Metric = Metric::new(
    Kind::Histogram,
    "pping_queue",
    "s",
    "Time that followed packets spent in the queue of the root qdisc of this interface",
);

/// Returns the metric of a part.
pub(super) const fn histogram(part: Part) -> &'static Metric {
    match part {
        Part::Forwarding => &FORWARDING,
        Part::Queue => &QUEUE,
    }
}

/// Writes the histograms; nothing without `--residence`. Counting began at `since`.
pub(super) fn write(page: &mut dyn Exposition, times: &[InterfaceTimes], since: SystemTime) {
    if times.is_empty() {
        return;
    }
    for part in Part::ALL {
        let mut measured = times.iter().filter(|it| it.times.is_measured(part)).peekable();
        if measured.peek().is_none() {
            continue;
        }
        page.family(histogram(part));
        for InterfaceTimes { interface, times, .. } in measured {
            let Residence { bins, sum, .. } = times.part(part);
            let labels = FormattedLabels::new(&[("interface", interface)]);
            page.histogram(&labels, &RttHistogram::of(since, bins, u128::from(*sum)));
        }
    }
}
