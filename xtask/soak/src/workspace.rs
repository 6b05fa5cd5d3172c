//! The files of a soak. They are in memory, because a disk that others fill is no fault of pping, and pins are in a BPF
//! file system.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use anyhow::{Context as _, Result};

/// How the names of the directories begin. The id of the process that made them follows.
const PREFIX: &str = "pping-soak-";
/// Where the BPF file system is mounted, below a directory.
const BPFFS: &str = "bpf";

/// A directory for one soak. Dropping it removes the directory, unless it is kept.
pub(super) struct Workspace {
    directory: PathBuf,
    /// Entries that the kernel puts into each BPF file system.
    own: usize,
    is_kept: bool,
}

impl Workspace {
    /// Makes a workspace, after removing those of soaks that were killed.
    pub(super) fn new() -> Result<Self> {
        sweep();
        let directory = env::temp_dir().join(format!("{PREFIX}{}", process::id()));
        let mut workspace = Self { directory, own: 0, is_kept: false };
        mount("tmpfs", &workspace.directory)?;
        mount("bpf", &workspace.bpffs())?;
        workspace.own = count(&workspace.bpffs())?;
        Ok(workspace)
    }

    /// The directory for files.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory for pins.
    pub(super) fn bpffs(&self) -> PathBuf {
        self.directory.join(BPFFS)
    }

    /// Returns how many objects are pinned, including the directories that they are in.
    pub(super) fn pinned(&self) -> Result<usize> {
        Ok(count(&self.bpffs())?.saturating_sub(self.own))
    }

    /// Keeps all files except the pins, to find out what went wrong.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        unmount(&self.bpffs());
        if self.is_kept {
            eprintln!(
                "what the agents logged is in {0}, in memory until `umount {0}`",
                self.directory.display()
            );
            return;
        }
        unmount(&self.directory);
        fs::remove_dir(&self.directory).ok();
    }
}

/// Mounts a file system that has no device, in a directory that is made for it.
fn mount(kind: &str, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("could not make {}", directory.display()))?;
    pping_lab::run(Command::new("mount").args(["-t", kind, kind]).arg(directory))?;
    Ok(())
}

/// Unmounts as far as possible: a guard can report a failure, not return it.
fn unmount(directory: &Path) {
    if let Err(error) = pping_lab::run(Command::new("umount").arg(directory)) {
        eprintln!("{} stays mounted: {error}", directory.display());
    }
}

/// Removes the workspaces of soaks that no longer run.
fn sweep() {
    let Ok(entries) = fs::read_dir(env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(maker) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if Path::new("/proc").join(maker).exists() {
            continue;
        }
        for mounted in [entry.path().join(BPFFS), entry.path()] {
            // It may not be mounted any more.
            pping_lab::run(Command::new("umount").arg(mounted)).ok();
        }
        fs::remove_dir(entry.path()).ok();
    }
}

fn count(directory: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        count += 1;
        if entry.file_type()?.is_dir() {
            count += self::count(&entry.path())?;
        }
    }
    Ok(count)
}
