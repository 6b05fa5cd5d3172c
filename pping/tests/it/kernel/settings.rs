//! The verifier accepts the programs with every setting, and they work.

use std::collections::BTreeMap;

use pping::kernel::{
    features::{DisabledFeatures, Feature},
    load,
    load_options::LoadOptions,
    loaded::Kernel,
};
use pping_common::{
    abi::Emit,
    copies::COPIES_WITHIN,
    group::Grouping,
    method::{Method, Methods},
    parse::{Decap, LinkType},
    rtt::{RttBasis, Rules},
};

use super::{
    frames::{echo, v4, v6},
    rig::{Program, Rig, SETTINGS, is_exhaustive, samples},
};

/// Somewhat more than a quarter of what the kernel allows, because the next compiler may generate more instructions from the same
/// source.
const BUDGET: u32 = 270_000;

fn assert_within_budget(kernel: &Kernel, settings: &LoadOptions) {
    for (name, program) in kernel.programs.programs().filter(|(_, program)| program.fd().is_ok()) {
        let verified = program.info().unwrap().verified_instruction_count().unwrap();
        assert!(verified > 0 && verified < BUDGET, "{name}: {verified} with {settings:?}");
    }
}

/// Returns every combination of the settings, except tunnels.
fn combinations() -> Vec<LoadOptions> {
    let mut combinations = Vec::new();
    for rate_limit in [0, 100_000_000] {
        for (rtt_rate, rtt_basis) in
            [(0, RttBasis::Smoothed), (1 << 16, RttBasis::Smoothed), (1 << 15, RttBasis::Min)]
        {
            for include_local in [false, true] {
                for log in [false, true] {
                    let rules = Rules { rate_limit, rtt_rate, rtt_basis, include_local, ..SETTINGS.rules };
                    combinations.push(LoadOptions { rules, log, ..SETTINGS });
                }
            }
        }
    }
    combinations
}

/// Selects six of the combinations, in which each pair of values of two settings occurs.
fn pairs(combinations: Vec<LoadOptions>) -> Vec<LoadOptions> {
    let is_chosen = |LoadOptions { rules, log, .. }: &LoadOptions| {
        let is_limited = rules.rate_limit > 0;
        rules.include_local == (is_limited ^ (rules.rtt_rate == 1 << 16))
            && *log == (is_limited ^ (rules.rtt_rate == 1 << 15))
    };
    combinations.into_iter().filter(is_chosen).collect()
}

#[test]
fn all_settings_load_within_the_budget_and_work() {
    let chosen = if is_exhaustive() { combinations() } else { pairs(combinations()) };
    assert!(chosen.len() >= 6);
    for settings in chosen {
        let mut rig = Rig::with(settings, LinkType::Ethernet);
        for [a, b] in [[v4(1), v4(2)], [v6(1), v6(2)]] {
            rig.send(Program::Egress, &echo(a, b, 1, 1, false));
            rig.send(Program::Xdp, &echo(b, a, 1, 1, true));
            rig.send(Program::Ingress, &echo(b, a, 2, 1, false));
            rig.send(Program::Egress, &echo(a, b, 2, 1, true));
        }
        assert_within_budget(&rig.kernel, &settings);
        rig.sweep();
        assert_eq!(samples(&rig.agree(&format!("{settings:?}"))).len(), 4);
    }
}

/// [`extremes`] combines other settings with all tunnels.
#[test]
fn all_tunnels_load_within_the_budget_without_others() {
    let at_most = Decap::ALL.0.count_ones();
    let is_chosen = |tunnels: &u32| {
        let count = tunnels.count_ones();
        is_exhaustive() || count <= 1 || count >= at_most - 1
    };
    let sizes: BTreeMap<u32, u32> = (0..=Decap::ALL.0)
        .filter(is_chosen)
        .map(|tunnels| {
            let settings = LoadOptions { decap: Decap(tunnels), ..SETTINGS };
            let kernel = load::load(&settings, true).unwrap();
            assert_within_budget(&kernel, &settings);
            let program = kernel.programs.program("pping_tc_slow").unwrap();
            (tunnels, program.info().unwrap().size_translated().unwrap())
        })
        .collect();
    for (tunnels, size) in &sizes {
        for other in (0..at_most).map(|bit| 1 << bit).filter(|other| tunnels & other == 0) {
            let Some(with_other) = sizes.get(&(tunnels | other)) else { continue };
            assert!(with_other > size, "{with_other} bytes with {other:#x} in {tunnels:#x}, else {size}");
        }
    }
    eprintln!("{} bytes without tunnels, {} with all", sizes[&0], sizes[&Decap::ALL.0]);
}

/// Returns each method alone, all but one for each method if the tests are exhaustive, and the other sets that options
/// can give.
fn method_sets() -> Vec<Methods> {
    let alone = Method::ALL.map(|method| Methods::NONE.with(method));
    let but_one =
        Method::ALL.map(|method| Methods::ALL.without(method)).into_iter().filter(|_| is_exhaustive());
    let seq = Methods::NONE.with_seq_always();
    let others = [Methods::ALL, Methods::ALL.with_seq_always(), seq, seq.with(Method::TcpTs)];
    alone.into_iter().chain(but_one).chain(others).collect()
}

#[test]
fn all_methods_load_within_the_budget() {
    for methods in method_sets() {
        let settings = LoadOptions { rules: Rules { methods, ..SETTINGS.rules }, ..SETTINGS };
        let kernel = load::load(&settings, true).unwrap();
        assert_within_budget(&kernel, &settings);
    }
}

#[test]
fn mirror_mode_loads_within_the_budget() {
    for (decap, log) in [(Decap::NONE, false), (Decap::ALL, true)] {
        let rules = Rules { methods: Methods::ALL.with_seq_always(), ..SETTINGS.rules };
        let max_networks = if log { 16 } else { 0 };
        let settings =
            LoadOptions { copies_within: COPIES_WITHIN, decap, log, max_networks, rules, ..SETTINGS };
        let kernel = load::load(&settings, true).unwrap();
        assert_within_budget(&kernel, &settings);
    }
}

fn groupings() -> [Grouping; 3] {
    let nets = Grouping { by_source: 1, by_destination: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };
    let file = Grouping { by_source: 1, by_destination: 1, by_dscp: 1, by_label: 1, ..Grouping::NONE };
    [nets, file, Grouping { by_dscp: 1, ..Grouping::NONE }]
}

/// Returns the fewest settings and the most, each in several combinations.
fn extremes(grouping: Grouping) -> impl Iterator<Item = LoadOptions> {
    let all = Emit::SAMPLES.with(Emit::FLOWS).with(Emit::ENDS);
    let both = Methods::ALL.with_seq_always();
    let extremes = [
        (Emit::NOTHING, false, Decap::NONE, Methods::ALL),
        (all, true, Decap::ALL, Methods::ALL),
        (all, true, Decap::ALL, both),
    ];
    extremes.into_iter().flat_map(move |(emit, excludes, decap, methods)| {
        // The rate limit hardly changes the programs.
        let combinations = combinations()
            .into_iter()
            .filter(|it| it.rules.rate_limit > 0 && it.rules.rtt_basis == RttBasis::Min);
        // Programs without local addresses and log are smaller. The log costs the most, so one test of it is enough.
        let is_most = |it: &LoadOptions| it.rules.include_local && it.log;
        let combinations = combinations.filter(move |it| is_most(it) || is_exhaustive() && methods != both);
        combinations.map(move |settings| LoadOptions {
            grouping,
            max_groups: 16,
            emit,
            excludes,
            residence: excludes.then_some(1),
            max_networks: if excludes { 16 } else { 0 },
            decap,
            rules: Rules { methods, ..settings.rules },
            ..settings
        })
    })
}

#[test]
fn groups_and_events_load_within_the_budget() {
    for settings in groupings().into_iter().flat_map(extremes) {
        let kernel = load::load(&settings, true).unwrap();
        assert_within_budget(&kernel, &settings);
    }
}

#[test]
fn the_programs_for_older_kernels_load_within_the_budget() {
    let [_, file, _] = groupings();
    for settings in extremes(Grouping::NONE).chain(extremes(file)) {
        let settings = LoadOptions { without: DisabledFeatures::these(&Feature::ALL), ..settings };
        let kernel = load::load(&settings, true).unwrap();
        assert_within_budget(&kernel, &settings);
    }
}
