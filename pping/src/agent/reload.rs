//! SIGHUP: the configuration is made anew, and files are read and opened again.

use super::Agent;
use crate::{
    Error,
    config::{Change, Changes, Config, Live},
    http::Server,
    kernel::{interfaces::Netlink, selection::Wanted},
    set_verbosity,
};

impl Agent {
    /// Follows a configuration that may have changed, while packets go on being measured by the programs that are
    /// attached. One that cannot be changes nothing.
    pub(super) async fn reload(&mut self, netlink: &Netlink) -> Result<(), Error> {
        self.notify.reloading();
        match self.loader.load() {
            Ok(loaded) => {
                if let Err(error) = self.change(netlink, loaded.config).await? {
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
            server.reload(self.config.live.web_config.as_deref());
        }
        self.notify.ready(&self.status());
        Ok(())
    }

    /// Follows a configuration. The inner error is a mistake in it, found before anything is changed.
    async fn change(&mut self, netlink: &Netlink, new: Config) -> Result<Result<(), Error>, Error> {
        let links = netlink.links().await?;
        let wanted = match Wanted::new(&new.live.interfaces) {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Err(error.into())),
        };
        let server = match self.another_server(&new.live) {
            Ok(server) => server,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = self.watching.want(wanted, &links, new.live.wait) {
            return Ok(Err(error.into()));
        }
        let Changes { followed, restart } = self.config.follow(&new);
        if !restart.is_empty() {
            tracing::warn!(
                "{}: changed, but not while pping runs; restart it for that{}",
                restart.join(", "),
                if self.pins.is_some() { ", of which no packet will be missed" } else { "" }
            );
        }
        self.watch_wanted(netlink).await?;
        let Config { live, aggregation, .. } = &self.config;
        let mut server = server;
        for change in followed {
            match change {
                Change::Listen => {
                    if let Some(old) = std::mem::replace(&mut self.server, server.take()) {
                        tokio::spawn(old.stop());
                    }
                }
                Change::Metrics => self.metrics.change(live.prometheus_groups, live.baseline),
                Change::GroupTimeout => self.aggregator.set_group_timeout(aggregation),
                Change::Output => self.output.reopener().reopen_at(self.config.output.clone()),
                Change::Verbosity => set_verbosity(self.config.verbosity),
                Change::Groups => {
                    if let (Some(groups), Some(path)) = (&mut self.groups, &aggregation.groups) {
                        groups.set_path(path);
                    }
                }
                // Done above, and by every reload.
                Change::Interfaces | Change::WebConfig => {}
            }
        }
        Ok(Ok(()))
    }

    /// The server at another address, if that is what is wanted: it is there before the old one goes.
    fn another_server(&self, live: &Live) -> Result<Option<Server>, Error> {
        match live.listen {
            Some(address) if self.config.live.listen != live.listen => {
                let (metrics, readiness) = (self.metrics.clone(), self.readiness.clone());
                Ok(Some(Server::start(address, live.web_config.as_deref(), metrics, readiness)?))
            }
            _ => Ok(None),
        }
    }
}
