//! The files that a web configuration was read from.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::text;

/// The longest file, bytes: a web configuration with thousands of users, or all authorities that a system trusts.
const MAX_BYTES: u64 = 1 << 20;

/// The files that were read, with their stamps at that time.
#[derive(Default)]
pub(super) struct Files(Vec<(PathBuf, Option<Stamp>)>);

/// The identity of a file's content: inode, size, mtime and ctime.
type Stamp = (u64, u64, [i64; 4]);

impl Files {
    pub(super) fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        // The stamp is taken before the content is read, so that the next check notices a change in between.
        self.0.push((path.to_owned(), stamp(path)));
        text::read_bytes(text::open(path)?, MAX_BYTES)
    }

    pub(super) fn have_changed(&self) -> bool {
        self.0.iter().any(|(path, stamped)| stamp(path) != *stamped)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let it = fs::metadata(path).ok()?;
    Some((it.ino(), it.size(), [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()]))
}
