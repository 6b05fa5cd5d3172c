//! Bins come from a pool. Samples that find no room there are counted, and a killed agent leaks no block.

use aya::maps::{Array, Map, MapData};
use pping::kernel::{
    load::{self, Hook},
    load_options::LoadOptions,
    loaded::Kernel,
};
use pping_common::{
    abi::{Control, LAYOUT},
    group::Grouping,
    parse::LinkType,
};

use super::{Program, SETTINGS, Sums, echo, rig, run, v4};
use crate::agent::bpffs::Bpffs;

/// Load options with a group for each host that replies, and a pool of `bin_blocks` blocks.
fn by_host(bin_blocks: u32, settings: LoadOptions) -> LoadOptions {
    LoadOptions {
        grouping: Grouping { by_source: 1, v4_len: 32, v6_len: 128, ..Grouping::NONE },
        max_groups: 100,
        bin_blocks: Some(bin_blocks),
        ..settings
    }
}

fn ping(kernel: &mut Kernel, host: u8, sequence: u16) {
    run(kernel, Program::Egress, &echo(v4(1), v4(host), 7, sequence, false));
    run(kernel, Program::Ingress, &echo(v4(host), v4(1), 7, sequence, true));
}

/// Returns a kernel whose atomic instructions fetch the old value, and one where they only add.
fn kernels(bin_blocks: u32) -> impl Iterator<Item = (Kernel, u16)> {
    rig::kernels().into_iter().map(move |settings| {
        let mut kernel = load::load(&by_host(bin_blocks, settings), false).unwrap();
        let interface_id = rig::loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
        (kernel, interface_id)
    })
}

#[test]
fn full_bin_pool_counts_unaggregated_until_the_next_epoch() {
    for (mut kernel, interface_id) in kernels(3) {
        let mut sums = Sums::default();
        for interval in 1..=4 {
            // Each host has one sample, so each group takes one block.
            for host in 2..7 {
                ping(&mut kernel, host, interval);
            }
            sums.rotate(&mut kernel);
            let counters = rig::counters(&kernel, interface_id);
            let samples: u64 = counters.samples.iter().flatten().sum();
            let interval = u64::from(interval);
            assert_eq!(
                (samples, sums.total(), counters.unaggregated),
                (5 * interval, 3 * interval, 2 * interval)
            );
            assert_eq!(counters.groups_refused, 0);
        }
        let first: Vec<_> = (2..5).map(|host| sums.samples()[&format!("{}/32", v4(host))]).collect();
        assert_eq!(first, [4; 3], "first come, first served");
    }
}

#[test]
fn two_epochs_share_the_bin_pool() {
    for (mut kernel, interface_id) in kernels(4) {
        let mut sums = Sums::default();
        for round in 0..6 {
            for host in 2..5 {
                ping(&mut kernel, host, 2 * round);
            }
            kernel.series.rotate();
            // The three blocks of the epoch before are still in use.
            for host in 2..5 {
                ping(&mut kernel, host, 2 * round + 1);
            }
            sums.take(&mut kernel);
            assert_eq!(sums.total(), u64::from(4 * round + 3));
            sums.rotate(&mut kernel);
            assert_eq!(sums.total(), u64::from(4 * round + 4));
            assert_eq!(rig::counters(&kernel, interface_id).unaggregated, u64::from(2 * round + 2));
        }
    }
}

#[test]
fn a_rotation_that_a_kill_interrupted_counts_once() {
    let settings = by_host(100, SETTINGS);
    for is_committed in [false, true] {
        let file_system = Bpffs::new();
        let start = || {
            let pins = file_system.take();
            let mut kernel = load::load_entry_programs(&settings, &[Hook::Tc], Some(&pins)).unwrap();
            load::load_stages(&mut kernel, &[Hook::Tc], Some(&pins)).unwrap();
            rig::loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
            (kernel, pins)
        };
        let (mut kernel, pins) = start();
        for sequence in 0..3 {
            ping(&mut kernel, 2, sequence);
        }
        kernel.sweep().unwrap();
        kernel.series.rotate();
        drop((kernel, pins));
        if is_committed {
            let path = file_system.pins().join(format!("maps-{LAYOUT:016x}/CONTROL"));
            let map = Map::from_map_data(MapData::from_pin(path).unwrap()).unwrap();
            let mut map: Array<_, Control> = Array::try_from(map).unwrap();
            let control = map.get(&0, 0).unwrap();
            assert_ne!(control.committed, control.rotations);
            map.set(0, Control { committed: control.rotations, ..control }, 0).unwrap();
        }
        let (mut kernel, _pins) = start();
        let mut sums = Sums::default();
        assert_eq!(kernel.series.committed() == kernel.series.rotations(), is_committed);
        if !is_committed {
            sums.take(&mut kernel);
        }
        ping(&mut kernel, 2, 3);
        sums.sweep_and_rotate(&mut kernel);
        let expected = if is_committed { 1 } else { 4 };
        let packets = sums.by_label(|series| series.sent.packets).values().sum::<u64>();
        assert_eq!((sums.total(), packets), (expected, expected), "committed: {is_committed}");
    }
}
