//! A series estimates how many hosts replied, by the octave of their samples.

use std::net::IpAddr;

use pping::{kernel::load_options::LoadOptions, worst::Hosts};
use pping_common::{
    abi::Emit,
    group::Grouping,
    hist::BINS,
    parse::LinkType,
    pool::{BINS_PER_BLOCK, BLOCKS},
    series::SeriesCounts,
};

use super::{
    Program, echo,
    rig::{Rig, kernels},
    v4, v6,
};

const HOSTS: u8 = 30;

/// Load options with a group for each network of hosts that reply.
fn by_network(settings: LoadOptions) -> LoadOptions {
    LoadOptions {
        grouping: Grouping { by_source: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE },
        emit: Emit::NOTHING,
        max_groups: 100,
        ..settings
    }
}

fn ping(rig: &mut Rig, host: fn(u8) -> IpAddr, number: u8, sequence: u16) {
    rig.send(Program::Egress, &echo(host(1), host(number), 7, sequence, false));
    rig.send(Program::Ingress, &echo(host(number), host(1), 7, sequence, true));
}

/// Returns the counts with samples of an epoch, from the kernel and from its twin.
fn take(rig: &mut Rig) -> [Vec<SeriesCounts>; 2] {
    rig.sweep();
    let mut kernel = Vec::new();
    rig.kernel.series.rotate();
    rig.kernel.series.take(|_, counts| kernel.push(*counts)).unwrap();
    rig.kernel.series.commit().unwrap();
    let twin = rig.twin.tracker.take_series(0, u64::MAX).into_iter().map(|(_, counts)| counts).collect();
    [kernel, twin].map(|all_counts| all_counts.into_iter().filter(SeriesCounts::has_samples).collect())
}

/// Returns the set of hosts of a group's only series. Asserts that exactly the octaves with samples have hosts.
#[track_caller]
fn hosts(all_counts: &[SeriesCounts]) -> u64 {
    let [counts] = all_counts else { panic!("{} series", all_counts.len()) };
    for number in 0..BLOCKS {
        let first = number * BINS_PER_BLOCK;
        let samples: u32 = counts.bins[first..BINS.min(first + BINS_PER_BLOCK)].iter().sum();
        let of_octave = counts.hosts[number].count_ones();
        assert!(of_octave <= samples && (of_octave > 0) == (samples > 0), "{of_octave} of {samples}");
    }
    counts.hosts.iter().fold(0, |all, hosts| all | hosts)
}

#[test]
fn as_many_hosts_are_known_as_replied_in_kernel_and_replay() {
    for settings in kernels() {
        for host in [v4 as fn(u8) -> IpAddr, v6] {
            let mut rig = Rig::with(by_network(settings), LinkType::Ethernet);
            let mut of_each = [0; 2];
            for number in 2..2 + HOSTS {
                (0..3).for_each(|sequence| ping(&mut rig, host, number, sequence));
                let of_one = take(&mut rig).map(|all_counts| hosts(&all_counts));
                assert_eq!(
                    of_one.map(u64::count_ones),
                    [1, 1],
                    "what others set is gone with their interval"
                );
                for (all, one) in of_each.iter_mut().zip(of_one) {
                    *all |= one;
                }
            }
            for sequence in 3..6 {
                (2..2 + HOSTS).for_each(|number| ping(&mut rig, host, number, sequence));
            }
            let all_counts = take(&mut rig);
            assert_eq!([0, 1].map(|it| hosts(&all_counts[it])), of_each, "each host has the same bit again");
            for counts in all_counts.iter().flatten() {
                assert_eq!(counts.count(), 3 * u64::from(HOSTS));
                let mut known = Hosts::NONE;
                known.add(counts);
                let count = known.count().unwrap();
                assert!((15..=60).contains(&count), "{count} of {HOSTS}");
            }
        }
    }
}

#[test]
fn without_groups_no_hosts_are_known() {
    let mut rig =
        Rig::with(LoadOptions { grouping: Grouping::NONE, ..by_network(kernels()[0]) }, LinkType::Ethernet);
    (2..5).for_each(|number| ping(&mut rig, v4, number, 1));
    for all_counts in take(&mut rig) {
        assert_eq!(all_counts.iter().map(SeriesCounts::count).sum::<u64>(), 3);
        assert!(all_counts.iter().all(|counts| counts.hosts == [0; BLOCKS]));
    }
}
