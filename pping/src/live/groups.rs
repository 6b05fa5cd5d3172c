//! The groups that a file lists: read at start, and again whenever somebody asks.

use std::{path::PathBuf, time::Instant};

use ipnet::IpNet;
use tokio::task::{self, JoinHandle};

use crate::{
    Error,
    groups::{self, Labels},
    source::{
        labels::{self, Prefixes},
        load::Kernel,
        series::SeriesTable,
    },
};

/// The groups file, and what is in force of it.
pub(super) struct GroupsFile {
    path: PathBuf,
    labels: Labels,
    prefixes: Vec<(IpNet, u32)>,
    /// Whoever is at the kernel's prefixes has them.
    map: Option<Prefixes>,
    /// The task that has them at present.
    busy: Option<JoinHandle<Busy>>,
}

/// What came of a task that had the prefixes.
enum Busy {
    /// The file was read, and its prefixes are in the kernel beside the old, or it was not.
    Read(Prefixes, Box<Result<Loaded, Error>>),
    /// The old ones are gone.
    Cleaned(Prefixes),
}

/// A file that was read.
struct Loaded {
    labels: Labels,
    prefixes: Vec<(IpNet, u32)>,
    generation: u32,
}

impl GroupsFile {
    /// Reads the file for the first time, and puts it into force.
    ///
    /// # Errors
    /// What is wrong with it, or the kernel has no room for its prefixes.
    pub(super) fn open(path: PathBuf, kernel: &mut Kernel) -> Result<Self, Error> {
        let generation = labels::next(kernel.series.generation());
        let mut map = kernel.labels.take().ok_or_else(|| Error::Map("LABELS is taken".into()))?;
        let Loaded { labels, prefixes, .. } = load(&path, Labels::default(), &mut map, generation)?;
        kernel.series.set_generation(generation);
        Ok(Self { path, labels, prefixes, map: Some(map), busy: None })
    }

    /// The labels in force.
    pub(super) fn labels(&self) -> Labels {
        self.labels.clone()
    }

    /// Begins to read the file again, while packets go on being counted by the old one.
    pub(super) fn reload(&mut self, series: &SeriesTable) {
        let Some(mut map) = self.map.take() else {
            tracing::warn!("--groups {}: still busy with the last change; ask again", self.path.display());
            return;
        };
        let (path, labels) = (self.path.clone(), self.labels.clone());
        let generation = labels::next(series.generation());
        self.busy = Some(task::spawn_blocking(move || {
            let loaded = load(&path, labels, &mut map, generation);
            Busy::Read(map, Box::new(loaded))
        }));
    }

    /// Waits until the kernel's prefixes are back; for ever, when nobody has them. Returns new labels, once they are in
    /// force.
    pub(super) async fn changed(&mut self, series: &SeriesTable) -> Option<Labels> {
        let Some(busy) = &mut self.busy else { return std::future::pending().await };
        let done = busy.await;
        self.busy = None;
        match done {
            Ok(Busy::Cleaned(map)) => self.map = Some(map),
            Ok(Busy::Read(map, loaded)) => match *loaded {
                Ok(loaded) => return Some(self.put(map, loaded, series)),
                Err(error) => {
                    tracing::error!("{error}; the groups stay as they were");
                    self.map = Some(map);
                }
            },
            // It panicked, and the prefixes are lost to it. Those in force stay.
            Err(error) => tracing::error!("--groups {}: {error}", self.path.display()),
        }
        None
    }

    /// Puts what was read into force, and has what was in force removed.
    fn put(&mut self, mut map: Prefixes, loaded: Loaded, series: &SeriesTable) -> Labels {
        let old_generation = series.generation();
        series.set_generation(loaded.generation);
        let old = std::mem::replace(&mut self.prefixes, loaded.prefixes);
        self.labels = loaded.labels;
        tracing::info!(
            "--groups {}: {} prefixes are in force, {} were",
            self.path.display(),
            self.prefixes.len(),
            old.len()
        );
        self.busy = Some(task::spawn_blocking(move || {
            labels::remove(&mut map, old_generation, &old);
            Busy::Cleaned(map)
        }));
        self.labels.clone()
    }
}

fn load(
    path: &std::path::Path,
    mut labels: Labels,
    map: &mut Prefixes,
    generation: u32,
) -> Result<Loaded, Error> {
    let began = Instant::now();
    let prefixes = groups::load(path, &mut labels)?.prefixes;
    labels::add(map, generation, &prefixes)?;
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!("--groups {}: {} prefixes read in {seconds:.1} s", path.display(), prefixes.len());
    Ok(Loaded { labels, prefixes, generation })
}
