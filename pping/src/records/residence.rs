//! The records of the time that packets spent in this host in an interval.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
#[cfg(test)]
use pping_common::hist::BINS;
use pping_common::{
    abi::{Part, Residence},
    series::SeriesCounts,
};
use serde::Serialize;

#[cfg(test)]
use super::schema;
#[cfg(test)]
use crate::schemas;
use crate::{
    aggregate::Distribution,
    groups::QueueName,
    residence::{self, InterfaceTimes, part_name},
};

/// Time that packets spent in this host in an interval (`--aggregate` with `--residence`). There is one record for each interface
/// and part, and for the queue also one for each group; none if no packet was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = schema::begin(Self::TYPE), transform = schema::with_values::<TimeQuantiles>))]
#[cfg_attr(test, schemars(transform = schema::by_group::<FollowedPackets>))]
pub struct ResidenceRecord {
    /// When the interval ended, ns since the Unix epoch.
    pub timestamp: u64,
    /// Length of the interval, ns.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub window: u64,
    /// Interface by which the packets left.
    #[cfg_attr(test, schemars(with = "schemas::InterfaceName"))]
    pub interface: Arc<str>,
    /// Label of the group whose packets the record covers. The record of the interface covers them too; it has no label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
    /// `forwarding`: from another watched interface to this one; `queue`: in the queue of the root qdisc.
    #[cfg_attr(test, schemars(with = "schemas::PartName"))]
    pub residence: &'static str,
    /// Number of measured times. If it is 0, the mean and the percentiles are absent.
    pub count: u64,
    /// The times; absent if there are none.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub times: Option<TimeQuantiles>,
    /// Bins that have times, in ascending order.
    #[cfg_attr(test, schemars(with = "Vec<schemas::Bin>", length(max = BINS)))]
    pub histogram: Vec<(u64, u64)>,
    /// The fate of the packets that were followed; absent in the record of a group.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub packets: Option<FollowedPackets>,
}

/// The fate of the packets that were followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FollowedPackets {
    /// Packets that were followed; absent in the record of a group.
    pub followed: u64,
    /// Followed packets that were dropped in the queue; absent in the record of a group.
    pub dropped: u64,
    /// Followed packets that pping lost track of, because another packet took their entry or their memory; absent in the record
    /// of a group.
    pub replaced: u64,
}

/// Times, ns. Percentiles are accurate to within 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimeQuantiles {
    /// The mean, ns.
    pub mean: u64,
    /// The median, ns. Percentiles are accurate to within 4.4 %.
    pub p50: u64,
    /// The 90th percentile, ns.
    pub p90: u64,
    /// The 95th percentile, ns.
    pub p95: u64,
    /// The 99th percentile, ns.
    pub p99: u64,
}

impl ResidenceRecord {
    /// The value of `type` in JSON.
    pub(super) const TYPE: &str = "residence";

    /// The records of an interface for the interval of `window` ns that ended at `timestamp`. A part without packets has none.
    pub fn of(times: &InterfaceTimes, timestamp: u64, window: u64) -> impl Iterator<Item = Self> + use<'_> {
        let parts = Part::ALL.map(|part| (part, times.times.part(part)));
        parts.into_iter().filter(|(_, found)| **found != Residence::ZERO).map(move |(part, found)| Self {
            timestamp,
            window,
            interface: Arc::clone(&times.interface),
            group: None,
            residence: part_name(part),
            count: residence::count(found),
            times: TimeQuantiles::of(found),
            histogram: residence::nonempty_bins(found).collect(),
            packets: Some(FollowedPackets {
                followed: found.followed,
                dropped: found.dropped,
                replaced: found.replaced,
            }),
        })
    }

    /// The record of a group's times in a queue.
    pub fn of_group(name: &QueueName, found: &Distribution, timestamp: u64, window: u64) -> Self {
        Self {
            timestamp,
            window,
            interface: name.interface.clone().unwrap_or_default(),
            group: Some(Arc::clone(&name.group.label)),
            residence: part_name(Part::Queue),
            count: found.count(),
            times: TimeQuantiles::of_group(found),
            histogram: found.filled().collect(),
            packets: None,
        }
    }
}

impl TimeQuantiles {
    fn of(found: &Residence) -> Option<Self> {
        let [p50, p90, p95, p99] = residence::quantiles(found, [0.5, 0.9, 0.95, 0.99])?;
        Some(Self { mean: residence::mean(found)?, p50, p90, p95, p99 })
    }

    fn of_group(found: &Distribution) -> Option<Self> {
        let [p50, p90, p95, p99] = found.quantiles([0.5, 0.9, 0.95, 0.99])?;
        Some(Self { mean: found.mean()?, p50, p90, p95, p99 })
    }
}

/// The times of packets in this host in the present interval.
#[derive(Debug, Default)]
pub(super) struct ResidenceInterval {
    /// The totals of interfaces at its start. Totals only grow.
    before: Vec<InterfaceTimes>,
    /// The latest totals of interfaces.
    now: Vec<InterfaceTimes>,
    /// The times of groups in queues.
    queues: HashMap<QueueName, Distribution, RandomState>,
}

impl ResidenceInterval {
    /// Takes the present totals of interfaces.
    pub(super) fn take(&mut self, times: Vec<InterfaceTimes>) {
        self.now = times;
    }

    /// Adds the times of a group in a queue since the last call.
    pub(super) fn take_queue(&mut self, name: &QueueName, counts: &SeriesCounts) {
        self.queues.entry(name.clone()).or_default().add(counts);
    }

    /// Makes the records of the interval of `window` ns that ended at `timestamp`, and begins the next.
    pub(super) fn records(&mut self, timestamp: u64, window: u64) -> Vec<ResidenceRecord> {
        let before: HashMap<_, _> = self.before.iter().map(|it| (&it.interface, &it.times)).collect();
        let of_interfaces = self.now.iter().map(|now| {
            let before = before.get(&now.interface);
            let times = before.map_or(*now.times, |before| now.times.since(before));
            InterfaceTimes { times: Box::new(times), ..now.clone() }
        });
        let mut records: Vec<_> = of_interfaces
            .flat_map(|times| ResidenceRecord::of(&times, timestamp, window).collect::<Vec<_>>())
            .collect();
        self.before.clone_from(&self.now);
        let mut queues: Vec<_> = self.queues.drain().collect();
        queues.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
        let of_group = |(name, found): &(QueueName, Distribution)| {
            ResidenceRecord::of_group(name, found, timestamp, window)
        };
        records.extend(queues.iter().map(of_group));
        records
    }
}

/// The sort key of the records of groups.
fn order(name: &QueueName) -> impl Ord {
    (name.interface.as_deref(), &name.group.label)
}
