//! The hosts behind the samples of a group, so that one slow host of many does not rank the group.

use pping_common::{
    hist::{BINS, upper_bound},
    pool::{BINS_PER_BLOCK, BLOCKS},
    series::SeriesCounts,
};

/// One host in this many must have had samples as long as the RTT that ranks the group.
const HOSTS_PER_SUPPORTER: u64 = 20;

/// In a group of this many hosts or more, at least this many must have had them.
const MIN_SUPPORTERS: u64 = 2;

/// The hosts that replied with the samples of a group, by octave of RTT. A set of hosts is a mask of
/// [`host_bit`](pping_common::series::host_bit)s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The numbers of blocks of bins with samples, in order, and the hosts of each.
    octaves: Vec<(u8, u64)>,
}

impl Hosts {
    /// No hosts.
    pub const NONE: Self = Self { octaves: Vec::new() };

    /// Adds the hosts of counts.
    pub fn add(&mut self, counts: &SeriesCounts) {
        // Without groups, counts have no hosts.
        let filled = (0..BLOCKS as u8).zip(counts.hosts).filter(|&(_, hosts)| hosts != 0);
        filled.for_each(|(octave, hosts)| self.insert(octave, hosts));
    }

    /// Adds other hosts.
    pub fn merge(&mut self, other: &Self) {
        other.octaves.iter().for_each(|&(octave, hosts)| self.insert(octave, hosts));
    }

    fn insert(&mut self, octave: u8, hosts: u64) {
        match self.octaves.binary_search_by_key(&octave, |&(known, _)| known) {
            Ok(at) => self.octaves[at].1 |= hosts,
            Err(at) => self.octaves.insert(at, (octave, hosts)),
        }
    }

    /// The estimated number of hosts, up to 266; `None` if it is not known, for instance without groups. Two or three hosts are seldom
    /// taken for fewer.
    pub fn count(&self) -> Option<u64> {
        let all = self.octaves.iter().fold(0, |all, (_, hosts)| all | hosts);
        (all != 0).then(|| estimate(all))
    }

    /// The 95th percentile of the samples, ns, limited to an RTT that enough hosts had: one in [`HOSTS_PER_SUPPORTER`],
    /// and at least [`MIN_SUPPORTERS`] if the group has that many. The limit is the end of the highest octave in or above
    /// which enough hosts had samples.
    pub fn supported_p95(&self, p95: u64) -> u64 {
        let Some(all) = self.count() else { return p95 };
        let needed = (all / HOSTS_PER_SUPPORTER).max(all.min(MIN_SUPPORTERS));
        let mut above = 0;
        let supported = self.octaves.iter().rev().find(|&(_, hosts)| {
            above |= hosts;
            estimate(above) >= needed
        });
        supported.map_or(p95, |&(octave, _)| p95.min(octave_upper_bound(octave)))
    }

    /// The memory that it has allocated, bytes.
    #[cfg(feature = "live")]
    pub fn size(&self) -> usize {
        self.octaves.capacity() * size_of::<(u8, u64)>()
    }
}

/// Estimates how many hosts set these bits; two hosts may share a bit. This is linear counting (Whang, Vander-Zanden and
/// Taylor, 1990).
fn estimate(hosts: u64) -> u64 {
    let bits = f64::from(u64::BITS);
    // If no bit is left, there are more hosts than can be counted.
    let left = f64::from(hosts.count_zeros().max(1));
    (bits * (bits / left).ln()).round() as u64
}

/// The highest RTT of an octave, ns.
fn octave_upper_bound(octave: u8) -> u64 {
    let next = (usize::from(octave) + 1) * BINS_PER_BLOCK;
    upper_bound(next.min(BINS) - 1)
}

#[cfg(test)]
mod tests {
    use pping_common::{hist, parse::IpAddress, series::host_bit};
    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::Distribution;

    const MS: u64 = 1_000_000;

    /// Makes a group of hosts, each with a number of samples and their RTT, ns. Returns the 95th percentile and the hosts.
    fn group(hosts: impl IntoIterator<Item = (u64, u64)>, seed: u64) -> (u64, Hosts) {
        let mut counts = SeriesCounts::EMPTY;
        for (number, (samples, rtt)) in (0..).zip(hosts) {
            let host = host_bit(IpAddress([0, 0xffff_c000_0200 + number]), [seed, 0]);
            (0..samples).for_each(|_| counts.sample(rtt, host));
        }
        let (mut distribution, mut hosts) = (Distribution::default(), Hosts::NONE);
        distribution.add(&counts);
        hosts.add(&counts);
        let [p95] = distribution.quantiles([0.95]).unwrap();
        (p95, hosts)
    }

    fn supported(hosts: impl IntoIterator<Item = (u64, u64)>, seed: u64) -> u64 {
        let (p95, hosts) = group(hosts, seed);
        hosts.supported_p95(p95)
    }

    /// Some hosts with the same number of samples, all of one RTT.
    fn some(hosts: usize, samples: u64, ms: u64) -> impl Iterator<Item = (u64, u64)> {
        std::iter::repeat_n((samples, ms * MS), hosts)
    }

    proptest! {
        #[test]
        fn one_slow_host_of_many_does_not_lift_its_group(others in 2_usize..300, share in 5_u64..99, seed: u64) {
            let slow = (others as u64 * 10) * share / (100 - share) + 1;
            let (p95, hosts) = group(some(1, slow, 500).chain(some(others, 10, 20)), seed);
            // All of them may share a bit.
            prop_assume!(hosts.count() > Some(1));
            prop_assert!(p95 > 400 * MS);
            // The sets tell only octaves apart.
            let supported = hosts.supported_p95(p95);
            prop_assert!((20 * MS..40 * MS).contains(&supported), "{supported}");
        }

        #[test]
        fn one_slow_host_in_ten_lifts_its_group(tens in 2_usize..9, seed: u64) {
            let (p95, hosts) = group(some(tens, 100, 500).chain(some(9 * tens, 10, 20)), seed);
            // Where the slow hosts share a bit, they count as one.
            prop_assume!(tens > 4 || hosts.octaves.last().unwrap().1.count_ones() > 1);
            prop_assert_eq!(hosts.supported_p95(p95), p95);
        }

        #[test]
        fn a_host_alone_speaks_for_itself(rtts in prop::collection::vec(0_u64..100_000 * MS, 1..50), seed: u64) {
            let host = host_bit(IpAddress([0, 7]), [seed, 0]);
            let (mut counts, mut hosts) = (SeriesCounts::EMPTY, Hosts::NONE);
            for &rtt in &rtts {
                counts.sample(rtt, host);
            }
            hosts.add(&counts);
            prop_assert_eq!(hosts.count(), Some(1));
            let longest = *rtts.iter().max().unwrap();
            prop_assert_eq!(hosts.supported_p95(longest), longest);
        }

        #[test]
        fn ranked_rtt_stays_within_its_bounds(
            rtts in prop::collection::vec((1_u64..20, 1_u64..100_000 * MS), 1..100),
            seed: u64,
        ) {
            let (p95, hosts) = group(rtts.iter().copied(), seed);
            let supported = hosts.supported_p95(p95);
            let least = rtts.iter().map(|&(_, rtt)| rtt).min().unwrap();
            prop_assert!(supported <= p95 && supported >= least.min(p95), "{} {} {}", supported, p95, least);
        }

        #[test]
        fn merging_is_as_if_all_had_been_one(seconds in prop::collection::vec((1_u64..40_000 * MS, any::<u64>()), 1..30)) {
            let (mut one, mut all, mut tallied) = (Hosts::NONE, SeriesCounts::EMPTY, Hosts::NONE);
            for (rtt, hosts) in seconds {
                let (mut counts, mut next) = (SeriesCounts::EMPTY, Hosts::NONE);
                counts.sample(rtt, hosts);
                all.sample(rtt, hosts);
                next.add(&counts);
                one.merge(&next);
            }
            tallied.add(&all);
            prop_assert_eq!(one, tallied);
        }

        #[test]
        // The more hosts, the rougher the estimate: with 150 hosts, one seed in a hundred leaves no bit unset.
        fn hosts_are_counted_roughly(hosts in 1_usize..60, seed: u64) {
            let (_, found) = group(some(hosts, 1, 20), seed);
            let found = found.count().unwrap() as f64;
            let error = (found - hosts as f64).abs();
            prop_assert!(error <= 3.0 + 0.6 * hosts as f64, "{} of {}", found, hosts);
        }
    }

    #[test]
    fn five_per_cent_of_the_hosts_do_and_fewer_do_not() {
        // The number of hosts is an estimate, which is close with these seeds.
        assert_eq!(supported(some(1, 1000, 500).chain(some(19, 10, 20)), 1), end_of(20));
        let (p95, hosts) = group(some(2, 1000, 500).chain(some(38, 10, 20)), 1);
        assert_eq!(hosts.supported_p95(p95), p95);
    }

    #[test]
    fn outliers_of_every_host_do_not_exceed_the_percentile() {
        let (mut counts, mut hosts) = (SeriesCounts::EMPTY, Hosts::NONE);
        for host in (0..30).map(|number| 1 << number) {
            (0..98).for_each(|_| counts.sample(20 * MS, host));
            (0..2).for_each(|_| counts.sample(900 * MS, host));
        }
        hosts.add(&counts);
        assert_eq!(hosts.supported_p95(20 * MS), 20 * MS);
    }

    #[test]
    fn two_hosts_speak_for_each_other() {
        assert_eq!(supported(some(1, 1000, 500).chain(some(1, 10, 20)), 1), end_of(20));
        let (p95, hosts) = group(some(2, 10, 500), 1);
        assert_eq!((hosts.count(), hosts.supported_p95(p95)), (Some(2), p95));
    }

    #[test]
    fn without_hosts_the_percentile_is_as_it_is() {
        assert_eq!((Hosts::NONE.supported_p95(5), Hosts::NONE.count()), (5, None));
    }

    #[test]
    fn what_is_longer_than_all_octaves_has_no_bound() {
        let (mut counts, mut hosts) = (SeriesCounts::EMPTY, Hosts::NONE);
        (0..3).for_each(|number| counts.sample(70_000 * MS, 1 << number));
        hosts.add(&counts);
        assert_eq!(hosts.supported_p95(70_000 * MS), 70_000 * MS);
        // More hosts than bits.
        counts.sample(MS, u64::MAX);
        hosts.add(&counts);
        assert_eq!(hosts.count(), Some(266));
        assert_eq!(hosts.supported_p95(70_000 * MS), end_of(1));
    }

    /// The end of the octave of an RTT.
    fn end_of(ms: u64) -> u64 {
        octave_upper_bound((hist::bin(ms * MS) / BINS_PER_BLOCK) as u8)
    }
}
