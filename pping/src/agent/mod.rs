//! Watching interfaces.

mod counting;
mod cycle;
pub mod events;
mod groups;
mod interfaces;
mod memory;
mod reload;
mod settings;
mod shutdown;

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd as _, AsRawFd},
    path::Path,
    time::{Duration, Instant},
};

use pping_common::{abi::Emit, limits::DRAIN_INTERVAL_MS};
use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep},
};

use self::{counting::Warned, cycle::Aggregator, groups::GroupsFile, interfaces::Watching};
use crate::{
    Error, Summary, capabilities,
    config::{Config, Ingress, Live, Loader},
    groups::Labels,
    http::{Readiness, Server},
    kernel::{
        self,
        attach::{AttachPoint, leftovers},
        clock,
        features::{Feature, Features, Without},
        interfaces::{Netlink, set_local_addresses},
        labels,
        load::{self, Kernel, LoadOptions},
        pins::{self, Pins},
        selection::Wanted,
        series::SeriesTable,
    },
    metrics::{Ledger, Metrics},
    notify::Notify,
    output::{Ended, OnFailure, Output},
    records::{
        Reporter,
        format::{self, Encoder},
    },
};

/// Watches interfaces until `shutdown` resolves or the reader of the output is gone.
///
/// # Errors
/// What kept it from starting, or ended it before its time. Nothing stays attached.
pub(crate) async fn run(
    config: Config,
    loader: Loader,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    capabilities::gain_no_more()?;
    // Before anybody is told that it is ready: a SIGHUP that nobody waits for is the end.
    let hangup = signal(SignalKind::hangup())?;
    let mut netlink = Netlink::connect()?;
    let wanted = Wanted::new(&config.live.interfaces)?;
    let links = netlink.links().await?;
    if let Some(name) = wanted.missing(&links).next().filter(|_| !config.live.wait) {
        return Err(Wanted::unknown(name, &links).into());
    }
    capabilities::check()?;
    let mut options = LoadOptions::of(&config)?;
    let pins = take_pins(&config.live, options.without)?;
    let metrics = Metrics::new(config.live.prometheus_groups, config.live.baseline);
    let readiness = Readiness::default();
    let serve = |address| {
        Server::start(address, config.live.web_config.as_deref(), metrics.clone(), readiness.clone())
    };
    let server = config.live.listen.map(serve).transpose()?;
    let mut groups = config.aggregation.groups.clone().map(GroupsFile::read).transpose()?;
    let mut reporter = Reporter::new(&config.aggregation, config.max_flows, clock::wall()?)?;
    reporter.tolerate_failures();
    let encoder = format::encoder(config.format);
    let (output, ended) = Output::open(config.output.as_deref(), encoder.framing(), OnFailure::Drop)?;

    let notify = Notify::from_environment();
    notify.status("loading the kernel programs");
    if let Some(pins) = &pins {
        pins.fit(&mut options)?;
    }
    let mut kernel = load::load_with(&options, config.live.ingress != Ingress::Tc, pins.as_ref())?;
    let mut kept = Vec::new();
    if let Some(map) = kernel.ledger.take() {
        let ledger = Ledger::new(Box::new(map));
        kept = ledger.labels();
        metrics.persist_in(ledger);
    }
    if config.live.bpf_log {
        forward_log(&mut kernel)?;
    }
    let mut aggregator = Aggregator::new(reporter, &config.aggregation);
    let excluded: Vec<_> = config.aggregation.exclude.iter().map(|&prefix| (prefix, 0)).collect();
    labels::keep(&mut kernel.excluded, 0, &excluded)?;
    if let Some(groups) = &mut groups {
        groups.know(&kept);
        groups.put_into(&mut kernel)?;
        aggregator.names.relabel(groups.labels());
    }
    memory::log();
    let mut local = kernel.local_addresses.keys().collect::<Result<_, _>>()?;
    set_local_addresses(&mut kernel, &mut local, netlink.addresses().await?)?;
    let mut watching = Watching::new(wanted, attach_points(config.live.ingress));
    watching.begin(&mut kernel, pins.as_ref(), &links)?;
    give_up_privileges();
    let mut agent = Agent {
        kernel,
        pins,
        watching,
        local,
        encoder,
        output,
        metrics,
        aggregator,
        groups,
        max_flows: options.max_flows,
        max_groups: options.max_groups,
        server,
        readiness: readiness.clone(),
        config,
        loader,
        emit: options.emit,
        swept: 0,
        warned: Warned::default(),
        notify,
        started: Instant::now(),
    };
    // There may be something to tell of a run before this one.
    agent.adopt()?;
    agent.watch_wanted(&netlink).await?;
    agent.count()?;
    // Not before there is something to scrape.
    readiness.set();
    agent.notify.ready(&agent.status());
    let ended = agent.watch(&mut netlink, ended, hangup, shutdown).await;
    let server = agent.server.take();
    let summary = agent.finish();
    // Last, since packets do not wait for scrapes.
    if let Some(server) = server {
        server.stop().await;
    }
    ended.and(summary)
}

/// What `--ingress` says, as attach points in order of preference.
fn attach_points(ingress: Ingress) -> &'static [AttachPoint] {
    match ingress {
        Ingress::Tc => &[AttachPoint::Tcx],
        Ingress::Xdp => &[AttachPoint::XdpNative, AttachPoint::XdpGeneric],
        Ingress::Auto => &[AttachPoint::XdpNative, AttachPoint::Tcx],
    }
}

/// Takes the directory of `--pin`, where the kernel has what can be pinned: whoever boots an older one wants to measure all
/// the same.
fn take_pins(live: &Live, without: Without) -> Result<Option<Pins>, Error> {
    let Some(directory) = live.pin.as_deref() else { return Ok(None) };
    if Features::probe(without)?.has(Feature::Tcx) {
        return Ok(Some(Pins::take(directory)?));
    }
    tracing::warn!(
        "going on without --pin {}: only links can be pinned, which at tc takes Linux 6.6 or newer; what passes while \
         pping is restarted is not measured",
        directory.display()
    );
    Ok(None)
}

/// Takes away what a run with `--pin` left in this directory, which ends its measuring.
///
/// # Errors
/// What could not be taken away.
pub(crate) fn unpin(directory: &Path) -> Result<(), Error> {
    Ok(pins::unpin(directory)?)
}

/// Removes from interfaces, all of them unless some are named, what runs that were killed left there. Returns what that was,
/// a line for each interface.
///
/// # Errors
/// What could not be removed, and what may not be.
pub(crate) async fn cleanup(interfaces: &[String]) -> Result<Vec<String>, Error> {
    let wanted = Wanted::new(interfaces)?;
    let links = Netlink::connect()?.links().await?;
    if let Some(name) = wanted.missing(&links).next() {
        return Err(Wanted::unknown(name, &links).into());
    }
    capabilities::check_for_interfaces()?;
    let mut lines = Vec::new();
    for link in links.iter().filter(|link| interfaces.is_empty() || wanted.has(&link.name)) {
        let removed = leftovers::remove(link.ifindex)
            .map_err(|source| kernel::Error::Cleanup { interface: link.name.clone(), source })?;
        if !removed.is_empty() {
            lines.push(format!("{}: removed {removed}", link.name));
        }
    }
    Ok(lines)
}
pub(crate) use crate::check::perform as check;

/// A run under way.
struct Agent {
    kernel: Kernel,
    /// Where programs, links and maps are pinned, if they are.
    pins: Option<Pins>,
    watching: Watching,
    local: BTreeSet<[u8; 16]>,
    encoder: Box<dyn Encoder>,
    output: Output,
    metrics: Metrics,
    aggregator: Aggregator,
    groups: Option<GroupsFile>,
    server: Option<Server>,
    readiness: Readiness,
    /// What is in force.
    config: Config,
    /// Makes it again.
    loader: Loader,
    max_flows: u32,
    max_groups: u32,
    /// The events that the programs report.
    emit: Emit,
    /// The second of the last sweep.
    swept: u64,
    warned: Warned,
    notify: Notify,
    started: Instant,
}

impl Agent {
    /// Drains, sweeps and counts until something ends it.
    async fn watch(
        &mut self,
        netlink: &mut Netlink,
        mut ended: Ended,
        mut hangup: Signal,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let ring = readable(self.kernel.events.as_fd().try_clone_to_owned()?)?;
        let mut drain = interval(Duration::from_millis(DRAIN_INTERVAL_MS));
        drain.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(shutdown);
        let turn = sleep(self.aggregator.until_next()?);
        tokio::pin!(turn);
        loop {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                // The writer ended: by an error, or since nobody reads any more.
                Ok(reason) = &mut ended => return reason.map_or(Ok(()), |error| Err(error.into())),
                _ = hangup.recv() => self.reload(netlink).await?,
                labels = changed(&mut self.groups, &self.kernel.series) => {
                    if let Some(labels) = labels {
                        self.aggregator.names.relabel(labels);
                    }
                }
                change = netlink.changed() => self.follow(netlink, change).await?,
                () = &mut turn => {
                    self.turn()?;
                    if self.watching.is_due() {
                        self.watch_wanted(netlink).await?;
                    }
                    turn.set(sleep(self.aggregator.until_next()?));
                }
                ready = ring.readable() => {
                    ready?.clear_ready();
                    self.drain()?;
                }
                // Where no events are wanted there is nothing to look for.
                _ = drain.tick(), if self.emit != Emit::NOTHING => self.drain()?,
            }
        }
    }

    /// What the service manager shows.
    fn status(&self) -> String {
        let watched = self.watching.watched.iter().filter(|it| it.is_up);
        let names: Vec<&str> = watched.map(|it| &*it.name).collect();
        if names.is_empty() {
            "waiting for interfaces".to_owned()
        } else {
            format!("watching {}", names.join(", "))
        }
    }
}

/// Waits for a change of groups, where there are any that can change.
async fn changed(groups: &mut Option<GroupsFile>, series: &SeriesTable) -> Option<Labels> {
    match groups {
        Some(groups) => groups.changed(series).await,
        None => std::future::pending().await,
    }
}

/// Gives up what it took to load the programs, for good.
fn give_up_privileges() {
    let [bpf, net_admin] = capabilities::FOR_INTERFACES;
    let [files] = capabilities::FOR_FILES;
    let kept = match capabilities::keep(&[bpf, net_admin, files]) {
        Ok(kept) => kept,
        // A sandbox may not let go of what it gave.
        Err(error) => {
            tracing::warn!("keeping capabilities that are not needed any more: {error}");
            return;
        }
    };
    let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
    tracing::info!(
        "keeping {}, for interfaces that come and files that are opened again, and nothing else",
        kept.join(", ")
    );
}

/// Waits for something to be readable.
fn readable<T: AsRawFd>(source: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: both sources own their descriptor and keep it as long as they are.
    Ok(unsafe { AsyncFd::register_with_interest(source, Interest::READABLE) }?)
}

/// Passes on what the kernel programs log.
fn forward_log(kernel: &mut Kernel) -> Result<(), Error> {
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
