use std::{panic, path::Path, thread};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use crate::{Error, Result, error::Context};

/// Runs `work` on a new thread with a directory on a disk of this size. Only that thread and its children see the disk,
/// which disappears with them. A panic in `work` goes on in the caller.
///
/// # Errors
/// [`Error::NotRoot`] for anyone but root; otherwise the kernel's error when mounting.
pub fn on_small_disk<T: Send>(kibibytes: u32, work: impl FnOnce(&Path) -> T + Send) -> Result<T> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let directory = tempfile::tempdir().while_doing(|| "make a temporary directory".to_owned())?;
    let path = directory.path();
    let inside = || {
        unshare(CloneFlags::CLONE_NEWNS).while_doing(|| "make a mount namespace".to_owned())?;
        let none: Option<&str> = None;
        // Otherwise the mount would be visible everywhere.
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
            .while_doing(|| "keep mounts private".to_owned())?;
        let options = format!("size={kibibytes}k");
        mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))
            .while_doing(|| format!("mount a disk of {kibibytes} KiB"))?;
        Ok(work(path))
    };
    match thread::scope(|scope| scope.spawn(inside).join()) {
        Ok(result) => result,
        Err(payload) => panic::resume_unwind(payload),
    }
}
