//! A BPF file system of a test's own.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::monitor::tool;

/// Mounted until dropped, with all that is pinned in it.
pub(super) struct Bpffs(TempDir);

impl Bpffs {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (is_mounted, said) = tool("mount", &["-t", "bpf", "bpf", directory.path().to_str().unwrap()]);
        assert!(is_mounted, "{said}");
        Self(directory)
    }

    /// Where pping can pin.
    pub(super) fn pins(&self) -> PathBuf {
        self.path().join("pping")
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        // At once for everybody, even if another test has just taken a copy of all mounts into a namespace of its own.
        tool("umount", &["--lazy", self.0.path().to_str().unwrap_or_default()]);
    }
}

/// How many files are in a directory and those in it.
pub(super) fn files(directory: &Path) -> usize {
    let Ok(entries) = directory.read_dir() else { return 0 };
    entries.map(|entry| entry.unwrap().path()).map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}
