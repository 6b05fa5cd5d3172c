//! A private BPF file system for a test.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use pping::kernel::pins::Pins;
use pping_common::limits::DEFAULT_MAX_INTERFACES;
use tempfile::TempDir;

use super::monitor::{PATIENCE, tool};

/// A mount that lasts until dropped, with everything pinned in it.
pub(crate) struct Bpffs(TempDir);

impl Bpffs {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (is_mounted, said) = tool("mount", &["-t", "bpf", "bpf", directory.path().to_str().unwrap()]);
        assert!(is_mounted, "{said}");
        Self(directory)
    }

    /// The directory for `--pin`.
    pub(crate) fn pins(&self) -> PathBuf {
        self.path().join("pping")
    }

    /// Takes the directory. A process that another test forks holds this process's descriptors, and so the directory's lock,
    /// until it executes its program.
    pub(crate) fn take(&self) -> Pins {
        let start = Instant::now();
        loop {
            match Pins::take(&self.pins(), DEFAULT_MAX_INTERFACES) {
                Ok(pins) => return pins,
                Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        // A lazy unmount takes effect at once, even if another test has just copied all mounts into its own namespace.
        tool("umount", &["--lazy", self.0.path().to_str().unwrap_or_default()]);
    }
}

/// The number of files in a directory tree.
pub(super) fn files(directory: &Path) -> usize {
    let Ok(entries) = directory.read_dir() else { return 0 };
    entries.map(|entry| entry.unwrap().path()).map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}
