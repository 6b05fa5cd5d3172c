//! The files beside it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// Keeps a file from others: two pping would write over each other's changes. The lock ends with what is returned, and with the
/// process. `None` if the file system has no room for it, or no locks.
///
/// # Errors
/// [`Locked`] if another pping has it.
pub fn lock(path: &Path) -> Result<Option<File>, Locked> {
    // The file itself is replaced now and then.
    let path = beside(path, ".lock");
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o640).custom_flags(without_waiting);
    let Ok(file) = options.open(path) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Locked),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Another process has locked a file.
#[derive(Debug)]
pub struct Locked;

/// Puts a damaged file aside, and returns where it is. A file that was put aside before is replaced.
///
/// # Errors
/// If it cannot be renamed.
pub fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = beside(path, ".damaged");
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// The path of a file beside it.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
