//! Checks the BPF features of the kernel, and that it loads pping's programs.

use aya::{maps::MapType, programs::ProgramInfo, sys::is_map_supported};

use super::{name::Name, report::Check};
use crate::{
    agent::load_options,
    config::{Config, Ingress},
    kernel::{
        Error,
        features::{DisabledFeatures, Feature, Features},
        inspect::maps,
        load,
        load_options::LoadOptions,
        loaded::Kernel,
    },
};

/// Sizes to load the programs with, so that they take next to no memory. No other map has one of these sizes, so
/// [`maps::scaled`] can recognise the maps.
const FEW_FLOWS: u32 = 4_099;
const FEW_GROUPS: u32 = 67;
const FEW_PENDING: u32 = 4_093;

/// The finding of a check for which capabilities are missing.
const NOT_WITHOUT: &str = "cannot be checked without these capabilities";

/// Checks the BPF features of the kernel.
pub(super) fn features(may_load: bool) -> (Vec<Check>, Option<Features>) {
    if !may_load {
        let names = Feature::ALL.map(Name::from).into_iter().chain([Name::RingBuffer]);
        return (names.map(|name| Check::unknown(name, NOT_WITHOUT)).collect(), None);
    }
    let (mut checks, features) =
        match DisabledFeatures::from_environment().and_then(|it| Ok(Features::probe(it)?)) {
            Ok(features) => (Feature::ALL.map(|it| feature(it, features)).to_vec(), Some(features)),
            Err(error) => {
                let unknown = |feature: Feature| Check::unknown(feature.into(), error.to_string());
                (Feature::ALL.map(unknown).to_vec(), None)
            }
        };
    checks.push(match is_map_supported(MapType::RingBuf) {
        Ok(true) => Check::ok(Name::RingBuffer, "in this kernel"),
        Ok(false) => Check::missing(
            Name::RingBuffer,
            "not in this kernel",
            "boot a newer kernel: pping needs the ring buffer to receive samples",
        ),
        Err(error) => Check::unknown(Name::RingBuffer, error.to_string()),
    });
    (checks, features)
}

fn feature(feature: Feature, features: Features) -> Check {
    if features.has(feature) {
        return Check::ok(feature.into(), "in this kernel");
    }
    let remedy = match feature {
        Feature::Btf => {
            format!("a kernel built with {} has it; until then {}", feature.since(), feature.instead())
        }
        _ => format!("{} has it; until then {}", feature.since(), feature.instead()),
    };
    Check::degraded(feature.into(), "not in this kernel", remedy)
}

/// The result of loading the programs.
pub(super) struct Loaded {
    /// Whether the programs load, and whether they run as machine code.
    pub(super) checks: Vec<Check>,
    /// The memory that the maps of this configuration take.
    pub(super) memory: Option<maps::Size>,
}

/// Loads the programs and unloads them again.
pub(super) fn programs(config: &Config, may_load: bool) -> Loaded {
    if !may_load {
        let checks = [Name::Programs, Name::Jit].map(|name| Check::unknown(name, NOT_WITHOUT)).to_vec();
        return Loaded { checks, memory: None };
    }
    let real = match load_options(config) {
        Ok(options) => options,
        Err(error) => {
            let checks =
                [Name::Programs, Name::Jit].map(|name| Check::unknown(name, error.to_string())).to_vec();
            return Loaded { checks, memory: None };
        }
    };
    let max_groups = if real.grouping.is_on() { FEW_GROUPS } else { real.max_groups };
    // The machine may have too little memory for what is checked.
    let small = LoadOptions {
        max_flows: FEW_FLOWS,
        max_pending: FEW_PENDING,
        max_groups,
        saves_memory: true,
        ..real
    };
    match load::load(&small, config.live.ingress != Ingress::Tc) {
        Ok(kernel) => {
            let infos = infos(&kernel);
            let memory = maps::scaled(&small, &real);
            Loaded { checks: vec![verified(&infos), jit(&infos)], memory }
        }
        Err(error) => {
            let checks = vec![refused(&error), Check::unknown(Name::Jit, "no program could be loaded")];
            Loaded { checks, memory: None }
        }
    }
}

/// The memory that the maps of a configuration take, from making them. `None` if the kernel does not make them.
pub(super) fn size_of_maps(config: &Config) -> Option<maps::Size> {
    let _kernel = load::make_maps(&load_options(config).ok()?).ok()?;
    maps::size()
}

/// The programs that are loaded, by name.
fn infos(kernel: &Kernel) -> Vec<(String, ProgramInfo)> {
    let mut infos: Vec<_> = kernel
        .programs
        .programs()
        .filter_map(|(name, program)| Some((name.to_owned(), program.info().ok()?)))
        .collect();
    infos.sort_by(|(a, _), (b, _)| a.cmp(b));
    infos
}

fn verified(infos: &[(String, ProgramInfo)]) -> Check {
    let each: Vec<String> = infos
        .iter()
        .map(|(name, info)| match info.verified_instruction_count() {
            Some(count) => format!("{name} {count}"),
            // Only Linux 5.16 and newer report it.
            None => format!("{name} ?"),
        })
        .collect();
    Check::ok(Name::Programs, format!("load; instructions verified: {}", each.join(", ")))
}

fn jit(infos: &[(String, ProgramInfo)]) -> Check {
    if infos.is_empty() {
        return Check::unknown(Name::Jit, "the kernel reports nothing about the programs");
    }
    if infos.iter().all(|(_, info)| info.size_jitted() > 0) {
        return Check::ok(Name::Jit, "the programs run as machine code");
    }
    Check::degraded(
        Name::Jit,
        "off: the kernel interprets the programs",
        "set sysctl net.core.bpf_jit_enable=1, which makes them several times as fast",
    )
}

fn refused(error: &Error) -> Check {
    let reason = error.to_string();
    let remedy = if reason.contains("Operation not permitted") || reason.contains("os error 1)") {
        "something forbids bpf(2) despite the capabilities: a container's seccomp profile, lockdown of the \
         kernel (/sys/kernel/security/lockdown), or the memlock limit before Linux 5.11"
    } else {
        "this may be a bug of pping or of the kernel: report it with the output of pping -vv -i"
    };
    // The verifier's log goes on for pages.
    Check::missing(Name::Programs, reason.lines().next().unwrap_or_default(), remedy)
}
