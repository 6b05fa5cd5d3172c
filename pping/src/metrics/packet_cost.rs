//! The time that packets take in the kernel programs: a summary of the timed packets.
//!
//! The summary has no quantiles, and there is no histogram: the share of a core follows from the mean, and one packet
//! in 65,536 is too few to show the longest times.

use pping_common::abi::{PacketProgram, Timed};

use super::{
    exposition::{Exposition, Kind, MetricFamily},
    family::IntegerFamily,
    labels::Labels,
};
use crate::snapshot::Snapshot;

const HELP: &str = "Time that pping's kernel programs take for a packet; one packet in 65536 is timed";

/// The name in exports, which give the unit separately.
pub(super) const NAME: &str = "pping_packet_cost";

type Series = (Vec<(&'static str, String)>, Timed);

/// Returns the timed packets of each interface and program.
fn series(snapshot: &Snapshot) -> impl Iterator<Item = Series> {
    snapshot.interfaces.iter().flat_map(|interface| {
        PacketProgram::ALL.into_iter().map(|program| {
            let labels =
                vec![("interface", interface.name.to_string()), ("program", program.name().to_owned())];
            (labels, interface.counters.timed_by(program))
        })
    })
}

/// Writes the summary.
pub(super) fn write(page: &mut dyn Exposition, snapshot: &Snapshot) {
    let unit = Some("seconds");
    page.family(&MetricFamily { name: "pping_packet_cost_seconds", unit, kind: Kind::Summary, help: HELP });
    for (labels, Timed { packets, ns }) in series(snapshot) {
        let labels: Vec<_> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        page.summary(&Labels::new(&labels), packets, ns);
    }
}

/// Returns the number of timed packets, and their times in ns, as two counters with the same series.
pub(super) fn counters(snapshot: &Snapshot) -> [IntegerFamily; 2] {
    let counter = |name, value: fn(Timed) -> u64| IntegerFamily {
        name,
        help: HELP,
        kind: Kind::Counter,
        series: series(snapshot).map(|(labels, timed)| (labels, value(timed))).collect(),
    };
    [
        counter("pping_packet_cost_count", |timed| timed.packets),
        counter("pping_packet_cost_sum", |timed| timed.ns),
    ]
}
