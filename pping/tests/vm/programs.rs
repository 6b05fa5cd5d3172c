//! The verifier of this kernel accepts the programs with every setting.

use aya::programs::{Program, ProgramInfo};
use pping::kernel::{load, load_options::LoadOptions};
use pping_common::{
    abi::Emit,
    copies::COPIES_WITHIN,
    group::Grouping,
    method::{Method, Methods},
    parse::Decap,
    rtt::{RttBasis, Rules},
};

use super::{features::has_walks, report::verified};

/// Somewhat more than a quarter of what kernels allow, because the next compiler may generate more instructions from the same
/// source.
const BUDGET: u32 = 270_000;

/// Small tables, because the maps are created again for each set.
const SMALL: LoadOptions = LoadOptions { max_flows: 16, max_groups: 16, ..LoadOptions::DEFAULT };
const EVERY_EVENT: Emit = Emit(Emit::SAMPLES.0 | Emit::FLOWS.0 | Emit::ENDS.0);
const NETWORKS: Grouping =
    Grouping { by_source: 1, by_destination: 1, v4_len: 24, v6_len: 48, ..Grouping::NONE };
const LABELS: Grouping = Grouping { by_source: 1, by_label: 1, ..Grouping::NONE };
const CLASSES: Grouping = Grouping { by_dscp: 1, ..Grouping::NONE };
const RARELY: Rules =
    Rules { rate_limit: 100_000_000, rtt_rate: 1 << 15, rtt_basis: RttBasis::Min, ..Rules::UNLIMITED };
const LOCAL: Rules = Rules { include_local: true, ..Rules::UNLIMITED };
const RARELY_AND_LOCAL: Rules = Rules { include_local: true, ..RARELY };
const EVERYTHING: LoadOptions = LoadOptions {
    emit: EVERY_EVENT,
    rules: RARELY_AND_LOCAL,
    grouping: Grouping { by_dscp: 1, by_destination: 1, ..LABELS },
    excludes: true,
    decap: Decap::ALL,
    max_networks: 16,
    log: true,
    ..SMALL
};
const EVERYTHING_BOTH: LoadOptions = LoadOptions {
    rules: Rules { methods: Methods::ALL.with_seq_always(), ..RARELY_AND_LOCAL },
    ..EVERYTHING
};

/// The default settings, and the most expensive ones.
const EXTREMES: [(&str, LoadOptions); 3] =
    [("default", SMALL), ("everything", EVERYTHING), ("everything-both", EVERYTHING_BOTH)];

/// One setting at a time.
const SETS: [(&str, LoadOptions); 14] = [
    ("no-events", LoadOptions { emit: Emit::NOTHING, ..SMALL }),
    ("every-event", LoadOptions { emit: EVERY_EVENT, ..SMALL }),
    ("rate-limits", LoadOptions { rules: RARELY, ..SMALL }),
    ("include-local", LoadOptions { rules: LOCAL, ..SMALL }),
    ("by-network", LoadOptions { grouping: NETWORKS, ..SMALL }),
    ("by-label", LoadOptions { grouping: LABELS, ..SMALL }),
    ("by-dscp", LoadOptions { grouping: CLASSES, ..SMALL }),
    ("networks", LoadOptions { max_networks: 16, ..SMALL }),
    ("excludes", LoadOptions { excludes: true, ..SMALL }),
    ("decap", LoadOptions { decap: Decap::ALL, ..SMALL }),
    ("log", LoadOptions { log: true, ..SMALL }),
    ("mirror", LoadOptions { copies_within: COPIES_WITHIN, decap: Decap::ALL, ..SMALL }),
    ("tcp-ts-only", LoadOptions { rules: measured_by(Methods::NONE.with(Method::TcpTs)), ..SMALL }),
    ("tcp-both", LoadOptions { rules: measured_by(Methods::ALL.with_seq_always()), ..SMALL }),
];

const fn measured_by(methods: Methods) -> Rules {
    Rules { methods, ..Rules::UNLIMITED }
}

/// The table of kernels has no column for what `--residence` adds.
#[test]
fn the_most_loads_with_forwarding_times() {
    let settings = LoadOptions { residence: Some(0), ..EVERYTHING_BOTH };
    for (name, info) in loaded("everything-both and forwarding", &settings) {
        println!("{name}: {:?} instructions", info.verified_instruction_count());
    }
}

fn load(features: &str, settings: &LoadOptions) {
    for (name, info) in loaded(features, settings) {
        verified(&name, features, &info);
    }
}

/// Loads the programs for this kernel, which differ between kernels. Returns those that were loaded.
fn loaded(features: &str, settings: &LoadOptions) -> Vec<(String, ProgramInfo)> {
    let kernel =
        load::load(settings, true).unwrap_or_else(|error| panic!("with {features}: {}", chain(&error)));
    // The other sweep would do the same, with a system call for each flow.
    let sweep = if has_walks() { "pping_sweep" } else { "pping_sweep_one" };
    assert!(kernel.programs.program(sweep).unwrap().fd().is_ok(), "{sweep} is refused with {features}");
    let loaded = kernel.programs.programs().filter(|(_, program)| program.fd().is_ok());
    let within_budget = |(name, program): (&str, &Program)| {
        let info = program.info().unwrap();
        let count = info.verified_instruction_count();
        assert!(count.is_none_or(|count| count < BUDGET), "{name} with {features}: {count:?}");
        // A kernel that cannot translate a program may run it all the same, several times as slowly.
        assert!(info.size_jitted() > 0, "{name} with {features} would be interpreted");
        (name.to_owned(), info)
    };
    loaded.map(within_budget).collect()
}

/// Returns an error with its causes. The last cause is the verifier's log.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn the_least_and_the_most_load() {
    for (features, settings) in &EXTREMES {
        load(features, settings);
    }
}

#[test]
fn every_feature_loads() {
    for (features, settings) in &SETS {
        load(features, settings);
    }
}

/// All combinations would take an hour in the guest, so only the machine's own kernel tests them. Here each pair of
/// choices occurs at least once: an orthogonal array of one factor with four levels and four factors with two.
#[test]
fn pairs_of_features_load() {
    let groupings = [("none", Grouping::NONE), ("network", NETWORKS), ("label", LABELS), ("dscp", CLASSES)];
    for (number, (group, grouping)) in groupings.into_iter().enumerate() {
        let (first, second) = (number & 1 != 0, number & 2 != 0);
        for is_flipped in [false, true] {
            let [events, tunnels, excludes, local] =
                [is_flipped, is_flipped ^ first, is_flipped ^ second, is_flipped ^ first ^ second];
            let features = format!(
                "pair:events={events},group={group},tunnels={tunnels},excludes={excludes},local={local}"
            );
            let settings = LoadOptions {
                emit: if events { EVERY_EVENT } else { Emit::NOTHING },
                grouping,
                decap: if tunnels { Decap::ALL } else { Decap::NONE },
                excludes,
                rules: if local { RARELY_AND_LOCAL } else { RARELY },
                log: !excludes,
                ..SMALL
            };
            load(&features, &settings);
        }
    }
}
