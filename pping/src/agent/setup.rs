//! Starting the agent. All that can fail because of a user's error comes before the programs are loaded. The service
//! manager hears that pping is ready last.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd as _, AsRawFd, OwnedFd},
    time::Instant,
};

use ipnet::IpNet;
use pping_common::{
    abi::Counters,
    limits::{MAX_QUERIES, max_unproved},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::{SignalKind, signal},
};

use super::{
    arms::Evidence,
    groups::Groups,
    interfaces::Interfaces,
    losses::Losses,
    networks::RemoteNetworks,
    placement::Placement,
    slow_start::SlowStart,
    state::{Agent, Inputs},
};
#[cfg(feature = "history")]
use crate::history::Archive;
#[cfg(feature = "otlp")]
use crate::otlp::Receiver;
use crate::{
    Error, capabilities,
    config::{Aggregation, Config, Ingress, Live, Loader, Profile},
    features,
    groups::Names,
    http::{Access, Contents, Readiness, Server},
    kernel::{
        self,
        attach::Wanted,
        attach_point::AttachPoint,
        clock::Moment,
        features::{DisabledFeatures, Feature, Features},
        inspect::maps,
        interfaces::set_local_addresses,
        labels::{self, Prefixes},
        load::{self, Hook},
        load_options::LoadOptions,
        loaded::Kernel,
        netlink::{self, Notices},
        pins::Pins,
        promiscuous::Promiscuous,
        selection::Selection,
    },
    log,
    metrics::{Metrics, PersistentCounts},
    notify::Notify,
    output::{OnFailure, Output, Role},
    quality::{self, Profiles},
    recent::RecentHistory,
    records::{Reporter, format},
};

/// What most of a start waits for.
const LOADING: &str = "loading the kernel programs";

/// Loads and attaches the programs, opens the output, and begins to serve.
pub(super) async fn set_up(
    config: Config,
    loader: Loader,
    screen: Option<RecentHistory>,
) -> Result<(Box<Agent>, Inputs), Error> {
    let live = &config.live;
    features::check(live)?;
    capabilities::set_no_new_privs()?;
    // Before pping says that it is ready: until it is caught, SIGHUP ends the process.
    let hangup = signal(SignalKind::hangup())?;
    let notices = Notices::connect()?;
    let selection = Selection::new(&live.interfaces)?;
    let links = netlink::links().await?.found;
    if let Some(name) = selection.missing(&links).next().filter(|_| !live.wait) {
        return Err(Selection::unknown(name, &links).into());
    }
    selection.check_joined(&links)?;
    capabilities::check()?;
    let promiscuous = live.mirror.then(promiscuous).transpose()?;

    let mut options = load_options(&config)?;
    let pins = open_pins(live, options.without)?;
    let metrics = Metrics::new(live.prometheus_groups, live.baseline);
    let (has_screen, recent) = (screen.is_some(), recent_history(screen, live));
    let readiness = Readiness::default();
    let server = serve(live, &metrics, &recent, &readiness)?;
    #[cfg(feature = "otlp")]
    let receiver = live.otlp.as_ref().map(Receiver::new).transpose()?;
    let mut groups = Groups::read(&config.aggregation)?;
    let mut networks = RemoteNetworks::read(&config.aggregation)?;
    let began = Moment::now()?;
    let mut reporter = Reporter::live(&config.aggregation, config.max_flows, began.wall)?;
    let profiles = quality::load(config.quality.as_deref()).map_err(Error::Quality)?;
    reporter.score_by(profiles.clone());
    show(&metrics, &recent, &profiles, &config);
    let encoder = format::encoder(config.format);
    let (output, output_ended) =
        Output::open(Role::Records, config.output.as_deref(), encoder.framing(), OnFailure::Drop)?;

    let notify = Notify::from_environment();
    notify.status(LOADING);
    let slow_start = if has_screen { None } else { Some(SlowStart::begin(LOADING)?) };
    if let Some(pins) = &pins {
        pins.fit(&mut options)?;
    }
    let hooks = if live.ingress == Ingress::Tc { &[Hook::Tc][..] } else { &Hook::ALL };
    let mut kernel = load::load_entry_programs(&options, hooks, pins.as_ref())?;
    if pins.is_some() {
        // Pinned links must continue with programs that measure, and links that outlive the agent must begin with them.
        load::load_stages(&mut kernel, hooks, pins.as_ref())?;
    }
    let mut pinned_labels = Vec::new();
    if let Some(map) = kernel.persistent.take() {
        let persistent = PersistentCounts::new(Box::new(map));
        pinned_labels = persistent.labels();
        metrics.persist_in(persistent);
    }
    forward_log(&mut kernel)?;
    list_networks(&mut kernel, &config.aggregation)?;
    let names = name(groups.as_ref(), networks.as_mut(), &mut kernel, &recent, &pinned_labels)?;
    reporter.name_networks(names.networks().clone());

    let mut local_addresses = kernel.local_addresses.keys().collect::<Result<_, _>>()?;
    set_local_addresses(&mut kernel, &mut local_addresses, own_addresses(live).await?)?;
    let mut interfaces = Interfaces::new(selection, wanted(live), promiscuous);
    interfaces.attach_first(&mut kernel, pins.as_ref(), &links)?;
    begin_measuring(&mut kernel, hooks, pins.as_ref())?;
    drop(slow_start);
    give_up_privileges();
    groups.as_mut().map_or(Ok(()), Groups::open)?;

    let mut agent = Box::new(Agent {
        config,
        loader,
        kernel,
        pins,
        interfaces,
        arms: Evidence::default(),
        local_addresses,
        are_addresses_due: false,
        groups,
        networks,
        names,
        reporter,
        encoder,
        output,
        metrics,
        recent,
        has_screen,
        server,
        #[cfg(feature = "history")]
        history: None,
        #[cfg(feature = "otlp")]
        exporter: None,
        readiness,
        losses: Losses::default(),
        placement: Placement::default(),
        counters_before: Counters::ZERO,
        last_cycle: began,
        notify,
        started: Instant::now(),
    });
    take_over(&mut agent, profiles).await?;
    #[cfg(feature = "otlp")]
    agent.push(receiver);
    let ring = say_ready(&mut agent)?;
    Ok((agent, Inputs { notices, ring, hangup, output_ended }))
}

/// Tells the kernel programs the prefixes of groups and networks. Returns where the names of these are.
fn name(
    groups: Option<&Groups>,
    networks: Option<&mut RemoteNetworks>,
    kernel: &mut Kernel,
    recent: &RecentHistory,
    pinned_labels: &[String],
) -> Result<Names, Error> {
    let mut names = Names::default();
    if let Some(groups) = groups {
        groups.remember(pinned_labels);
        groups.apply(kernel, recent)?;
        names.follow(groups.newest_labels());
    }
    if let Some(networks) = networks {
        networks.apply(kernel)?;
        names.follow_networks(networks.known.clone());
        recent.name_networks(networks.known.clone());
    }
    Ok(names)
}

/// The addresses of this host. No packet at a mirror port is for it.
async fn own_addresses(live: &Live) -> Result<BTreeSet<[u8; 16]>, kernel::Error> {
    if live.mirror { Ok(BTreeSet::new()) } else { netlink::addresses().await }
}

/// The recent history: that of the screen, or one for the server.
fn recent_history(screen: Option<RecentHistory>, live: &Live) -> RecentHistory {
    screen.unwrap_or_else(|| RecentHistory::new(live.history_memory))
}

/// Tells the metrics and the recent history how to show what is measured.
fn show(metrics: &Metrics, recent: &RecentHistory, profiles: &Profiles, config: &Config) {
    let Config { aggregation, live, .. } = config;
    metrics.score_by(profiles.clone());
    recent.score_by(profiles.clone());
    recent.set_min_samples(aggregation.worst_min_samples);
    recent.tell_sides_apart(aggregation.grouping().inside != 0);
    recent.tell_of_history(live.history.is_some());
}

/// Opens what keeps mirror ports in promiscuous mode.
fn promiscuous() -> Result<Promiscuous, Error> {
    Ok(Promiscuous::open().map_err(kernel::Error::Promiscuous)?)
}

/// Begins to serve, if `--listen` asks for that.
fn serve(
    live: &Live,
    metrics: &Metrics,
    recent: &RecentHistory,
    readiness: &Readiness,
) -> Result<Option<Server>, Error> {
    let start = |address| Server::start(address, access(live), contents(live, metrics, recent, readiness));
    Ok(live.listen.map(start).transpose()?)
}

/// What is served.
pub(super) fn contents(
    #[cfg_attr(not(feature = "history"), expect(unused_variables, reason = "only a history has settings"))]
    live: &Live,
    metrics: &Metrics,
    recent: &RecentHistory,
    readiness: &Readiness,
) -> Contents {
    let contents = Contents::new(metrics.clone(), recent.clone(), readiness.clone());
    #[cfg(feature = "history")]
    let contents = contents.with_archive(live.history.clone().map(Archive::new));
    contents
}

/// Takes over what was counted before, and begins to count.
async fn take_over(
    agent: &mut Agent,
    #[cfg_attr(
        not(feature = "history"),
        expect(unused_variables, reason = "only a history needs them again")
    )]
    profiles: Profiles,
) -> Result<(), Error> {
    agent.adopt_series()?;
    // Interfaces may have come since they were listed.
    agent.update_interfaces().await?;
    agent.begin_counting()?;
    #[cfg(feature = "history")]
    agent.begin_history(profiles)?;
    agent.count()
}

/// Says that pping is ready. Returns the ring of events.
fn say_ready(agent: &mut Agent) -> Result<AsyncFd<OwnedFd>, Error> {
    if agent.pins.is_some() {
        tracing::info!("measuring round-trip times from now on");
    }
    let ring = readable(agent.kernel.events.as_fd().try_clone_to_owned()?)?;
    agent.readiness.set();
    let status = agent.status();
    agent.notify.ready(&status);
    if !agent.has_screen {
        log::say_started(&format!("{status}: measuring"));
    }
    Ok(ring)
}

/// Loads the stages, while packets are counted already. With pins the stages are loaded before, and a run says that it
/// measures once it knows what was counted before it.
fn begin_measuring(kernel: &mut Kernel, hooks: &[Hook], pins: Option<&Pins>) -> Result<(), Error> {
    if pins.is_none() {
        let attached = Instant::now();
        load::load_stages(kernel, hooks, None)?;
        tracing::info!(
            "measuring round-trip times from now on, {} ms after packets were first counted",
            attached.elapsed().as_millis()
        );
    }
    if tracing::enabled!(tracing::Level::INFO) {
        tracing::info!("{}", maps::describe());
    }
    Ok(())
}

/// Lists the networks that are excluded, and those that are inside.
fn list_networks(kernel: &mut Kernel, aggregation: &Aggregation) -> Result<(), Error> {
    list(&mut kernel.excluded, &aggregation.exclude)?;
    list(&mut kernel.inside, &aggregation.inside.prefixes)
}

/// Replaces the networks of a map.
pub(super) fn list(map: &mut Prefixes, networks: &[IpNet]) -> Result<(), Error> {
    let listed: Vec<_> = networks.iter().map(|&network| (network, 0)).collect();
    Ok(labels::replace(map, 0, &listed)?)
}

/// The load options for this configuration.
///
/// # Errors
/// [`kernel::Error::UnknownFeature`] if the environment excludes a feature that does not exist.
pub(crate) fn load_options(config: &Config) -> Result<LoadOptions, Error> {
    Ok(LoadOptions {
        rules: config.rules,
        dns_ports: config.dns_ports,
        ring_bytes: config.live.profile.ring_bytes(),
        max_flows: config.max_flows,
        max_pending: config.live.max_pending,
        max_unproved: max_unproved(config.max_flows, config.live.max_pending),
        max_queries: MAX_QUERIES.min(config.max_flows),
        decap: config.decap,
        emit: config.emit(),
        grouping: config.aggregation.grouping(),
        max_groups: config.aggregation.max_groups,
        max_networks: config
            .aggregation
            .remote_groups
            .as_ref()
            .map_or(0, |_| config.aggregation.max_networks),
        max_interfaces: config.live.max_interfaces,
        excludes: !config.aggregation.exclude.is_empty(),
        copies_within: config.copies_within,
        log: config.live.bpf_log,
        max_series: None,
        bin_blocks: None,
        saves_memory: config.live.profile == Profile::Small,
        residence: config.live.residence,
        table_keys: None,
        without: DisabledFeatures::from_environment()?,
    })
}

/// What to attach to.
fn wanted(live: &Live) -> Wanted {
    Wanted { ingress: attach_points(live.ingress), has_egress: !live.mirror }
}

/// The attach points of `--ingress`, in order of preference.
fn attach_points(ingress: Ingress) -> &'static [AttachPoint] {
    match ingress {
        Ingress::Tc => &[AttachPoint::Tcx],
        Ingress::Xdp => &[AttachPoint::XdpNative, AttachPoint::XdpGeneric],
        Ingress::Auto => &[AttachPoint::XdpNative, AttachPoint::Tcx],
    }
}

/// Takes the directory of `--pin`. Kernels that cannot pin links measure without it.
fn open_pins(live: &Live, without: DisabledFeatures) -> Result<Option<Pins>, Error> {
    let Some(directory) = live.pin.as_deref() else { return Ok(None) };
    if Features::probe(without)?.has(Feature::Tcx) {
        return Ok(Some(Pins::take(directory, live.max_interfaces)?));
    }
    tracing::warn!(
        "continuing without --pin {}: pinning needs links at tc, which Linux 6.6 or newer has; packets that \
         pass while pping restarts are not measured",
        directory.display()
    );
    Ok(None)
}

/// Who may read what `--listen` serves.
pub(super) fn access(live: &Live) -> Access {
    Access { web_config: live.web_config.clone(), names: live.listen_names.clone() }
}

/// Gives up the capabilities that only loading the programs takes.
fn give_up_privileges() {
    let [bpf, net_admin] = capabilities::FOR_INTERFACES;
    let [files] = capabilities::FOR_FILES;
    match capabilities::restrict_to(&[bpf, net_admin, files]) {
        Ok(kept) => {
            let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
            tracing::info!("keeping only {}, to attach to new interfaces and reopen files", kept.join(", "));
        }
        // A sandbox may forbid it.
        Err(error) => tracing::warn!("cannot drop capabilities that are no longer needed: {error}"),
    }
}

/// Forwards what the kernel programs log, with `--bpf-log`.
fn forward_log(kernel: &mut Kernel) -> Result<(), Error> {
    if !kernel.options.log {
        return Ok(());
    }
    let log = aya_log::EbpfLogger::init(&mut kernel.programs)
        .map_err(|error| kernel::Error::Load { what: "the log".to_owned(), source: error.into() })?;
    let mut log = readable(log)?;
    tokio::spawn(async move {
        while let Ok(mut ready) = log.readable_mut().await {
            ready.get_inner_mut().flush();
            ready.clear_ready();
        }
    });
    Ok(())
}

/// Registers a descriptor, to wait until it is readable.
fn readable<T: AsRawFd>(source: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: both sources own their descriptor for as long as they live.
    Ok(unsafe { AsyncFd::register_with_interest(source, Interest::READABLE) }?)
}
