//! The groups that a file lists: read at start, and again whenever somebody asks.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use ipnet::IpNet;
use tokio::task::{self, JoinHandle};

use crate::{
    Error,
    groups::{self, Labels},
    kernel::{
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
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(path: PathBuf) -> Result<Self, Error> {
        let (labels, prefixes) = read(&path, Labels::default())?;
        Ok(Self { path, labels, prefixes, map: None, busy: None })
    }

    /// Still knows the labels of a run before this one, should the file have others now.
    pub(super) fn know(&mut self, labels: &[String]) {
        for label in labels {
            self.labels.know(label);
        }
    }

    /// Puts it into force for the first time.
    ///
    /// # Errors
    /// When the kernel has no room for its prefixes.
    pub(super) fn put_into(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let generation = labels::next(kernel.series.generation());
        if let Some(mut map) = kernel.labels.take() {
            labels::add(&mut map, generation, &self.prefixes)?;
            kernel.series.set_generation(generation);
            // Where maps are pinned there may be those of a run before this one.
            labels::keep_generation(&mut map, generation)?;
            self.map = Some(map);
        }
        Ok(())
    }

    /// Has the next reload read this file.
    pub(super) fn set_path(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
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

fn load(path: &Path, labels: Labels, map: &mut Prefixes, generation: u32) -> Result<Loaded, Error> {
    let (labels, prefixes) = read(path, labels)?;
    labels::add(map, generation, &prefixes)?;
    Ok(Loaded { labels, prefixes, generation })
}

fn read(path: &Path, mut labels: Labels) -> Result<(Labels, Vec<(IpNet, u32)>), Error> {
    let began = Instant::now();
    let prefixes = groups::load(path, &mut labels)?.prefixes;
    let seconds = began.elapsed().as_secs_f64();
    tracing::info!("--groups {}: {} prefixes read in {seconds:.1} s", path.display(), prefixes.len());
    Ok((labels, prefixes))
}
