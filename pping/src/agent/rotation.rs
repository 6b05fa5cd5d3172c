//! Taking what the kernel programs have aggregated: see docs/architecture.md, Series and rotation.

use std::time::{Duration, Instant};

use pping_common::series::SeriesCounts;

use super::state::Agent;
use crate::{
    Error,
    config::Aggregation,
    groups::{Kind, QueueName, SeriesName, roll_up},
    kernel::{clock, loaded::Kernel},
};

/// What was measured in an epoch.
pub(super) struct Epoch {
    /// Round trips, and traffic: those of groups, then those of the nodes of the tree and of networks.
    series: Vec<(SeriesName, SeriesCounts)>,
    /// The number of series of groups.
    of_groups: usize,
    /// Times of packets in queues.
    queues: Vec<(QueueName, SeriesCounts)>,
}

impl Agent {
    /// Exchanges the histograms, and returns those of the epoch that ended. [`Agent::commit`] has to follow.
    pub(super) fn rotate(&mut self) -> Result<Epoch, Error> {
        self.kernel.series.rotate();
        self.take_last_epoch()
    }

    fn take_last_epoch(&mut self) -> Result<Epoch, Error> {
        let Self { kernel: Kernel { series, interface_ids, .. }, names, .. } = self;
        // Labels may have other columns than before.
        names.refresh();
        let mut epoch = Epoch { series: Vec::new(), of_groups: 0, queues: Vec::new() };
        let mut networks = Vec::new();
        series.take(|key, counts| {
            let interface = interface_ids.name(key.interface).cloned();
            if let Some(name) = names.queue(key, interface.clone()) {
                epoch.queues.push((name, *counts));
            } else if let Some(name) = names.series(key, interface) {
                let of_kind = if key.group.is_network() { &mut networks } else { &mut epoch.series };
                of_kind.push((name, *counts));
            }
        })?;
        epoch.of_groups = epoch.series.len();
        let nodes = roll_up(&epoch.series);
        epoch.series.extend(nodes);
        epoch.series.extend(networks);
        Ok(epoch)
    }

    /// Adds an epoch to the interval, the summary and the metrics; with `--pin`, also to the persistent counts. Then the kernel's copy
    /// is emptied, and series without traffic come one step closer to being removed.
    pub(super) fn commit(&mut self, epoch: &Epoch) -> Result<(), Error> {
        let is_viewed = self.is_viewed();
        let Self {
            kernel: Kernel { series, interface_ids, .. },
            names,
            reporter,
            metrics,
            recent,
            placement,
            networks,
            config,
            ..
        } = self;
        for (name, counts) in &epoch.series {
            reporter.take(name, counts);
        }
        let of_groups = epoch.series.get(..epoch.of_groups).unwrap_or_default();
        for (name, counts) in of_groups {
            placement.take(name, counts);
        }
        for (name, counts) in &epoch.queues {
            reporter.take_queue(name, counts);
        }
        if let Some(networks) = networks {
            networks.look_for_others(&epoch.series, config.aggregation.max_networks);
        }
        metrics.add_queues(&epoch.queues);
        metrics.add(&epoch.series, Instant::now());
        metrics.expire_nodes(config.aggregation.group_timeout);
        if is_viewed {
            let now = clock::wall()?;
            recent.add(&epoch.series, now);
            recent.add_queues(&epoch.queues, now);
        }
        #[cfg(feature = "history")]
        if let Some(history) = &mut self.history {
            history.add(of_groups);
        }
        metrics.commit(series.rotations());
        for interface in interface_ids.take_replaced() {
            metrics.forget_interface(&interface);
        }
        for key in series.commit()? {
            let interface = interface_ids.name(key.interface).cloned();
            if let Some(name) = names.queue(&key, interface.clone()) {
                metrics.forget_queue(&name);
                recent.forget_queue(&name);
            } else if let Some(name) = names.series(&key, interface).filter(is_of_group) {
                metrics.forget(&name);
                recent.forget(&name);
            }
            names.forget(&key.group);
        }
        Ok(series.expire(idle_epochs(&config.aggregation))?)
    }

    /// Ends what was counted before this run, with pins: the summary and pushed metrics have only what comes after. It is
    /// over before pping says that it measures.
    pub(super) fn begin_counting(&mut self) -> Result<(), Error> {
        if self.pins.is_some() {
            let epoch = self.rotate()?;
            self.commit(&epoch)?;
            self.reporter.forget_totals();
            self.placement.forget_sides();
            self.counters_before = self.kernel.counters.snapshot(&self.interfaces.watched).total();
        }
        Ok(())
    }

    /// Continues where the previous run stopped, if its maps are pinned: serves its metrics again, and commits the
    /// epoch that it did not commit.
    pub(super) fn adopt_series(&mut self) -> Result<(), Error> {
        if self.pins.is_none() {
            return Ok(());
        }
        let Self { kernel: Kernel { series, interface_ids, .. }, names, metrics, .. } = self;
        let known: Vec<SeriesName> = series
            .keys()
            .filter_map(|key| names.series(key, interface_ids.name(key.interface).cloned()))
            .filter(is_of_group)
            .collect();
        metrics.resume(&known, series.committed(), Instant::now());
        if series.committed() != series.rotations() {
            let epoch = self.take_last_epoch()?;
            self.commit(&epoch)?;
        }
        // Flows remember series that the options of the previous run chose.
        self.kernel.series.resolve_again();
        Ok(())
    }
}

/// Whether a series is of a group. Those of networks expire where they are shown, as those of nodes do.
fn is_of_group(name: &SeriesName) -> bool {
    name.group.kind() == Kind::Group
}

/// Rotations without traffic after which a series is removed.
fn idle_epochs(aggregation: &Aggregation) -> u32 {
    let rotation = aggregation.interval.unwrap_or(Duration::MAX).min(Duration::from_secs(1));
    let rotations = aggregation.group_timeout.as_nanos() / rotation.as_nanos().max(1);
    u32::try_from(rotations).unwrap_or(u32::MAX).max(1)
}
