//! The groups file: read at the start, and again at each SIGHUP. See docs/architecture.md, A SIGHUP.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use tokio::task::{self, JoinHandle};

use crate::{
    Error,
    groups::{self, Directory, Labels},
    kernel::{
        labels::{self, Prefixes},
        loaded::Kernel,
        series::SeriesTable,
    },
};

/// The current groups.
pub(super) struct GroupsFile {
    /// The file that was read last.
    path: PathBuf,
    labels: Labels,
    directory: Directory,
    /// The kernel's map of prefixes, unless a task has it.
    map: Option<Prefixes>,
    task: Option<JoinHandle<Done>>,
}

/// The outcome of a task, with the map that it had.
enum Done {
    /// The file was read, and its prefixes added beside the current ones; or it had an error.
    Loaded(Prefixes, Box<Result<Loaded, Error>>),
    /// The previous prefixes are removed.
    Removed(Prefixes),
}

/// A file that was read, and the generation of its prefixes in the kernel.
struct Loaded {
    labels: Labels,
    directory: Directory,
    generation: u32,
}

impl GroupsFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If the file cannot be read or has an error.
    pub(super) fn read(path: PathBuf) -> Result<Self, Error> {
        let (labels, directory) = read(&path, Labels::default())?;
        Ok(Self { path, labels, directory, map: None, task: None })
    }

    /// Adds the labels of the previous run, which the file may not have any more.
    pub(super) fn remember(&mut self, labels: &[String]) {
        for label in labels {
            self.labels.add_labels_of(label);
        }
    }

    /// Applies the file for the first time.
    ///
    /// # Errors
    /// If the kernel has no room for its prefixes.
    pub(super) fn apply(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let generation = labels::next(kernel.series.generation());
        if let Some(mut map) = kernel.labels.take() {
            labels::add(&mut map, generation, self.directory.prefixes())?;
            kernel.series.set_generation(generation);
            // A pinned map may have the prefixes of the previous run.
            labels::retain_generation(&mut map, generation)?;
            self.map = Some(map);
        }
        Ok(())
    }

    /// The current labels.
    pub(super) fn labels(&self) -> Labels {
        self.labels.clone()
    }

    /// The current prefixes.
    pub(super) fn directory(&self) -> Directory {
        self.directory.clone()
    }

    /// Starts reading this file, while packets are still counted by the current groups.
    pub(super) fn reload(&mut self, path: &Path, series: &SeriesTable) {
        path.clone_into(&mut self.path);
        let Some(mut map) = self.map.take() else {
            tracing::warn!("--groups {}: the last change is still in progress; reload again", path.display());
            return;
        };
        let (path, labels) = (self.path.clone(), self.labels.clone());
        let generation = labels::next(series.generation());
        self.task = Some(task::spawn_blocking(move || {
            let loaded = load(&path, labels, &mut map, generation);
            Done::Loaded(map, Box::new(loaded))
        }));
    }

    /// Waits for the task, forever if there is none. If it loaded a file, applies it and returns its labels.
    pub(super) async fn changed(&mut self, series: &SeriesTable) -> Option<Labels> {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let done = task.await;
        self.task = None;
        match done {
            Ok(Done::Removed(map)) => self.map = Some(map),
            Ok(Done::Loaded(map, loaded)) => match *loaded {
                Ok(loaded) => return Some(self.switch_to(loaded, map, series)),
                Err(error) => {
                    tracing::error!("{error}; the groups stay as they were");
                    self.map = Some(map);
                }
            },
            // The task panicked, and the map is lost. The current groups stay.
            Err(error) => tracing::error!("--groups {}: {error}", self.path.display()),
        }
        None
    }

    /// Applies a loaded file, and starts removing the previous prefixes.
    fn switch_to(&mut self, loaded: Loaded, mut map: Prefixes, series: &SeriesTable) -> Labels {
        let old_generation = series.generation();
        series.set_generation(loaded.generation);
        let old = std::mem::replace(&mut self.directory, loaded.directory);
        self.labels = loaded.labels;
        tracing::info!(
            "--groups {}: now {}, before {}",
            self.path.display(),
            size(&self.directory),
            size(&old)
        );
        self.task = Some(task::spawn_blocking(move || {
            labels::remove(&mut map, old_generation, old.prefixes());
            Done::Removed(map)
        }));
        self.labels.clone()
    }
}

fn load(path: &Path, labels: Labels, map: &mut Prefixes, generation: u32) -> Result<Loaded, Error> {
    let (labels, directory) = read(path, labels)?;
    labels::add(map, generation, directory.prefixes())?;
    Ok(Loaded { labels, directory, generation })
}

fn read(path: &Path, mut labels: Labels) -> Result<(Labels, Directory), Error> {
    let began = Instant::now();
    let prefixes = groups::load(path, &mut labels).map_err(Error::Groups)?.prefixes;
    let seconds = began.elapsed().as_secs_f64();
    let directory = Directory::new(prefixes, &labels);
    tracing::info!("--groups {}: {} read in {seconds:.1} s", path.display(), size(&directory));
    Ok((labels, directory))
}

/// Says how much a file lists, so that somebody who sees the log finds out if half of it is missing.
fn size(directory: &Directory) -> String {
    let of =
        |number: usize, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    let (prefixes, groups) = (directory.prefixes().len(), directory.groups());
    format!("{} of {}", of(prefixes, "prefix", "prefixes"), of(groups, "group", "groups"))
}
