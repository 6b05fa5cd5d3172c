//! Times that packets spent in this host, as plain values: between two watched interfaces, and in the queue of the
//! outgoing interface. See docs/residence.md.

use std::sync::Arc;

use pping_common::{
    abi::{Part, Residence},
    hist::{self, BINS},
};

use crate::aggregate::rtt_at;

/// The times of packets that left by an interface, as they were read.
#[derive(Clone, Debug)]
pub struct InterfaceTimes {
    /// The interface.
    pub interface: Arc<str>,
    /// Its times.
    pub times: Box<Times>,
    /// All packets that it has sent.
    pub sent: u64,
}

/// The name of a part in metrics and records.
pub const fn part_name(part: Part) -> &'static str {
    match part {
        Part::Forwarding => "forwarding",
        Part::Queue => "queue",
    }
}

/// The times of packets that left by an interface. All counts only go up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// By [`Part`].
    parts: [Residence; Part::ALL.len()],
    /// One packet in this many is followed through the queue; 0 follows none.
    pub every: u32,
}

impl Times {
    /// Combines the times of forwarding and of the queue.
    pub fn new(forwarding: Residence, queue: Residence, every: u32) -> Self {
        Self { parts: [forwarding, queue], every }
    }

    /// Returns the times of a part.
    pub fn part(&self, part: Part) -> &Residence {
        &self.parts[part as usize]
    }

    /// Whether times of a part are measured.
    pub fn is_measured(&self, part: Part) -> bool {
        part == Part::Forwarding || self.every != 0
    }

    /// Returns the difference to `earlier`. If the counts of a part went down, they began again, and all of them are
    /// new.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut times = *self;
        for (part, before) in times.parts.iter_mut().zip(&earlier.parts) {
            *part = since(part, before);
        }
        times
    }

    /// Estimates the number of enqueued packets from those that were followed.
    pub fn enqueued(&self) -> u64 {
        self.part(Part::Queue).followed.saturating_mul(self.every.into())
    }

    /// Returns how long the median of `sent` packets waited in the queue, ns. A packet that met no queue, or that the
    /// queue refused, counts as not waiting.
    pub fn median_wait(&self, sent: u64) -> u64 {
        let queue = self.part(Part::Queue);
        let followed = count(queue);
        // The packets that were not enqueued, scaled down like those that were followed.
        let others = sent.saturating_sub(self.enqueued()) / u64::from(self.every.max(1));
        let rank = (followed + others).div_ceil(2);
        if rank <= others { 0 } else { quantile_at(queue, rank - others) }
    }
}

fn since(now: &Residence, before: &Residence) -> Residence {
    let is_same =
        now.sum >= before.sum && now.bins.iter().zip(&before.bins).all(|(now, before)| now >= before);
    if !is_same {
        return *now;
    }
    let mut bins = now.bins;
    for (bin, before) in bins.iter_mut().zip(&before.bins) {
        *bin -= before;
    }
    Residence {
        sum: now.sum - before.sum,
        followed: now.followed.saturating_sub(before.followed),
        dropped: now.dropped.saturating_sub(before.dropped),
        replaced: now.replaced.saturating_sub(before.replaced),
        bins,
    }
}

/// Returns how many times were measured.
pub fn count(residence: &Residence) -> u64 {
    residence.bins.iter().sum()
}

/// Returns the mean, ns; `None` if there are no times.
pub fn mean(residence: &Residence) -> Option<u64> {
    residence.sum.checked_div(count(residence))
}

/// Returns quantiles, ns; `None` if there are no times. A probability of 0.5 is the median. Each quantile is the middle
/// of its bin.
pub fn quantiles<const N: usize>(residence: &Residence, probabilities: [f64; N]) -> Option<[u64; N]> {
    let count = count(residence);
    let rank = |probability: f64| ((probability * count as f64).ceil() as u64).clamp(1, count);
    (count > 0).then(|| probabilities.map(|probability| quantile_at(residence, rank(probability))))
}

fn quantile_at(residence: &Residence, rank: u64) -> u64 {
    rtt_at(rank, residence.bins.iter().copied().enumerate(), (0, u64::MAX))
}

/// Returns the upper bound, ns, and the count of each bin that is not empty.
pub fn nonempty_bins(residence: &Residence) -> impl Iterator<Item = (u64, u64)> {
    (0..BINS).map(|bin| (hist::upper_bound(bin), residence.bins[bin])).filter(|&(_, count)| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn queue(times: &[u64]) -> Residence {
        let mut queue = Residence::ZERO;
        for &time in times {
            queue.sum += time;
            queue.followed += 1;
            queue.bins[hist::bin(time)] += 1;
        }
        queue
    }

    fn is_about(found: u64, expected: u64) -> bool {
        found.abs_diff(expected) as f64 <= 0.0445 * expected as f64
    }

    #[test]
    fn median_wait_is_that_of_followed_packets() {
        let times = Times::new(Residence::ZERO, queue(&[5 * MS, 10 * MS, 20 * MS]), 64);
        assert_eq!(times.enqueued(), 192);
        assert!(is_about(times.median_wait(192), 10 * MS));
        // `sent` may be from another moment than the times.
        assert!(is_about(times.median_wait(0), 10 * MS));
    }

    #[test]
    fn packets_that_meet_no_queue_do_not_wait() {
        let times = Times::new(Residence::ZERO, queue(&[5 * MS, 10 * MS, 20 * MS]), 64);
        // One, two or many of the packets that met no queue would have been followed.
        assert!(is_about(times.median_wait(256), 5 * MS));
        assert!(is_about(times.median_wait(320), 5 * MS));
        assert_eq!(times.median_wait(64_000), 0);
        assert_eq!(Times::new(Residence::ZERO, Residence::ZERO, 64).median_wait(0), 0);
    }

    #[test]
    fn what_came_since_is_the_difference_unless_counts_began_again() {
        let (before, now) = (queue(&[MS, 2 * MS]), queue(&[MS, 2 * MS, 7 * MS]));
        let of = |queue| Times::new(Residence::ZERO, queue, 1);
        assert_eq!(of(now).since(&of(before)), of(queue(&[7 * MS])));
        assert_eq!(of(before).since(&of(now)), of(before));
        assert_eq!((mean(&before), mean(&Residence::ZERO)), (Some(3 * MS / 2), None));
        assert_eq!(quantiles(&Residence::ZERO, [0.5]), None);
        assert_eq!(nonempty_bins(&now).map(|(_, count)| count).sum::<u64>(), 3);
    }
}
