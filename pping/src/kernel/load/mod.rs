//! Loading the kernel programs.

mod stages;

use std::{panic, sync::Mutex, thread};

use aya::{
    Ebpf, EbpfLoader, VerifierLogLevel,
    maps::{Array, HashMap, LpmTrie, MapError, RingBuf},
    programs::Program,
};
use pping_common::{
    abi::{Offsets, PINNED_MAPS},
    copies,
    hash::TableKeys,
    limits::{
        DEFAULT_MAX_INTERFACES, FOLLOWED_PAIRS, LEASE_SECONDS, MAX_LABELLED_PREFIXES,
        MAX_LABELLED_PREFIXES_COUNTED, MAX_NETWORK_PREFIXES, MAX_PASSING, max_unproved_groups,
    },
    parse::Scope,
    rings::{self, RINGS},
    table::{self, Table},
};

pub use self::stages::{Hook, pinned as pinned_stages, unpin as unpin_stages};
use super::{
    clock,
    counters::{self, CounterMap},
    features::{Feature, Features},
    interface_ids::InterfaceIds,
    load_options::LoadOptions,
    loaded::Kernel,
    object::{self, array, refused, sweep_program, take_map},
    persistent::PersistentMap,
    pins::{self, Pins},
    random::random,
    residence::{self, ResidenceMap},
    series::SeriesTable,
    signals::{self, retry_interrupted},
    sweep::{Sweeper, due_len},
};
use crate::kernel::Error;

/// Loads the programs. XDP is loaded only if it will be used, because some kernels accept the others only.
///
/// # Errors
/// If the kernel does not accept them.
pub fn load(options: &LoadOptions, with_xdp: bool) -> Result<Kernel, Error> {
    let hooks = if with_xdp { &Hook::ALL[..] } else { &[Hook::Tc] };
    let mut kernel = load_entry_programs(options, hooks, None)?;
    load_stages(&mut kernel, hooks, None)?;
    Ok(kernel)
}

/// Makes the maps, or opens them if they are pinned in `pins`, and loads the attached programs of these hooks. Until
/// [`load_stages`] they count packets, and measure nothing.
///
/// # Errors
/// If the kernel does not accept them.
pub fn load_entry_programs(
    options: &LoadOptions,
    hooks: &[Hook],
    pins: Option<&Pins>,
) -> Result<Kernel, Error> {
    let _held = signals::hold()?;
    let features = features(options)?;
    for feature in features.missing() {
        tracing::info!("this kernel has no {feature} ({}); {}", feature.since(), feature.instead());
    }
    // Links end with the agent, or are pinned to outlive it; filters have to notice that the agent is gone.
    let lease = if features.has(Feature::Tcx) { 0 } else { clock::ticks(LEASE_SECONDS)? };
    let object = object::for_features(features)?;
    let mut kernel = open_with(object, options, pins, features, lease)?;
    if options.saves_memory {
        // Verifying is what takes the most memory, and it comes next.
        object::release_memory(object);
    }
    load_programs(&mut kernel.programs, hooks, options.saves_memory, |name| !stages::is_stage(name))?;
    if kernel.has_lease() {
        // The programs must have the lease before they are attached.
        load_sweep(&mut kernel)?;
        kernel.sweep()?;
        kernel.sweeper.keep_lease()?;
    }
    Ok(kernel)
}

/// Loads the stages of these hooks, and has the attached programs call them: from then on packets are measured. With
/// `pins`, also pins the programs.
///
/// # Errors
/// If the kernel does not accept them.
pub fn load_stages(kernel: &mut Kernel, hooks: &[Hook], pins: Option<&Pins>) -> Result<(), Error> {
    let _held = signals::hold()?;
    let saves_memory = kernel.options.saves_memory;
    load_programs(&mut kernel.programs, hooks, saves_memory, stages::is_stage)?;
    if kernel.has_lease() {
        // On a slow machine the lease may have run out meanwhile. No flows exist yet that would have to start over.
        kernel.sweeper.begin_lease(&kernel.series);
    } else {
        load_sweep(kernel)?;
    }
    kernel.sweep()?;
    stages::fill(&mut kernel.programs, hooks)?;
    if let Some(pins) = pins {
        pin(kernel, pins)?;
    }
    if kernel.residence.as_ref().is_some_and(ResidenceMap::has_queues) {
        // Never pinned: without the agent nothing reads what they measure.
        residence::attach(&mut kernel.programs)?;
    }
    object::release_memory(object::for_features(kernel.features)?);
    Ok(())
}

/// Loads the programs of some hooks that are not loaded yet, and has them call their stages.
///
/// # Errors
/// If the kernel does not accept them.
pub fn load_packet_programs(programs: &mut Ebpf, hooks: &[Hook]) -> Result<(), Error> {
    load_programs(programs, hooks, false, |_| true)?;
    stages::fill(programs, hooks)
}

/// Loads the programs of some hooks that are due and not loaded yet. It loads them in parallel: verifying takes most of
/// the time of a start, and one CPU verifies one program. If this `saves_memory`, it loads one at a time: the kernel takes
/// tens of megabytes to verify one.
fn load_programs(
    programs: &mut Ebpf,
    hooks: &[Hook],
    saves_memory: bool,
    is_due: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let turn = Mutex::new(());
    let in_turn = || saves_memory.then(|| turn.lock());
    thread::scope(|scope| {
        let verified: Vec<_> = programs
            .programs_mut()
            .filter(|(name, program)| program.fd().is_err() && is_due(name))
            .filter_map(|(name, program)| match program {
                Program::SchedClassifier(program) if hooks.contains(&Hook::Tc) => {
                    let load = || {
                        let _turn = in_turn();
                        retry_interrupted(|| program.load())
                    };
                    Some((name, scope.spawn(load)))
                }
                Program::Xdp(program) if hooks.contains(&Hook::Xdp) => {
                    let load = || {
                        let _turn = in_turn();
                        retry_interrupted(|| program.load())
                    };
                    Some((name, scope.spawn(load)))
                }
                _ => None,
            })
            .collect();
        for (name, verified) in verified {
            let result = verified.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
            result.map_err(|error| refused(name, error))?;
        }
        Ok(())
    })
}

fn pin(kernel: &mut Kernel, pins: &Pins) -> Result<(), Error> {
    stages::pin(&kernel.programs, pins)?;
    for (name, program) in kernel.programs.programs_mut().filter(|(_, program)| program.fd().is_ok()) {
        let path = pins.program(name);
        pins::remove(&path)?;
        program.pin(&path).map_err(|error| Error::Pin { path: path.clone(), reason: error.to_string() })?;
    }
    Ok(())
}

/// Loads the sweep program that the kernel accepts. A kernel that has walks may refuse them if it does not compile BPF
/// programs (JIT).
fn load_sweep(kernel: &mut Kernel) -> Result<(), Error> {
    let wanted = kernel.options.max_interfaces;
    loop {
        if !kernel.sweeper.walks && wanted > DEFAULT_MAX_INTERFACES {
            return Err(Error::MaxInterfaces { wanted });
        }
        let name = kernel.sweeper.program();
        let program = sweep_program(&mut kernel.programs, name)?;
        match retry_interrupted(|| program.load()) {
            Ok(()) => {
                let loaded = program.fd().map_err(|error| refused(name, error))?.try_clone()?;
                kernel.sweeper.set_program(loaded);
                return Ok(());
            }
            Err(error) if kernel.sweeper.walks => {
                tracing::debug!("{name}: {error}");
                tracing::info!("this kernel cannot walk through maps; {}", Feature::ForEach.instead());
                kernel.sweeper.walks = false;
            }
            Err(error) => return Err(refused(name, error)),
        }
    }
}

fn features(options: &LoadOptions) -> Result<Features, Error> {
    Features::probe(options.without).map_err(|error| refused("a program that probes this kernel", error))
}

/// Makes the maps of these options, without loading programs.
///
/// # Errors
/// If the kernel does not make them.
pub fn make_maps(options: &LoadOptions) -> Result<Kernel, Error> {
    open(object::for_features(features(options)?)?, options)
}

/// Makes the maps of an object whose programs are not loaded yet. The programs have no lease: tests and benches do not
/// renew one.
///
/// # Errors
/// If the kernel does not make them.
pub fn open(object: &[u8], options: &LoadOptions) -> Result<Kernel, Error> {
    open_with(object, options, None, features(options)?, 0)
}

fn open_with(
    object: &[u8],
    options: &LoadOptions,
    pins: Option<&Pins>,
    features: Features,
    lease: u64,
) -> Result<Kernel, Error> {
    // Without `..`, so that an option that is not given to the programs does not compile.
    let LoadOptions {
        emit,
        grouping,
        max_groups,
        max_networks: _,
        max_interfaces: _,
        excludes,
        rules,
        dns_ports,
        ring_bytes,
        max_flows: _,
        max_pending: _,
        max_unproved,
        max_queries: _,
        decap,
        copies_within,
        log,
        max_series: _,
        saves_memory: _,
        bin_blocks: _,
        residence,
        table_keys,
        without: _,
    } = *options;
    let room = options.interface_room();
    let max_series = options.max_series();
    let log_level: u8 = if log { aya_log::Level::Trace as u8 } else { 0 };
    let max_labels =
        if features.has(Feature::Fetch) { MAX_LABELLED_PREFIXES } else { MAX_LABELLED_PREFIXES_COUNTED };
    let scope = Scope { methods: rules.methods, dns_ports };
    let (unproved_places, query_places) = (rings::places(max_unproved), options.query_places());
    let (has_residence, every) = (residence.is_some(), residence.unwrap_or(0));
    let offsets = if every == 0 { Offsets::default() } else { residence::offsets()? };
    let (excludes, residence) = (u32::from(excludes), u32::from(has_residence));
    let has_networks = u32::from(options.has_networks());
    let only_if = |is_needed, entries| if is_needed { entries } else { 1 };
    let in_use = pins.map(Pins::table).transpose()?.flatten();
    let keys = in_use.map_or_else(|| table_keys.unwrap_or_else(|| TableKeys::random(random)), |it| it.keys);
    let mut loader = EbpfLoader::new();
    loader
        .verifier_log_level(VerifierLogLevel::STATS)
        .override_global("RULES", &rules, true)
        .override_global("TABLE_KEYS", &keys, true)
        .override_global("SCOPE", &scope, true)
        .override_global("UNPROVED_PLACES", &unproved_places, true)
        .override_global("QUERY_PLACES", &query_places, true)
        .override_global("DECAP", &decap, true)
        .override_global("EMIT", &emit, true)
        .override_global("GROUPING", &grouping, true)
        .override_global("MAX_INTERFACES", &room.ids, true)
        .override_global("LAST_INTERFACE_ENTRY", &room.last_entry, true)
        .override_global("MAX_SERIES", &max_series, true)
        .override_global("HAS_NETWORKS", &has_networks, true)
        .override_global("EXCLUDES", &excludes, true)
        .override_global("COPIES_WITHIN", &copies_within, true)
        .override_global("LEASE", &lease, true)
        .override_global("RESIDENCE", &residence, true)
        .override_global("RESIDENCE_EVERY", &every, true)
        .override_global("OFFSETS", &offsets, false)
        .override_global("AYA_LOG_LEVEL", &log_level, true)
        .map_max_entries("EVENTS", ring_bytes)
        .map_max_entries("INTERFACES", room.table())
        .map_max_entries("INTERFACE_NAMES", room.ids)
        .map_max_entries("COUNTERS", counters::len(room)?)
        .map_max_entries("DUE", due_len(room))
        .map_max_entries("COPIES", only_if(copies_within != 0, copies::BUCKETS))
        .map_max_entries("SERIES", max_series)
        .map_max_entries("BINS", options.bin_blocks())
        .map_max_entries("SERIES_INDEX", max_series)
        .map_max_entries("FREE_SERIES", max_series)
        .map_max_entries("LABELS", max_labels)
        .map_max_entries("GROUPS", max_groups)
        .map_max_entries("UNPROVED", max_unproved_groups(max_groups))
        .map_max_entries("RESIDENCES", only_if(has_residence, residence::entries(room)))
        // One more for the super-packet that is found by its content.
        .map_max_entries("FOLLOWED", only_if(every != 0, FOLLOWED_PAIRS + 1))
        .map_max_entries("PASSING", only_if(has_residence, MAX_PASSING))
        .map_max_entries("QUERIES_V4", RINGS * query_places)
        .map_max_entries("QUERIES_V6", RINGS * query_places)
        .map_max_entries("QUERY_KEYS_V4", RINGS * query_places)
        .map_max_entries("QUERY_KEYS_V6", RINGS * query_places);
    size_flows(&mut loader, options);
    if let Some(pins) = pins {
        loader.map_max_entries("PERSISTENT", options.max_persistent_entries());
        for map in &PINNED_MAPS {
            loader.map_pin_path(map.name, pins.map(map.name));
        }
    }
    let programs = loader.load(object).map_err(|error| refused("the maps", error))?;
    take_maps(programs, options, features, keys, pins.is_some())
}

/// Sets the sizes of the maps of flows, and of networks at their other end.
fn size_flows(loader: &mut EbpfLoader<'_>, options: &LoadOptions) {
    let LoadOptions { max_flows, max_networks, max_unproved, .. } = *options;
    let max_pending = options.pending_entries();
    let places = RINGS * rings::places(max_unproved);
    let buckets = table::bucket_count(max_flows);
    let only_if_counted = |entries| if options.has_networks() { entries } else { 1 };
    loader
        .map_max_entries("FLOWS_V4", max_flows)
        .map_max_entries("FLOWS_V6", max_flows)
        .map_max_entries("COLD_V4", max_flows)
        .map_max_entries("COLD_V6", max_flows)
        .map_max_entries("FREE_V4", max_flows)
        .map_max_entries("FREE_V6", max_flows)
        .map_max_entries("PENDING_V4", max_pending)
        .map_max_entries("PENDING_V6", max_pending)
        .map_max_entries("FREE_PENDING_V4", max_pending)
        .map_max_entries("FREE_PENDING_V6", max_pending)
        .map_max_entries("INDEX_V4", buckets)
        .map_max_entries("INDEX_V6", buckets)
        .map_max_entries("RECENT_V4", places)
        .map_max_entries("RECENT_V6", places)
        .map_max_entries("NETWORKS", only_if_counted(max_networks))
        .map_max_entries("UNPROVED_NETWORKS", only_if_counted(max_unproved_groups(max_networks)))
        .map_max_entries("NETWORK_PREFIXES", only_if_counted(MAX_NETWORK_PREFIXES))
        .map_max_entries("FLOW_NETWORKS_V4", only_if_counted(max_flows))
        .map_max_entries("FLOW_NETWORKS_V6", only_if_counted(max_flows));
}

/// Takes the maps of an object that was opened.
fn take_maps(
    mut programs: Ebpf,
    options: &LoadOptions,
    features: Features,
    keys: TableKeys,
    is_pinned: bool,
) -> Result<Kernel, Error> {
    let tables = set_up_tables(&mut programs, options, keys)?;
    let mut series = SeriesTable::new(&mut programs, options)?;
    if !features.has(Feature::Fetch) {
        series.hand_out_indexes()?;
    }
    let persistent = if is_pinned {
        let map = HashMap::try_from(take_map(&mut programs, "PERSISTENT")?)?;
        Some(PersistentMap::new(map))
    } else {
        None
    };
    let residence = match options.residence {
        Some(every) => {
            let map = Array::try_from(take_map(&mut programs, "RESIDENCES")?)?;
            Some(ResidenceMap::new(map, every))
        }
        None => None,
    };
    let buckets = table::bucket_count(options.max_flows);
    let (has_for_each, has_dns) = (features.has(Feature::ForEach), options.has_dns());
    Ok(Kernel {
        events: RingBuf::try_from(take_map(&mut programs, "EVENTS")?)?,
        counters: CounterMap::new(array(&mut programs, "COUNTERS")?, options.interface_room())?,
        interface_ids: InterfaceIds::new(
            array(&mut programs, "INTERFACES")?,
            Array::try_from(take_map(&mut programs, "INTERFACE_NAMES")?)?,
            options.interface_room(),
            &tables,
        )?,
        local_addresses: HashMap::try_from(take_map(&mut programs, "LOCAL_ADDRESSES")?)?,
        series,
        labels: Some(LpmTrie::try_from(take_map(&mut programs, "LABELS")?)?),
        persistent,
        excluded: LpmTrie::try_from(take_map(&mut programs, "EXCLUDED")?)?,
        inside: LpmTrie::try_from(take_map(&mut programs, "INSIDE")?)?,
        networks: LpmTrie::try_from(take_map(&mut programs, "NETWORK_PREFIXES")?)?,
        residence,
        sweeper: Sweeper::new(&mut programs, has_for_each, has_dns, buckets, options.interface_room())?,
        programs,
        features,
        options: *options,
    })
}

/// Writes the sizes of the flow tables, unless the tables are pinned and in use. Returns the tables.
fn set_up_tables(programs: &mut Ebpf, options: &LoadOptions, keys: TableKeys) -> Result<[Table; 2], Error> {
    let name = "TABLES";
    let map = programs.map_mut(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() })?;
    let mut tables: Array<_, Table> = Array::try_from(map)?;
    for family in 0..tables.len() {
        if tables.get(&family, 0)?.buckets != 0 {
            continue;
        }
        tables.set(family, Table::of(keys, options.max_flows, options.pending_entries()), 0)?;
    }
    Ok([tables.get(&0, 0)?, tables.get(&1, 0)?])
}
