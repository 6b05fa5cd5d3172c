//! Watching interfaces.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd as _, AsRawFd},
    sync::Arc,
    time::{Duration, Instant},
};

use pping_common::{
    abi::Tally,
    group::GroupKey,
    limits::{DRAIN_INTERVAL_MS, SWEEP_INTERVAL_SECONDS},
    parse::Untracked,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    signal::unix::{SignalKind, signal},
    time::{MissedTickBehavior, interval},
};

use crate::{
    Error, Summary,
    aggregate::Totals,
    cli::Ingress,
    config::{Config, Live},
    groups::{GroupName, Labels, SeriesName},
    http::{self, Readiness},
    output::{Batch, Ended, Output},
    record::Record,
    sinks::{
        self, Sink,
        prometheus::{Fill, Metrics},
    },
    source::{
        attach, capabilities,
        clock::WallClock,
        counters::{Snapshot, Watched},
        drain,
        interfaces::{self, Change, Netlink},
        load::{self, Kernel, Settings},
        sweep::sweep,
    },
};

/// Watches the interfaces of `live` until `shutdown` resolves or the reader of the output is gone.
///
/// # Errors
/// What kept it from starting, or ended it before its time. Nothing stays attached.
pub(crate) async fn run(
    config: Config,
    live: Live,
    shutdown: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let mut netlink = Netlink::connect()?;
    let links = netlink.find(&live.interfaces).await?;
    capabilities::check()?;
    let listener = match live.listen {
        Some(address) => Some(http::bind(address).await?),
        None => None,
    };
    let sink = sinks::sink(config.format);
    let (output, ended) = Output::open(config.output.as_deref(), sink.framing())?;
    let metrics = Metrics::new(live.prometheus_groups, live.baseline);
    let readiness = Readiness::default();
    if let Some(listener) = listener {
        tokio::spawn(http::serve(listener, metrics.clone(), readiness.clone()));
    }

    let settings = Settings {
        rules: config.rules,
        max_flows: config.max_flows,
        decap: config.decap,
        emit: config.emit(),
        grouping: config.aggregation.grouping,
        max_groups: config.aggregation.max_groups,
        excludes: !config.aggregation.exclude.is_empty(),
        log: live.bpf_log,
    };
    let mut kernel = load::load(&settings, live.ingress != Ingress::Tc)?;
    if live.bpf_log {
        forward_log(&mut kernel)?;
    }
    let mut local = BTreeSet::new();
    interfaces::set_local_addresses(&mut kernel, &mut local, netlink.addresses().await?)?;
    let mut watched = Vec::new();
    for link in links {
        let place = link.register(&mut kernel)?;
        let hooks = attach::attach(&mut kernel, &link, live.ingress)?;
        watched.push(Watched { name: link.name.into(), ifindex: link.ifindex, place, hooks });
    }

    let mut agent = Agent {
        kernel,
        watched,
        local,
        sink,
        output,
        metrics,
        totals: Totals::default(),
        max_flows: config.max_flows,
        warned: Warned::default(),
        started: Instant::now(),
    };
    agent.count()?;
    // Not before there is something to scrape.
    readiness.set();
    let ended = agent.watch(&mut netlink, ended, shutdown).await;
    let summary = agent.finish();
    ended.and(summary)
}

/// A run under way.
struct Agent {
    kernel: Kernel,
    watched: Vec<Watched>,
    local: BTreeSet<[u8; 16]>,
    sink: Box<dyn Sink>,
    output: Output,
    metrics: Metrics,
    totals: Totals,
    max_flows: u32,
    warned: Warned,
    started: Instant,
}

/// What has been warned of.
#[derive(Default)]
struct Warned {
    refused: u64,
    lost: u64,
}

impl Agent {
    /// Drains, sweeps and counts until something ends it.
    async fn watch(
        &mut self,
        netlink: &mut Netlink,
        mut ended: Ended,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let ring = readable(self.kernel.events.as_fd().try_clone_to_owned()?)?;
        let mut drain = interval(Duration::from_millis(DRAIN_INTERVAL_MS));
        drain.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sweep_due = interval(Duration::from_secs(u64::from(SWEEP_INTERVAL_SECONDS)));
        sweep_due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                // The writer ended: by an error, or since nobody reads any more.
                Ok(reason) = &mut ended => return reason.map_or(Ok(()), Err),
                _ = hangup.recv() => self.output.reopener().reopen(),
                change = netlink.changed() => self.follow(netlink, change).await?,
                _ = sweep_due.tick() => {
                    sweep(&mut self.kernel)?;
                    self.count()?;
                }
                ready = ring.readable() => {
                    ready?.clear_ready();
                    self.drain()?;
                }
                _ = drain.tick() => self.drain()?,
            }
        }
    }

    /// Takes the events that wait.
    fn drain(&mut self) -> Result<(), Error> {
        let clock = WallClock::now()?;
        let Self { kernel, watched, sink, metrics, totals, .. } = self;
        let mut batch = Batch::default();
        drain::drain(&mut kernel.events, |event| {
            let place = event.endpoints().interface;
            let Some(interface) = watched.iter().find(|it| it.place == place) else { return };
            let name = Some(Arc::clone(&interface.name));
            let Some(record) = Record::new(&event, name, None, |time| clock.epoch(time)) else { return };
            if let Record::Rtt(sample) = &record {
                let mut tally = Tally::EMPTY;
                tally.sample(sample.rtt);
                metrics.take(
                    &[(
                        SeriesName {
                            interface: sample.interface.clone(),
                            method: sample.method,
                            matched: sample.matched,
                            group: Arc::new(GroupName::new(&GroupKey::ALL, &Labels::default())),
                        },
                        tally,
                    )],
                    Instant::now(),
                );
                totals.take(sample.method, sample.matched, &tally);
            }
            batch.push(sink.as_mut(), &record);
        });
        self.output.write(batch);
        Ok(())
    }

    /// Takes over the kernel's counters, and warns of what they tell, at most once per sweep.
    fn count(&mut self) -> Result<(), Error> {
        let snapshot = Snapshot::read(&self.kernel, &self.watched)?;
        let total = snapshot.total();
        let lines_lost = self.output.lines_lost();
        self.metrics.counted(snapshot, Fill { lines_lost, max_flows: self.max_flows, ..Fill::default() });
        let refused = total.untracked[Untracked::MapFull as usize];
        if refused > self.warned.refused {
            let packets = refused - self.warned.refused;
            tracing::warn!(
                "a flow map is full: {packets} packets of new flows were not measured; raise --max-flows"
            );
            self.warned.refused = refused;
        }
        let lost = total.lost.iter().sum::<u64>() + lines_lost;
        if lost > self.warned.lost {
            let more = lost - self.warned.lost;
            tracing::warn!(
                "{more} records were lost: there are more than can be read or written; raise --rate-limit"
            );
            self.warned.lost = lost;
        }
        Ok(())
    }

    /// Follows a change in the kernel's interfaces and addresses.
    async fn follow(&mut self, netlink: &Netlink, change: Change) -> Result<(), Error> {
        match change {
            Change::Addresses => {
                let addresses = netlink.addresses().await?;
                interfaces::set_local_addresses(&mut self.kernel, &mut self.local, addresses)
            }
            Change::Link { ifindex, name } => {
                let gone = self
                    .watched
                    .iter()
                    .find(|it| it.ifindex == ifindex && name.as_deref() != Some(it.name.as_ref()));
                gone.map_or(Ok(()), |it| Err(Error::InterfaceGone { name: it.name.to_string() }))
            }
        }
    }

    /// Detaches, writes what is left, and sums up.
    fn finish(mut self) -> Result<Summary, Error> {
        for name in ["pping_ingress", "pping_egress"] {
            load::classifier(&mut self.kernel.programs, name)?.unload().ok();
        }
        if let Ok(xdp) = load::xdp(&mut self.kernel.programs) {
            // Not loaded unless it was asked for.
            xdp.unload().ok();
        }
        let duration = self.started.elapsed();
        self.drain()?;
        let counters = Snapshot::read(&self.kernel, &self.watched)?.total();
        let lines_lost = self.output.finish();
        Ok(Summary { duration, counters, totals: self.totals, lines_lost, capture: None })
    }
}

/// Waits for something to be readable.
fn readable<T: AsRawFd>(source: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: both sources own their descriptor and keep it as long as they are.
    Ok(unsafe { AsyncFd::register_with_interest(source, Interest::READABLE) }?)
}

/// Passes on what the kernel programs log.
fn forward_log(kernel: &mut Kernel) -> Result<(), Error> {
    let log = aya_log::EbpfLogger::init(&mut kernel.programs)
        .map_err(|error| Error::Load { what: "the log".to_owned(), source: error.into() })?;
    let mut log = readable(log)?;
    tokio::spawn(async move {
        while let Ok(mut ready) = log.readable_mut().await {
            ready.get_inner_mut().flush();
            ready.clear_ready();
        }
    });
    Ok(())
}
