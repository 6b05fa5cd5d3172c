//! The time that packets take in the kernel programs: a summary of the timed packets.
//!
//! The summary has no quantiles, and there is no histogram: the share of a core follows from the mean, and one packet
//! in 65,536 is too few to show the longest times.

use pping_common::abi::{PacketProgram, Timed};

use super::{
    exposition::Exposition,
    labels::FormattedLabels,
    metric::{IntegerFamily, Kind, Labels, Metric},
};
use crate::snapshot::Snapshot;

pub(super) static PACKET_COST: Metric = Metric::new(
    Kind::Summary,
    "pping_packet_cost",
    "s",
    "Time that pping's kernel programs take for a packet; one packet in 65536 is timed",
);

/// The two halves of the summary, whose earlier values exports take off.
static COUNT: Metric = Metric::counter("pping_packet_cost_count", "", "");
static SUM: Metric = Metric::counter("pping_packet_cost_sum", "", "");

type Series = (Labels, Timed);

/// Returns the timed packets of each interface and program.
fn series(snapshot: &Snapshot) -> impl Iterator<Item = Series> {
    snapshot.interfaces.iter().flat_map(|interface| {
        PacketProgram::ALL.into_iter().map(|program| {
            let labels =
                vec![("interface", interface.name.to_string().into()), ("program", program.name().into())];
            (labels, interface.counters.timed_by(program))
        })
    })
}

/// Writes the summary.
pub(super) fn write(page: &mut dyn Exposition, snapshot: &Snapshot) {
    page.family(&PACKET_COST);
    for (labels, Timed { packets, ns }) in series(snapshot) {
        page.summary(&FormattedLabels::from(&labels), packets, ns);
    }
}

/// Returns the number of timed packets, and their times in ns, as two counters with the same series.
pub(super) fn counters(snapshot: &Snapshot) -> [IntegerFamily; 2] {
    let counter = |metric, value: fn(Timed) -> u64| IntegerFamily {
        metric,
        series: series(snapshot).map(|(labels, timed)| (labels, value(timed))).collect(),
    };
    [counter(&COUNT, |timed| timed.packets), counter(&SUM, |timed| timed.ns)]
}
