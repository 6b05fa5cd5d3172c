//! The loop of a running agent, and what it does once a second.

use std::time::Duration;

use pping_common::{
    abi::Emit,
    limits::{DRAIN_INTERVAL_MS, SECOND},
};
use tokio::{
    task,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    groups::Groups,
    interfaces::TURN,
    state::{Agent, Inputs},
};
use crate::{
    Error,
    kernel::{
        self,
        clock::{self, Moment},
        interfaces::set_local_addresses,
        netlink::{self, Change},
    },
    memory,
    output::Batch,
    records::Record,
};

impl Agent {
    /// Runs until `shutdown` resolves, or the output ends: by an error, or because its reader closed it.
    pub(super) async fn run_until(
        &mut self,
        Inputs { notices, ring, hangup, output_ended }: &mut Inputs,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        self.arms.tell(&self.kernel, &self.interfaces.watched, self.config.arms);
        let mut drain = interval(Duration::from_millis(DRAIN_INTERVAL_MS));
        drain.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A turn takes most of the time until the next one. In the rest everything else has its own.
        let mut turns = interval(TURN * 5 / 4);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(shutdown);
        let next_cycle = sleep(self.until_next_cycle()?);
        tokio::pin!(next_cycle);
        loop {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                Ok(reason) = &mut *output_ended => return reason.map_or(Ok(()), |error| Err(error.into())),
                _ = hangup.recv() => self.reload().await?,
                () = groups_reloaded(&mut self.groups) => {}
                change = notices.changed() => self.follow(change).await?,
                _ = turns.tick(), if self.interfaces.has_more => {
                    self.follow(Change { links: true, addresses: false }).await?;
                }
                () = &mut next_cycle => {
                    self.cycle().await?;
                    next_cycle.set(sleep(self.until_next_cycle()?));
                }
                ready = ring.readable() => {
                    ready?.clear_ready();
                    self.drain()?;
                }
                _ = drain.tick(), if self.kernel.options.emit != Emit::NOTHING => self.drain()?,
            }
        }
    }

    /// Does the work of a full second of the wall clock, or of the end of an interval of `--aggregate`.
    async fn cycle(&mut self) -> Result<(), Error> {
        // Events name series by index, and an index may be given to another series below.
        self.drain()?;
        let now = Moment::now()?;
        let last = std::mem::replace(&mut self.last_cycle, now);
        if now.wall / SECOND != last.wall / SECOND {
            self.rank();
            self.interfaces.put_filters_back(&mut self.kernel)?;
            self.arms.tell(&self.kernel, &self.interfaces.watched, self.config.arms);
            self.kernel.sweep()?;
            self.take_worst(now.wall);
        }
        let epoch = self.rotate()?;
        self.commit(&epoch)?;
        self.reporter.take_residence(self.residence()?);
        let records = self.end_interval(&last, &now)?;
        self.write(&records);
        #[cfg(feature = "history")]
        if let Some(history) = &mut self.history {
            history.tick(now.wall);
        }
        self.count()?;
        self.notify.alive();
        if self.interfaces.is_retry_due() {
            self.update_interfaces().await?;
        }
        if self.are_addresses_due {
            self.update_addresses().await?;
        }
        self.follow_groups();
        if let Some(networks) = &mut self.networks
            && networks.has_reloaded().await
        {
            // Flows remember the series of the networks that there were before.
            self.kernel.series.resolve_again();
        }
        Ok(())
    }

    /// Follows changes of the groups, which other threads make.
    fn follow_groups(&mut self) {
        let Some(groups) = &self.groups else { return };
        if groups.has_switched() {
            // With --inside groups, the file says what is inside.
            self.placement.forget_sides();
        }
        groups.forget_unused(&self.kernel.series);
        if let Some(changes) = groups.changes() {
            self.metrics.set_group_changes(changes);
        }
    }

    /// Returns the time until the next full second of the wall clock, or until the end of the interval if that is
    /// earlier.
    fn until_next_cycle(&self) -> Result<Duration, Error> {
        let now = clock::wall()?;
        let second = now - now % SECOND + SECOND;
        let next = self.reporter.interval_end().map_or(second, |interval| interval.min(second));
        Ok(Duration::from_nanos(next.saturating_sub(now)))
    }

    /// Returns the records of the interval of `--aggregate` if it is over: at its end, or because the wall clock was
    /// set. Then the interval ends by the clock as it was before, so its length is the time that passed.
    fn end_interval(&mut self, last: &Moment, now: &Moment) -> Result<Vec<Record>, Error> {
        let Some(end) = now.before_step(last) else { return Ok(self.reporter.tick(now.wall)?) };
        tracing::warn!(
            "the wall clock was set {} by {:.1} s: the interval ends here",
            if now.wall > end { "forward" } else { "back" },
            now.wall.abs_diff(end) as f64 / SECOND as f64
        );
        let records = self.reporter.finish(end)?;
        self.reporter.restart(now.wall);
        Ok(records)
    }

    pub(super) fn write(&mut self, records: &[Record]) {
        let mut batch = Batch::default();
        for record in records {
            self.encoder.append(record, &mut batch);
        }
        self.output.write(batch);
    }

    /// Follows a change of the kernel's interfaces or addresses.
    async fn follow(&mut self, change: Change) -> Result<(), Error> {
        if change.links {
            let before = self.status();
            self.update_interfaces().await?;
            // Metrics show it at once, not at the next second.
            self.count()?;
            let status = self.status();
            if status != before {
                self.notify.status(&status);
            }
        }
        if change.addresses {
            self.update_addresses().await?;
        }
        Ok(())
    }

    /// Attaches to the selected interfaces that exist, and detaches from all others. If the kernel does not list them now,
    /// that is tried again.
    pub(super) async fn update_interfaces(&mut self) -> Result<(), kernel::Error> {
        let Self { interfaces, kernel, pins, metrics, .. } = self;
        let Some(listing) = interfaces.take_list(netlink::links().await) else { return Ok(()) };
        metrics.set_expected(interfaces.expected(&listing));
        let failures = interfaces.update(kernel, pins.as_ref(), &listing)?;
        if failures.is_empty() {
            return Ok(());
        }
        // An interface that went away before it could be attached to is no failure.
        let Some(listing) = interfaces.take_list(netlink::links().await) else { return Ok(()) };
        for (link, error) in failures.iter().filter(|(link, _)| listing.found.contains(link)) {
            interfaces.log_failure(link, error);
        }
        Ok(())
    }

    /// Tells the kernel programs the addresses of this host. If the kernel does not list them now, that is tried again.
    async fn update_addresses(&mut self) -> Result<(), kernel::Error> {
        if self.config.live.mirror {
            self.are_addresses_due = false;
            return Ok(());
        }
        match netlink::addresses().await {
            Ok(addresses) => {
                self.are_addresses_due = false;
                set_local_addresses(&mut self.kernel, &mut self.local_addresses, addresses)
            }
            Err(error) => {
                tracing::warn!("{error}; trying again");
                self.are_addresses_due = true;
                Ok(())
            }
        }
    }
}

/// Waits for the end of reading a groups file again, and for that of the groups before; forever if none is being read.
async fn groups_reloaded(groups: &mut Option<Groups>) {
    match groups {
        Some(groups) => {
            groups.reloaded().await;
            // Otherwise each reading of a million prefixes leaves tens of megabytes in pieces.
            task::spawn_blocking(memory::give_back);
        }
        None => std::future::pending().await,
    }
}
