//! The networks at the other end (`--remote-groups`): their file is read at the start, and again at each SIGHUP.

use std::{
    mem,
    path::{Path, PathBuf},
};

use pping_common::{group::GroupKey, series::SeriesCounts};
use tokio::task::{self, JoinHandle};

use crate::{
    Error,
    config::{Aggregation, RemoteBy},
    groups::{Networks, SeriesName, networks},
    kernel::{
        self,
        labels::{self, Prefixes},
        loaded::Kernel,
    },
};

/// The networks at the other end.
pub(super) struct RemoteNetworks {
    /// The handle by which names are found.
    pub(super) known: Networks,
    /// The prefixes of the file, until the kernel programs know them.
    prefixes: networks::Prefixes,
    /// Those that the kernel programs know, unless a reload has them.
    in_kernel: Option<Prefixes>,
    /// Whether there were more than there is room for.
    has_others: bool,
    task: Option<JoinHandle<Prefixes>>,
}

impl RemoteNetworks {
    /// Reads the file; `None` if networks are not told apart.
    ///
    /// # Errors
    /// If it cannot be read or has an error.
    pub(super) fn read(aggregation: &Aggregation) -> Result<Option<Self>, Error> {
        let Some(path) = &aggregation.remote_groups else { return Ok(None) };
        let known = Networks::default();
        let prefixes = known.load(path, aggregation.remote_by)?;
        tracing::info!("--remote-groups {}: {} prefixes", path.display(), prefixes.len());
        Ok(Some(Self { known, prefixes, in_kernel: None, has_others: false, task: None }))
    }

    /// Tells the kernel programs the prefixes, for the first time.
    ///
    /// # Errors
    /// If the kernel has no room for them.
    pub(super) fn apply(&mut self, kernel: &mut Kernel) -> Result<(), kernel::Error> {
        let mut map = labels::open_again(&kernel.networks)?;
        labels::add(&mut map, 0, mem::take(&mut self.prefixes).into_iter())?;
        self.in_kernel = Some(map);
        Ok(())
    }

    /// Starts reading the file again, while packets are still counted by the present networks.
    pub(super) fn reload(&mut self, path: &Path, by: RemoteBy) {
        let Some(mut map) = self.in_kernel.take() else {
            tracing::warn!(
                "--remote-groups {}: the last change is still in progress; reload again",
                path.display()
            );
            return;
        };
        let (path, known): (PathBuf, _) = (path.to_owned(), self.known.clone());
        self.task = Some(task::spawn_blocking(move || {
            match known.load(&path, by) {
                Ok(prefixes) => replace(&mut map, &path, &prefixes),
                Err(error) => tracing::error!("--remote-groups {error}; the networks stay as they were"),
            }
            map
        }));
    }

    /// Warns the first time that samples count for the remaining networks.
    pub(super) fn look_for_others(&mut self, series: &[(SeriesName, SeriesCounts)], max_networks: u32) {
        let is_of_others = |(name, counts): &(SeriesName, SeriesCounts)| {
            name.group.key == GroupKey::OTHER_NETWORKS && counts.has_samples()
        };
        if !self.has_others && series.iter().any(is_of_others) {
            self.has_others = true;
            tracing::warn!(
                "there are more than {max_networks} networks at the other end at a time, or an eighth of that at flows that are \
                 not proved: the others count as `other`; raise --max-networks"
            );
        }
    }

    /// Whether a reload has ended since the last call.
    pub(super) async fn has_reloaded(&mut self) -> bool {
        let Some(task) = self.task.take_if(|task| task.is_finished()) else { return false };
        match task.await {
            Ok(map) => self.in_kernel = Some(map),
            Err(error) => tracing::error!("--remote-groups: {error}; the networks stay as they are"),
        }
        true
    }
}

/// Replaces the prefixes that the kernel programs know.
fn replace(map: &mut Prefixes, path: &Path, prefixes: &networks::Prefixes) {
    let (path, count) = (path.display(), prefixes.len());
    match labels::replace(map, 0, prefixes) {
        Ok(()) => tracing::info!("--remote-groups {path}: {count} prefixes"),
        Err(error) => tracing::error!(
            "--remote-groups {path}: {error}; some of its {count} prefixes are missing: use a smaller file, and reload"
        ),
    }
}
