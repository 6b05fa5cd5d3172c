//! Files that other programs write over again: they are read once they have not changed for a moment.

use std::{
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::text;

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// What tells that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        let modified = (file.mtime(), file.mtime_nsec());
        Self { device: file.dev(), inode: file.ino(), size: file.size(), modified }
    }
}

/// A file that is read when it has changed.
#[derive(Debug)]
pub(super) struct Settled {
    path: PathBuf,
    /// As it was at the last look.
    seen: Option<Stamp>,
    /// As it was when it was read.
    read: Option<Stamp>,
}

impl Settled {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, seen: None, read: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the file, if it was written since they were returned, and has not changed since the call before this one: its
    /// writer may empty it first.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn poll(&mut self) -> io::Result<Option<Vec<u8>>> {
        let file = text::open(&self.path).inspect_err(|_| self.seen = None)?;
        let stamp = Stamp::of(&file.metadata()?);
        if self.seen.replace(stamp) != Some(stamp) || self.read == Some(stamp) {
            return Ok(None);
        }
        let bytes = text::read_bytes(file.try_clone()?, MAX_BYTES)?;
        if Stamp::of(&file.metadata()?) != stamp {
            return Ok(None);
        }
        self.read = Some(stamp);
        Ok(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_once_it_rests() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases");
        let mut settled = Settled::new(path.clone());
        assert_eq!(settled.poll().unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "one").unwrap();
        assert_eq!(settled.poll().unwrap(), None);
        assert_eq!(settled.poll().unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(settled.poll().unwrap(), None);
        // Its writer empties it first.
        fs::write(&path, "").unwrap();
        assert_eq!(settled.poll().unwrap(), None);
        fs::write(&path, "one, two").unwrap();
        assert_eq!(settled.poll().unwrap(), None);
        assert_eq!(settled.poll().unwrap().as_deref(), Some(&b"one, two"[..]));
        fs::write(directory.path().join("new"), "one").unwrap();
        fs::rename(directory.path().join("new"), &path).unwrap();
        assert_eq!(settled.poll().unwrap(), None);
        assert_eq!(settled.poll().unwrap().as_deref(), Some(&b"one"[..]));
    }
}
