//! Files to which other programs add, and which they replace now and then.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::text;

/// The bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// What a look at the file brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// The file goes on with these bytes.
    Bytes(&'a [u8]),
    /// Another file has its path, or it was emptied. What follows is from its beginning.
    Replaced,
}

/// A file that is read as it grows.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Its device and inode.
    id: (u64, u64),
    /// The bytes that were read.
    read: u64,
}

impl Tail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes what is new: the rest of the file that was read before, even if it has another path by now, and then the one that
    /// has its path.
    ///
    /// # Errors
    /// If there was never a file, or it cannot be read.
    pub(super) fn poll(&mut self, take: &mut dyn FnMut(Part<'_>)) -> io::Result<()> {
        let next = match text::open(&self.path) {
            Ok(file) => Some(Open::new(file)?),
            // It is being replaced.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.open.is_some() => None,
            Err(error) => return Err(error),
        };
        let is_first = self.open.is_none();
        if let Some(open) = &mut self.open {
            // Whoever replaces a file does not write to the old one any more.
            open.read(take)?;
        }
        if let Some(mut next) = next
            && self.open.as_ref().is_none_or(|open| open.id != next.id)
        {
            if !is_first {
                take(Part::Replaced);
            }
            next.read(take)?;
            self.open = Some(next);
        }
        Ok(())
    }
}

impl Open {
    fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { file, id: (metadata.dev(), metadata.ino()), read: 0 })
    }

    fn read(&mut self, take: &mut dyn FnMut(Part<'_>)) -> io::Result<()> {
        if self.file.metadata()?.len() < self.read {
            self.file.rewind()?;
            self.read = 0;
            take(Part::Replaced);
        }
        let mut piece = vec![0; PIECE];
        loop {
            let length = self.file.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
            self.read += length as u64;
            take(Part::Bytes(piece.get(..length).unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;

    fn poll(tail: &mut Tail) -> String {
        let mut found = String::new();
        tail.poll(&mut |part| match part {
            Part::Bytes(bytes) => found += std::str::from_utf8(bytes).unwrap(),
            Part::Replaced => found += "|",
        })
        .unwrap();
        found
    }

    #[test]
    fn a_file_is_read_as_it_grows_and_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("leases");
        let mut tail = Tail::new(path.clone());
        assert!(tail.poll(&mut |_| {}).is_err());
        fs::write(&path, "a").unwrap();
        assert_eq!(poll(&mut tail), "a");
        assert_eq!(poll(&mut tail), "");
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"bc").unwrap();
        assert_eq!(poll(&mut tail), "bc");
        // The last line is added, then the file is moved away, and another one begins.
        file.write_all(b"d").unwrap();
        fs::rename(&path, directory.path().join("leases.1")).unwrap();
        assert_eq!(poll(&mut tail), "d");
        file.write_all(b"e").unwrap();
        fs::write(&path, "new").unwrap();
        assert_eq!(poll(&mut tail), "e|new");
        fs::write(&path, "x").unwrap();
        assert_eq!(poll(&mut tail), "|x");
    }
}
