//! The records of the time that packets spent in this host in an interval.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use pping_common::{
    abi::{Part, Residence},
    series::SeriesCounts,
};
use serde::Serialize;

use crate::{
    aggregate::Distribution,
    groups::QueueName,
    residence::{self, InterfaceTimes, part_name},
};

/// The times of one part at one interface in an interval, of all packets or of a group. Without times the record has no quantiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResidenceRecord {
    /// The end of the interval, ns since the Unix epoch.
    pub timestamp: u64,
    /// The length of the interval, ns.
    pub window: u64,
    /// The interface by which the packets left.
    pub interface: Arc<str>,
    /// The label of the group, if the record is that of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Arc<str>>,
    /// `forwarding` or `queue`.
    pub residence: &'static str,
    /// The number of times.
    pub count: u64,
    /// The times, if there are any.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub times: Option<TimeQuantiles>,
    /// For each bin that has times: its upper bound, ns, and the number of its times.
    pub histogram: Vec<(u64, u64)>,
    /// The fate of the packets that were followed; unknown for a group.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub packets: Option<FollowedPackets>,
}

/// The fate of the packets that were followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FollowedPackets {
    /// All packets that were followed.
    pub followed: u64,
    /// Followed packets that were dropped in the queue.
    pub dropped: u64,
    /// Followed packets that pping lost track of: another packet took their entry or their memory.
    pub replaced: u64,
}

/// Times, ns; percentiles are within half a bin, 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeQuantiles {
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
}

impl ResidenceRecord {
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
        let of_interfaces = self.now.iter().map(|now| {
            let before = self.before.iter().find(|before| before.interface == now.interface);
            let times = before.map_or(*now.times, |before| now.times.since(&before.times));
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
