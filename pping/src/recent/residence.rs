//! The residence times of the last minute, and their part in RTT inflation.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use pping_common::abi::{Part, Residence};
use serde::{Deserialize, Serialize};

use super::cells::CELL;
use crate::{
    aggregate::RttSummary,
    residence::{self, InterfaceTimes},
};

/// The number of cells before the present one whose start is kept: a minute.
const CELLS: usize = 6;

/// Time that packets spent in this host before they left by an interface, in the last minute; only with --residence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Residence"))]
pub struct ResidenceAnswer {
    /// From ingress at another watched interface to egress at this one; null if nothing was forwarded.
    pub forwarding: Option<TimesAnswer>,
    /// From the enqueue to the dequeue of the root qdisc; null if nothing was queued.
    pub queue: Option<TimesAnswer>,
    /// Packets that were followed into the queue.
    pub followed: u64,
    /// Followed packets that were dropped in the queue.
    pub dropped: u64,
    /// Followed packets that pping lost track of.
    pub replaced: u64,
    /// The queue's part in the inflation of RTTs beyond the interface; null without RTTs that show queues, and until a packet
    /// was followed through the queue.
    pub beyond: Option<OwnQueue>,
}

/// A distribution of times, ns. Percentiles are accurate to within 4.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Times"))]
pub struct TimesAnswer {
    /// Number of measured times.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub count: u64,
    /// The mean.
    pub mean: u64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// How much of the inflation of RTTs beyond an interface the queue of this host causes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnQueue {
    /// The median RTT of the last minute minus the lowest RTT of the last 15 minutes, ns.
    pub inflation: u64,
    /// The median wait of all packets in the queue, ns. A packet that met no queue counts as 0.
    pub queue: u64,
    /// The queue as a share of the inflation; null if the inflation is 0.
    #[cfg_attr(test, schemars(range(max = 1)))]
    pub share: Option<f64>,
}

impl OwnQueue {
    /// Compares this inflation of round trips with this wait of packets, ns.
    fn new(inflation: u64, queue: u64) -> Self {
        let share = (inflation > 0).then(|| (queue as f64 / inflation as f64).min(1.0));
        Self { inflation, queue, share }
    }
}

/// The readings of each interface at the start of each cell of the last minute, and the latest one.
#[derive(Debug, Default)]
pub(super) struct Recent(HashMap<Arc<str>, VecDeque<(u64, InterfaceTimes)>>);

impl Recent {
    /// Takes the readings of all interfaces at a time, ns.
    pub(super) fn take(&mut self, times: Vec<InterfaceTimes>, at: u64) {
        let number = at / CELL;
        self.0.retain(|name, _| times.iter().any(|it| it.interface == *name));
        for times in times {
            let read = self.0.entry(Arc::clone(&times.interface)).or_default();
            // The last reading of a cell is the start of the next cell.
            if read.len() > 1 && read.back().is_some_and(|(cell, _)| *cell == number) {
                read.pop_back();
            }
            read.push_back((number, times));
            while read.len() > CELLS + 1 {
                read.pop_front();
            }
        }
    }

    /// Returns the residence times of an interface in the last minute; `None` if they are not measured. `inflation` is
    /// that of round trips beyond it, ns.
    pub(super) fn answer(&self, interface: &str, inflation: Option<u64>) -> Option<ResidenceAnswer> {
        let read = self.0.get(interface)?;
        let ((_, first), (_, last)) = (read.front()?, read.back()?);
        let times = last.times.since(&first.times);
        let queue = times.part(Part::Queue);
        let sent = last.sent.saturating_sub(first.sent);
        Some(ResidenceAnswer {
            forwarding: TimesAnswer::of(times.part(Part::Forwarding)),
            queue: TimesAnswer::of(queue),
            followed: queue.followed,
            dropped: queue.dropped,
            replaced: queue.replaced,
            beyond: inflation
                .filter(|_| last.times.part(Part::Queue).followed > 0)
                .map(|inflation| OwnQueue::new(inflation, times.median_wait(sent))),
        })
    }
}

impl TimesAnswer {
    fn of(found: &Residence) -> Option<Self> {
        let [p50, p95, p99] = residence::quantiles(found, [0.5, 0.95, 0.99])?;
        Some(Self { count: residence::count(found), mean: residence::mean(found)?, p50, p95, p99 })
    }

    /// Converts times that were aggregated like RTTs.
    pub(super) fn of_rtts(
        RttSummary { count, mean, percentiles: [p50, _, p95, p99], .. }: RttSummary,
    ) -> Self {
        Self { count, mean, p50, p95, p99 }
    }
}

#[cfg(test)]
mod tests {
    use pping_common::{hist, limits::SECOND};

    use super::*;
    use crate::residence::Times;

    const MS: u64 = 1_000_000;

    /// Returns this many packets, all of which were followed and waited for this time.
    fn read(packets: u64, wait: u64) -> Vec<InterfaceTimes> {
        let mut queue = Residence { sum: packets * wait, followed: packets, ..Residence::ZERO };
        queue.bins[hist::bin(wait)] = packets;
        let times = Box::new(Times::new(Residence::ZERO, queue, 1));
        vec![InterfaceTimes { interface: "wan0".into(), times, sent: packets }]
    }

    #[test]
    fn a_minute_counts_and_no_more() {
        let mut recent = Recent::default();
        for second in 0..200 {
            recent.take(read(second, 10 * MS), second * SECOND);
        }
        let answer = recent.answer("wan0", None).unwrap();
        assert!((50..=60).contains(&answer.followed), "{answer:?}");
        assert_eq!((answer.queue.unwrap().count, answer.queue.unwrap().mean), (answer.followed, 10 * MS));
        assert_eq!((answer.forwarding, answer.beyond), (None, None));
        assert_eq!(recent.answer("wan1", None), None);
        recent.take(Vec::new(), 201 * SECOND);
        assert_eq!(recent.answer("wan0", None), None);
    }

    #[test]
    fn the_share_of_the_queue_is_at_most_all() {
        let mut recent = Recent::default();
        recent.take(read(0, 10 * MS), 0);
        recent.take(read(100, 10 * MS), SECOND);
        let own = |inflation| recent.answer("wan0", Some(inflation)).unwrap().beyond.unwrap();
        assert!((own(20 * MS).share.unwrap() - 0.5).abs() < 0.03, "{:?}", own(20 * MS));
        assert_eq!(own(5 * MS).share, Some(1.0));
        assert_eq!(own(0).share, None);
    }

    #[test]
    fn an_interface_has_no_own_queue_until_a_packet_was_in_it() {
        let mut recent = Recent::default();
        for second in 0..2 {
            let mut times = read(0, MS);
            times[0].sent = 1000 * second;
            recent.take(times, second * SECOND);
        }
        let own = |recent: &Recent| recent.answer("wan0", Some(20 * MS)).unwrap().beyond;
        assert_eq!(own(&recent), None, "as on a bridge, whose packets never wait");
        for second in 2..200 {
            recent.take(read(1, 10 * MS), second * SECOND);
        }
        assert_eq!(own(&recent).unwrap().queue, 0, "as in a queue that was empty for a minute");
    }
}
