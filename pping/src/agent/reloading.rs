//! SIGHUP: the configuration is made anew, and files are read and opened again.

use super::Agent;
use crate::{
    Error,
    config::{Config, Live, Source, unchangeable},
    http::Server,
    kernel::{interfaces::Netlink, wanted::Wanted},
    set_verbosity,
};

impl Agent {
    /// Follows a configuration that may have changed, while packets go on being measured by the programs that are
    /// attached. One that cannot be changes nothing.
    pub(super) async fn reload(&mut self, netlink: &Netlink) -> Result<(), Error> {
        self.notify.reloading();
        match self.reload.again() {
            Ok(config) => {
                if let Err(error) = self.change(netlink, config).await? {
                    tracing::error!("{error}; the configuration stays as it was");
                }
            }
            Err(error) => tracing::error!("{error}; the configuration stays as it was"),
        }
        // Whether it changed or not: log rotation asks in the same way.
        self.output.reopener().reopen();
        self.aggregator.reporter.reopen();
        if let Some(groups) = &mut self.groups {
            groups.reload(&self.kernel.series);
        }
        if let Some(server) = &self.server {
            server.reload(self.live.web_config.as_deref());
        }
        self.notify.ready(&self.status());
        Ok(())
    }

    /// Follows a configuration. The inner error is of what is wrong with it, found before anything is changed.
    async fn change(&mut self, netlink: &Netlink, config: Config) -> Result<Result<(), Error>, Error> {
        let Source::Interfaces(live) = config.source.clone() else { return Ok(Ok(())) };
        let fixed = unchangeable(&self.config, &config);
        let links = netlink.links().await?;
        let wanted = match Wanted::new(&live.interfaces) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Err(error.into())),
        };
        let server = match self.another_server(&live) {
            Ok(server) => server,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = self.watching.want(wanted, &links, live.wait) {
            return Ok(Err(error.into()));
        }
        if !fixed.is_empty() {
            tracing::warn!(
                "{}: changed, but not while pping runs; restart it for that{}",
                fixed.join(", "),
                if self.pins.is_some() { ", of which no packet will be missed" } else { "" }
            );
        }
        self.watch_wanted(netlink).await?;
        if live.listen != self.live.listen
            && let Some(old) = std::mem::replace(&mut self.server, server)
        {
            tokio::spawn(old.stop());
        }
        set_verbosity(config.verbosity);
        self.metrics.change(live.prometheus_groups, live.baseline);
        self.aggregator.set_group_timeout(&config.aggregation);
        if config.output != self.config.output {
            self.output.reopener().reopen_at(config.output.clone());
        }
        if let (Some(groups), Some(path)) = (&mut self.groups, &config.aggregation.groups) {
            groups.set_path(path);
        }
        // What is fixed stays what it was, to be named again the next time.
        self.config.output = config.output;
        self.config.verbosity = config.verbosity;
        self.config.aggregation.group_timeout = config.aggregation.group_timeout;
        self.live = Live { ingress: self.live.ingress, pin: self.live.pin.clone(), ..live };
        Ok(Ok(()))
    }

    /// The server at another address, if that is what is wanted: it is there before the old one goes.
    fn another_server(&self, live: &Live) -> Result<Option<Server>, Error> {
        match live.listen {
            Some(address) if self.live.listen != live.listen => {
                let (metrics, readiness) = (self.metrics.clone(), self.readiness.clone());
                Ok(Some(Server::start(address, live.web_config.as_deref(), metrics, readiness)?))
            }
            _ => Ok(None),
        }
    }
}
