//! Traffic of more flows than one sweep flushes.

use pping::kernel::{load, load_options::LoadOptions, loaded::Kernel, sweep::MAX_FLUSHED};
use pping_common::{abi::Emit, parse::LinkType};

use super::{Program, SETTINGS, Sums, echo, run, v4};
use crate::kernel::rig::loopback;

/// More than one share of a sweep, but less than two.
const FLOWS: usize = MAX_FLUSHED + 10_000;

fn kernel() -> Kernel {
    let mut kernel =
        load::load(&LoadOptions { emit: Emit::NOTHING, max_flows: 1 << 17, ..SETTINGS }, true).unwrap();
    loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    kernel
}

/// Sends a request and its reply on each of the flows.
fn ping(kernel: &mut Kernel, sequence: u16) {
    for number in 0..FLOWS {
        let (id, server) = (number as u16, v4(2 + (number >> 16) as u8));
        run(kernel, Program::Egress, &echo(v4(1), server, id, sequence, false));
        run(kernel, Program::Ingress, &echo(server, v4(1), id, sequence, true));
    }
}

/// Returns the outgoing packets so far, according to the series.
fn sent(sums: &Sums) -> u64 {
    sums.by_label(|series| series.sent.packets).values().sum()
}

#[test]
fn each_flow_is_flushed_in_some_share_and_none_twice() {
    let mut kernel = kernel();
    let mut sums = Sums::default();
    sums.sweep_and_rotate(&mut kernel);
    for round in 1..3 {
        let before = sent(&sums);
        assert_eq!(before, (round - 1) * FLOWS as u64);
        ping(&mut kernel, round as u16);
        sums.sweep_and_rotate(&mut kernel);
        let share = sent(&sums) - before;
        // A share includes all flows of a bucket, so it may exceed `MAX_FLUSHED` by a few.
        assert!((1..=MAX_FLUSHED as u64 + 5).contains(&share), "{share} in the first sweep");
        // No flow sends anything between the two sweeps.
        sums.sweep_and_rotate(&mut kernel);
        assert_eq!(sent(&sums) - before, FLOWS as u64, "in the second");
        sums.sweep_and_rotate(&mut kernel);
    }
    assert_eq!(sums.total(), 2 * FLOWS as u64);
}

#[test]
fn the_last_sweep_leaves_no_flow_out() {
    let mut kernel = kernel();
    let mut sums = Sums::default();
    ping(&mut kernel, 1);
    kernel.sweep_all().unwrap();
    sums.rotate(&mut kernel);
    assert_eq!(sent(&sums), FLOWS as u64);
}
