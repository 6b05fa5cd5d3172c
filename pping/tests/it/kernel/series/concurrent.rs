//! Several CPUs add samples while epochs end.

use std::{
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    thread,
};

use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};
use pping::{
    aggregate::Distribution,
    kernel::{
        drain::{Event, drain},
        load::{self, Hook},
        load_options::LoadOptions,
        loaded::Kernel,
    },
};
use pping_bench_programs::{BASELINE, BASELINE_ADD_ONLY};
use pping_common::{
    abi::{Emit, RttEvent},
    limits::RING_BYTES,
    method::{Method, Methods},
    parse::LinkType,
    rtt::Rules,
    series::SeriesCounts,
};
use pping_lab::stay_on;

use super::{
    Ip, Sums, TCP, Tcp,
    rig::{counters, kernels, loopback},
    v4,
};

const CPUS: usize = 2;

/// Load options for `tcp-ts` only, which is enough here: the program contains all of pping twice.
fn by_timestamps(settings: LoadOptions) -> LoadOptions {
    LoadOptions { rules: Rules { methods: Methods::NONE.with(Method::TcpTs), ..settings.rules }, ..settings }
}

/// Makes samples on each CPU, `runs` at a time while there is `room`. Meanwhile calls `meanwhile` until it returns
/// true, and once more at the end. Returns the number of runs on each CPU.
fn run_on_all_cpus(
    kernel: &mut Kernel,
    (runs, room): (u32, &AtomicI64),
    mut meanwhile: impl FnMut(&mut Kernel) -> bool,
) -> Vec<u64> {
    load::load_packet_programs(&mut kernel.programs, &[Hook::Tc]).unwrap();
    let program: &SchedClassifier = kernel.programs.program("bench_echo").unwrap().try_into().unwrap();
    let programs: Vec<SchedClassifier> = (0..CPUS)
        .map(|_| SchedClassifier::from_program_info(program.info().unwrap(), "bench_echo".into()).unwrap())
        .collect();
    // The bench program writes timestamps at their usual position.
    let packet = Ip::between(v4(1), v4(2)).frame(TCP, &Tcp::stamped(1, 2).bytes());
    let is_enough = AtomicBool::new(false);
    let counts = thread::scope(|scope| {
        let threads: Vec<_> = programs
            .into_iter()
            .enumerate()
            .map(|(cpu, program)| {
                let (packet, is_enough) = (&packet, &is_enough);
                scope.spawn(move || {
                    stay_on(cpu).unwrap();
                    let mut count = 0;
                    while !is_enough.load(Ordering::SeqCst) {
                        if room.load(Ordering::SeqCst) <= 0 {
                            thread::yield_now();
                            continue;
                        }
                        room.fetch_sub(i64::from(runs), Ordering::SeqCst);
                        let options =
                            TestRunOptions { data_in: Some(packet), repeat: runs, ..TestRunOptions::new() };
                        program.test_run(options).unwrap();
                        count += u64::from(runs);
                    }
                    count
                })
            })
            .collect();
        while !meanwhile(kernel) {}
        is_enough.store(true, Ordering::SeqCst);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    meanwhile(kernel);
    counts
}

#[test]
fn millions_of_samples_over_hundreds_of_intervals_add_up() {
    // Without an addition that returns the old value, CPUs that take a block at once may all fail. That is counted.
    let objects = [(BASELINE, 0), (BASELINE_ADD_ONLY, 10)];
    for ((object, most_unaggregated), settings) in objects.into_iter().zip(kernels()) {
        assert_millions_add_up(object, settings, most_unaggregated);
    }
}

fn assert_millions_add_up(object: &[u8], settings: LoadOptions, most_unaggregated: u64) {
    const INTERVALS: u32 = 250;
    const MILLION: u64 = 1_000_000;
    let mut kernel =
        load::open(object, &LoadOptions { emit: Emit::NOTHING, ..by_timestamps(settings) }).unwrap();
    let interface_id = loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    let (mut sums, mut intervals, mut with_samples) = (Sums::default(), 0, 0);
    let runs = run_on_all_cpus(&mut kernel, (10_000, &AtomicI64::new(i64::MAX)), |kernel| {
        let before = sums.total();
        sums.rotate(kernel);
        intervals += 1;
        with_samples += u32::from(sums.total() > before);
        with_samples >= INTERVALS && sums.total() > MILLION
    });
    let counted = counters(&kernel, interface_id);
    let samples: u64 = counted.samples.iter().flatten().sum();
    // The first TSval of each flow is not recorded: it may not be the first of its tick.
    assert_eq!(samples, runs.iter().map(|runs| runs - 1).sum::<u64>());
    assert_eq!(sums.total() + counted.unaggregated, samples, "in {intervals} intervals");
    assert!(counted.unaggregated <= most_unaggregated, "{} unaggregated", counted.unaggregated);
    assert_eq!(counted.contended, 0);
    let mut events = 0;
    drain(&mut kernel.events, |_| events += 1);
    assert_eq!(events, 0, "no event is emitted for a sample");
    eprintln!("{samples} samples in {with_samples} intervals of {intervals}");
}

#[test]
fn each_interval_has_whole_samples_as_in_their_events() {
    for (object, settings) in [BASELINE, BASELINE_ADD_ONLY].into_iter().zip(kernels()) {
        assert_whole_samples(object, settings);
    }
}

fn assert_whole_samples(object: &[u8], settings: LoadOptions) {
    let mut kernel = load::open(object, &by_timestamps(settings)).unwrap();
    let interface_id = loopback(LinkType::Ethernet).register(&mut kernel).unwrap();
    let (mut reported, mut sums) = (SeriesCounts::EMPTY, Sums::default());
    // This is half of what the ring holds.
    let room = AtomicI64::new(i64::from(RING_BYTES) / 2 / (8 + size_of::<RttEvent>() as i64));
    run_on_all_cpus(&mut kernel, (100, &room), |kernel| {
        kernel.series.rotate();
        kernel
            .series
            .take(|key, counts| {
                // Count, sum, minimum and maximum of an epoch must belong to the same samples.
                let (count, min, max) = (counts.count(), counts.min().unwrap(), counts.max().unwrap());
                assert!(min * count <= counts.sum && counts.sum <= max * count, "{counts:?}");
                sums.0.entry(*key).or_default().add(counts);
            })
            .unwrap();
        kernel.series.commit().unwrap();
        while !drain(&mut kernel.events, |event| match event {
            Event::Rtt(event) => {
                reported.sample(event.rtt, 0);
                room.fetch_add(1, Ordering::SeqCst);
            }
            Event::Flow(_) | Event::End(_) => {}
        }) {}
        reported.count() > 50_000
    });
    let counted = counters(&kernel, interface_id);
    assert_eq!(counted.lost, [0; 4], "the ring was read in time");
    let mut expected = Distribution::default();
    expected.add(&reported);
    let mut aggregated = Distribution::default();
    sums.0.values().for_each(|series| aggregated.merge(series));
    assert!(aggregated.count() > 50_000);
    assert_eq!(
        (aggregated.bins, aggregated.sum, aggregated.range),
        (expected.bins, expected.sum, expected.range)
    );
}
