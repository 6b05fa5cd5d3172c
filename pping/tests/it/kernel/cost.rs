//! What packets cost, by the programs' own measurement and by the kernel's statistics.

use std::time::{Duration, Instant};

use aya::{
    Ebpf,
    programs::{Program as AnyProgram, TestRun as _, TestRunOptions},
    sys::{Stats, enable_stats},
};
use nix::sys::signal::SigSet;
use pping::kernel::{load, load_options::LoadOptions, loaded::Kernel};
use pping_bench_programs::BASELINE;
use pping_common::{
    abi::{PacketProgram, Stage, Timed},
    limits::TIMED_EVERY,
    parse::{LinkType, Untracked},
};
use pping_lab::stay_on;

use super::{
    frames::{Ip, TCP, Tcp, UDP, echo, v4, v6},
    rig::{Program, Rig, SETTINGS, counters, run},
    stages::unload,
};

const EVERY: u32 = TIMED_EVERY as u32;

/// How far the two figures may be apart, after subtracting the part that the programs cannot time.
const TOLERANCE: f64 = 0.15;

/// What is left of the rounding of the clock, which advances by 10 ns at a time on some machines, in a mean of dozens.
const ROUNDING_NS: f64 = 2.0;

/// Only the kernel's statistics include what a program does before its first and after its last reading of the clock.
/// That takes the same time for each packet, 2 to 4 ns on an idle machine. It may be at most this share of the cost of
/// the shortest packet.
const MAX_UNTIMED_SHARE: f64 = 0.5;

/// The machine has other work, and its speed changes.
const ATTEMPTS: usize = 10;

/// Runs a program on a packet, `times` in a row.
fn repeat(programs: &Ebpf, name: &str, bytes: &[u8], times: u32) {
    // The kernel ends these runs early when a signal comes, such as that of another test's child. Another thread takes it.
    SigSet::all().thread_block().unwrap();
    let options = TestRunOptions { data_in: Some(bytes), repeat: times, ..TestRunOptions::new() };
    match programs.program(name).unwrap() {
        AnyProgram::SchedClassifier(program) => program.test_run(options),
        AnyProgram::Xdp(program) => program.test_run(options),
        _ => panic!("{name} is no program for packets"),
    }
    .unwrap();
}

/// Returns how many runs of a program the kernel counted, and their total time.
fn counted(programs: &Ebpf, name: &str) -> (u64, Duration) {
    let info = programs.program(name).unwrap().info().unwrap();
    (info.run_count(), info.run_time())
}

/// Loads programs that do nothing.
fn empty() -> Kernel {
    let mut kernel = load::open(BASELINE, &LoadOptions { max_flows: 16, ..LoadOptions::DEFAULT }).unwrap();
    for name in ["baseline_empty", "baseline_xdp"] {
        match kernel.programs.program_mut(name).unwrap() {
            AnyProgram::SchedClassifier(program) => program.load(),
            AnyProgram::Xdp(program) => program.load(),
            _ => panic!("{name} is no program for packets"),
        }
        .unwrap();
    }
    kernel
}

/// Returns the mean time of a run in ns by the kernel's statistics, while `act` runs the program.
fn by_statistics(programs: &Ebpf, name: &str, act: impl FnOnce()) -> f64 {
    let before = counted(programs, name);
    act();
    let after = counted(programs, name);
    after.1.saturating_sub(before.1).as_nanos() as f64 / (after.0 - before.0) as f64
}

const fn name(program: Program) -> (PacketProgram, &'static str) {
    match program {
        Program::Xdp => (PacketProgram::Xdp, "baseline_xdp"),
        Program::Ingress => (PacketProgram::Ingress, "baseline_empty"),
        Program::Egress => (PacketProgram::Egress, "baseline_empty"),
    }
}

fn timed(rig: &Rig, program: PacketProgram) -> Timed {
    counters(&rig.kernel, rig.twin.interface_id).timed_by(program)
}

fn since(before: Timed, after: Timed) -> Timed {
    Timed { packets: after.packets - before.packets, ns: after.ns - before.ns }
}

/// Returns the lower quartile: other work on the machine only adds to the cost of a packet.
fn lower_quartile(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 4]
}

/// Returns the mean without what an interrupt lengthened. A quartile would not do: each value is a whole number of the
/// clock's steps, and only their mean comes closer than a step.
fn undisturbed_mean(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let longest = 2.0 * values[values.len() / 2];
    let undisturbed = &values[..values.partition_point(|&value| value <= longest)];
    undisturbed.iter().sum::<f64>() / undisturbed.len() as f64
}

/// Returns the cost of each of these packets in ns, by the program and by the kernel, without the kernel's own
/// overhead. Interrupts lengthen the kernel's figure, but hardly ever hit a packet that is timed.
fn compare(rig: &Rig, empty: &Kernel, program: Program, packets: &[Vec<u8>]) -> Vec<(f64, f64)> {
    const ROUNDS: usize = 48;
    let (program, baseline) = name(program);
    let programs = &rig.kernel.programs;
    let mut nothing = Vec::new();
    let mut times = vec![(Vec::new(), Vec::new()); packets.len()];
    for _ in 0..ROUNDS {
        // The programs take turns, so that a change in the machine's speed affects all of them.
        nothing.push(by_statistics(&empty.programs, baseline, || {
            repeat(&empty.programs, baseline, &packets[0], EVERY);
        }));
        for (bytes, (own, kernels)) in packets.iter().zip(&mut times) {
            let before = timed(rig, program);
            kernels.push(by_statistics(programs, program.name(), || {
                repeat(programs, program.name(), bytes, EVERY);
            }));
            let Timed { packets, ns } = since(before, timed(rig, program));
            assert!(packets <= 1, "{packets} of {EVERY} were timed");
            if packets == 1 {
                own.push(ns as f64);
            }
        }
    }
    let nothing = lower_quartile(nothing);
    let figures = times.into_iter().map(|(own, kernels)| {
        assert!(own.len() >= ROUNDS * 9 / 10, "{} of {ROUNDS} were timed", own.len());
        (undisturbed_mean(own), lower_quartile(kernels) - nothing)
    });
    figures.collect()
}

/// Returns true if a program's own figures agree with the kernel's. The first packet is the shortest.
fn agree(figures: &[(f64, f64)]) -> bool {
    let (own, kernels) = figures[0];
    let untimed = kernels - own;
    let is_as_the_kernels =
        |&(own, kernels): &(f64, f64)| (own + untimed - kernels).abs() <= TOLERANCE * kernels + ROUNDING_NS;
    untimed.abs() <= MAX_UNTIMED_SHARE * kernels && figures.iter().all(is_as_the_kernels)
}

/// Loads the programs, and returns what each of these packets costs, as [`compare`] does.
fn costs(empty: &Kernel, program: Program, packets: &[Vec<u8>]) -> Vec<(f64, f64)> {
    let mut rig = Rig::with(SETTINGS, LinkType::Ethernet);
    for bytes in packets {
        // This loads the XDP programs, and creates the flow.
        run(&mut rig.kernel, program, bytes);
        // The first packets of a run take longer, so the timed packet must be in the middle of a run. Two of the
        // packets share a counter, and so do the two programs for ingress: two or four times a third of `EVERY` is
        // still no multiple of `EVERY`.
        repeat(&rig.kernel.programs, name(program).0.name(), bytes, EVERY / 3);
    }
    compare(&rig, empty, program, packets)
}

#[test]
fn what_a_packet_takes_is_what_the_kernels_statistics_say() {
    stay_on(0).unwrap();
    let _statistics = enable_stats(Stats::RunTime).unwrap();
    let empty = empty();
    let between = |number, payload: &[u8]| Ip::between(v4(1), v4(2)).frame(number, payload);
    // No method measures this port.
    let datagram = [&[0x9c, 0x40, 0x27, 0x0f, 0, 12, 0, 0][..], &[0; 4]].concat();
    let segment = Tcp::stamped(1, 2).bytes();
    // The first packet takes the stage slow, the next two the fast path, the last the stages slow and step4.
    let packets = [
        between(UDP, &datagram),
        between(TCP, &segment),
        Ip::between(v6(1), v6(2)).frame(TCP, &segment),
        echo(v4(1), v4(2), 1, 1, false),
    ];
    for program in Program::ALL {
        let mut found = Vec::new();
        // Each attempt loads the programs anew: where their maps happen to lie in memory may make packets that follow
        // each other at once cost half as much again, but not the one that is timed, since the clock is read before it.
        let is_same = (0..ATTEMPTS).any(|_| {
            let figures = costs(&empty, program, &packets);
            let line = figures.iter().map(|(own, kernels)| format!("{own:.1} of {kernels:.1}"));
            found.push(line.collect::<Vec<_>>().join(", "));
            agree(&figures)
        });
        eprintln!("{program:?}, ns: {}", found.join("; "));
        assert!(is_same, "{program:?}: {found:?}");
    }
}

#[test]
fn one_packet_in_65536_is_timed_plausibly() {
    stay_on(0).unwrap();
    let mut rig = Rig::new();
    let bytes = Ip::between(v4(1), v4(2)).frame(TCP, &Tcp::stamped(1, 2).bytes());
    for program in Program::ALL {
        run(&mut rig.kernel, program, &bytes);
        let (own, _) = name(program);
        // Each direction has its own counters, but the two programs for ingress share theirs.
        let direction = program.direction();
        let so_far = counters(&rig.kernel, rig.twin.interface_id).packets(direction) as u32 % EVERY;
        let before = timed(&rig, own);
        repeat(&rig.kernel.programs, own.name(), &bytes, EVERY - so_far);
        assert_eq!(timed(&rig, own), before, "the next one is");
        for number in 0..20 {
            let (before, began) = (timed(&rig, own), Instant::now());
            repeat(&rig.kernel.programs, own.name(), &bytes, EVERY);
            let elapsed = began.elapsed().as_nanos() as u64;
            let Timed { packets, ns } = since(before, timed(&rig, own));
            // An interrupt between two readings of the clock makes a packet's time unknown.
            assert!(packets == 1 || packets == 0 && ns == 0, "{number}: {packets}");
            assert!(packets == 0 || 0 < ns && ns < elapsed, "{number}: {ns} of {elapsed} ns");
        }
        let all = since(before, timed(&rig, own)).packets;
        assert!((18..=20).contains(&all), "{all} of 20");
    }
    let total = counters(&rig.kernel, rig.twin.interface_id).timed();
    let by_program = PacketProgram::ALL.map(|program| timed(&rig, program).packets);
    assert_eq!(total.packets, by_program.iter().sum::<u64>());
}

#[test]
fn a_packet_is_timed_once_where_a_stage_is_missing() {
    stay_on(0).unwrap();
    let mut rig = Rig::new();
    let id = rig.twin.interface_id;
    let request = echo(v4(1), v4(2), 1, 1, false);
    let (own, _) = name(Program::Egress);
    for stages in [&[Stage::StepV4][..], &[Stage::Slow]] {
        unload(&mut rig, stages);
        let (before, missing) = (timed(&rig, own), |rig: &Rig| {
            counters(&rig.kernel, id).untracked[Untracked::NotLoaded as usize]
        });
        let not_loaded = missing(&rig);
        repeat(&rig.kernel.programs, own.name(), &request, 4 * EVERY + 1);
        assert_eq!(missing(&rig) - not_loaded, 4 * TIMED_EVERY + 1, "{stages:?}");
        let Timed { packets, ns } = since(before, timed(&rig, own));
        assert!((3..=5).contains(&packets) && ns > 0, "{stages:?}: {packets}, {ns} ns");
        assert!(ns / packets < 1_000_000, "{stages:?}: {ns} ns of {packets}");
    }
}
