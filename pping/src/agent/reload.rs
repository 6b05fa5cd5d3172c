//! SIGHUP: the configuration is made again, and files are read and opened again. See docs/architecture.md, A SIGHUP.

use super::{
    setup::{self, access, contents},
    state::Agent,
};
#[cfg(feature = "otlp")]
use crate::otlp::{Exporter, Receiver};
use crate::{
    Error,
    config::{Change, Changes, Config},
    features,
    groups::Levels,
    http::Server,
    kernel::{interfaces::Link, netlink, selection::Selection},
    quality, set_verbosity,
};

impl Agent {
    /// Makes the configuration again and follows it, while the attached programs go on measuring. If the new
    /// configuration has an error, the present one stays, and the files that it names are still read again.
    pub(super) async fn reload(&mut self) -> Result<(), Error> {
        self.notify.reloading();
        match self.loader.load() {
            Ok(loaded) => {
                if let Err(error) = self.change(loaded.config).await? {
                    tracing::error!("{error}; the configuration stays as it was");
                }
            }
            Err(error) => tracing::error!("{error}; the configuration stays as it was"),
        }
        // Whether or not anything changed: log rotation sends the same signal.
        self.output.reopener().reopen();
        self.reporter.reopen();
        if let (Some(groups), Some(path)) = (&mut self.groups, &self.config.aggregation.groups) {
            groups.reload(path, Levels::new(&self.config.aggregation.roll_up));
        }
        let aggregation = &self.config.aggregation;
        if let (Some(networks), Some(path)) = (&mut self.networks, &aggregation.remote_groups) {
            networks.reload(path, aggregation.remote_by);
        }
        self.reload_profiles();
        if let Some(server) = &self.server {
            server.reload(access(&self.config.live));
        }
        self.notify.ready(&self.status());
        Ok(())
    }

    /// Follows a configuration. The inner error is one of the configuration, found before anything is changed.
    async fn change(&mut self, new: Config) -> Result<Result<(), Error>, Error> {
        let links = match netlink::links().await {
            Ok(listing) => listing.found,
            Err(error) => return Ok(Err(error.into())),
        };
        if let Err(missing) = features::check(&new.live) {
            return Ok(Err(missing.into()));
        }
        #[cfg(feature = "otlp")]
        let receiver = match new.live.otlp.as_ref().map(Receiver::new).transpose() {
            Ok(receiver) => receiver,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut server = match self.prepare(&new, &links) {
            Ok(server) => server,
            Err(error) => return Ok(Err(error)),
        };
        let Changes { followed, restart } = self.config.follow(&new);
        if !restart.is_empty() {
            tracing::warn!(
                "{}: the change takes effect only when pping restarts{}",
                restart.join(", "),
                if self.pins.is_some() { ", which misses no packets" } else { "" }
            );
        }
        self.update_interfaces().await?;
        #[cfg(feature = "otlp")]
        self.push(receiver);
        let Config { live, .. } = &self.config;
        for change in followed {
            match change {
                Change::Listen => {
                    if let Some(old) = std::mem::replace(&mut self.server, server.take()) {
                        tokio::spawn(old.stop());
                    }
                }
                Change::Metrics => self.metrics.change(live.prometheus_groups, live.baseline),
                Change::HistoryMemory => self.recent.limit(live.history_memory),
                Change::HistoryLimits =>
                {
                    #[cfg(feature = "history")]
                    if let Some(history) = &self.history {
                        history.limit(live.history_limits);
                    }
                }
                Change::Inside => {
                    let networks = &self.config.aggregation.inside.prefixes;
                    match setup::list(&mut self.kernel.inside, networks) {
                        Ok(()) => tracing::info!("--inside: now {} networks", networks.len()),
                        Err(error) => tracing::error!(
                            "--inside: {error}; some of its {} networks are missing: list fewer, and reload",
                            networks.len()
                        ),
                    }
                    // Flows remember on which side their hosts were.
                    self.kernel.series.resolve_again();
                    self.placement.forget_sides();
                }
                Change::Output => self.output.reopener().reopen_at(self.config.output.clone()),
                Change::Verbosity => set_verbosity(self.config.verbosity),
                // These are done above, read again by every reload, or looked up in each cycle.
                Change::Interfaces
                | Change::Quality
                | Change::Otlp
                | Change::Groups
                | Change::Networks
                | Change::WebConfig
                | Change::GroupTimeout => {}
            }
        }
        Ok(Ok(()))
    }

    /// Reads the profiles again. A file with an error changes nothing.
    fn reload_profiles(&mut self) {
        match quality::load(self.config.quality.as_deref()).map_err(Error::Quality) {
            Ok(profiles) => {
                self.reporter.score_by(profiles.clone());
                self.metrics.score_by(profiles.clone());
                #[cfg(feature = "history")]
                if let Some(history) = &self.history {
                    history.score_by(profiles.clone());
                }
                self.recent.score_by(profiles);
            }
            Err(error) => tracing::error!("{error}; the profiles stay as they were"),
        }
    }

    /// Pushes metrics to this receiver from now on, or to none. The receiver has read its files again.
    #[cfg(feature = "otlp")]
    pub(super) fn push(&mut self, receiver: Option<Receiver>) {
        let settings = self.config.live.otlp.clone();
        match (&self.exporter, settings.zip(receiver)) {
            (Some(exporter), Some((settings, receiver))) => exporter.reload(&settings, receiver),
            (None, Some((settings, receiver))) => {
                match Exporter::start(&settings, receiver, self.metrics.clone()) {
                    Ok(exporter) => self.exporter = Some(exporter),
                    Err(error) => tracing::error!("--otlp: {error}; nothing is pushed until the next reload"),
                }
            }
            (_, None) => {
                if let Some(old) = self.exporter.take() {
                    tokio::spawn(old.stop());
                }
            }
        }
    }

    /// Does what fails if the configuration has an error: starts a server if the listen address changed, and selects the
    /// interfaces. The new server listens before the old one stops.
    fn prepare(&mut self, new: &Config, links: &[Link]) -> Result<Option<Server>, Error> {
        let selection = Selection::new(&new.live.interfaces)?;
        selection.check_joined(links)?;
        let address = new.live.listen.filter(|address| self.config.live.listen != Some(*address));
        let start = |address| {
            // Another directory of the history takes a restart.
            let contents = contents(&self.config.live, &self.metrics, &self.recent, &self.readiness);
            Server::start(address, access(&new.live), contents)
        };
        let server = address.map(start).transpose()?;
        self.interfaces.select(selection, links, new.live.wait)?;
        Ok(server)
    }
}
