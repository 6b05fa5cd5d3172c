//! A series estimates how many hosts replied, by the octave of their samples.

use std::net::IpAddr;

use pping::{kernel::load_options::LoadOptions, worst::Hosts};
use pping_common::{
    abi::{Emit, Tally},
    group::Grouping,
    hist::BINS,
    parse::LinkType,
    pool::{BINS_PER_BLOCK, BLOCKS},
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

/// Returns the tallies with samples of an epoch, from the kernel and from its twin.
fn take(rig: &mut Rig) -> [Vec<Tally>; 2] {
    rig.sweep();
    let mut kernel = Vec::new();
    rig.kernel.series.rotate();
    rig.kernel.series.take(|_, tally| kernel.push(*tally)).unwrap();
    rig.kernel.series.commit().unwrap();
    let twin = rig.twin.tracker.take_series(0, u64::MAX).into_iter().map(|(_, tally)| tally).collect();
    [kernel, twin].map(|tallies| tallies.into_iter().filter(Tally::has_samples).collect())
}

/// Returns the set of hosts of a group's only series. Asserts that exactly the octaves with samples have hosts.
#[track_caller]
fn hosts(tallies: &[Tally]) -> u64 {
    let [tally] = tallies else { panic!("{} series", tallies.len()) };
    for number in 0..BLOCKS {
        let first = number * BINS_PER_BLOCK;
        let samples: u32 = tally.bins[first..BINS.min(first + BINS_PER_BLOCK)].iter().sum();
        let of_octave = tally.hosts[number].count_ones();
        assert!(of_octave <= samples && (of_octave > 0) == (samples > 0), "{of_octave} of {samples}");
    }
    tally.hosts.iter().fold(0, |all, hosts| all | hosts)
}

#[test]
fn as_many_hosts_are_known_as_replied_in_kernel_and_replay() {
    for settings in kernels() {
        for host in [v4 as fn(u8) -> IpAddr, v6] {
            let mut rig = Rig::with(by_network(settings), LinkType::Ethernet);
            let mut of_each = [0; 2];
            for number in 2..2 + HOSTS {
                (0..3).for_each(|sequence| ping(&mut rig, host, number, sequence));
                let of_one = take(&mut rig).map(|tallies| hosts(&tallies));
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
            let tallies = take(&mut rig);
            assert_eq!([0, 1].map(|it| hosts(&tallies[it])), of_each, "each host has the same bit again");
            for tally in tallies.iter().flatten() {
                assert_eq!(tally.count(), 3 * u64::from(HOSTS));
                let mut known = Hosts::NONE;
                known.add(tally);
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
    for tallies in take(&mut rig) {
        assert_eq!(tallies.iter().map(Tally::count).sum::<u64>(), 3);
        assert!(tallies.iter().all(|tally| tally.hosts == [0; BLOCKS]));
    }
}
