//! The directory of a history.

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{OFlags, statvfs};
use serde::{Deserialize, Serialize};

use super::{
    error::Error,
    piece::Piece,
    read::StoredFile,
    tier::Tier,
    write::{NewFile, TEMPORARY, key, sync_parent},
};
use crate::{foreign_text::sanitized, quality::Profiles, text};

/// The version of the format. A newer one is refused.
pub(super) const FORMAT: u32 = 1;

/// The file that marks the directory.
const MARKER: &str = "pping-history.json";

/// The marker while it is written.
const UNFINISHED_MARKER: &str = "pping-history.json.tmp";

/// The most bytes of the marker.
const MARKER_BYTES: u64 = 4096;

/// The file that a writer locks.
const LOCK: &str = "lock";

/// The extension that damaged files get.
const DAMAGED: &str = "damaged";

/// What the marker says.
#[derive(Deserialize, Serialize)]
struct Marker {
    format: u32,
    /// The program that created the history.
    by: String,
}

/// An open history.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    /// Held by the writer.
    _lock: Option<File>,
}

impl Store {
    /// Opens a history, to read it.
    ///
    /// # Errors
    /// If there is none, or one of a newer pping.
    pub(super) fn open(directory: &Path) -> Result<Self, Error> {
        match read_marker(directory)? {
            Some(()) => Ok(Self { directory: directory.to_owned(), _lock: None }),
            None => Err(Error::Missing(directory.to_owned())),
        }
    }

    /// Opens a history, to write to it, or creates one.
    ///
    /// # Errors
    /// If that cannot be, or another process writes to it.
    pub(super) fn create(directory: &Path) -> Result<Self, Error> {
        let failed = |error| Error::write(directory, error);
        fs::create_dir_all(directory).map_err(failed)?;
        if read_marker(directory)?.is_none() {
            // A disk that was full may have left a marker that is not complete.
            let own = [LOCK, "lost+found", UNFINISHED_MARKER];
            let is_foreign = |entry: &fs::DirEntry| own.iter().all(|name| entry.file_name() != *name);
            let entries = fs::read_dir(directory).map_err(|error| Error::read(directory, error))?;
            if entries.filter_map(Result::ok).any(|entry| is_foreign(&entry)) {
                return Err(Error::Foreign(directory.to_owned()));
            }
        }
        let lock = lock(directory)?;
        if read_marker(directory)?.is_none() {
            write_marker(directory).map_err(failed)?;
        }
        let store = Self { directory: directory.to_owned(), _lock: Some(lock) };
        store.remove_temporary();
        Ok(store)
    }

    /// The files of a tier, in the order of their times.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub(super) fn pieces(&self, tier: Tier) -> Result<Vec<Piece>, Error> {
        let mut pieces = Vec::new();
        for path in self.entries(Path::new(tier.name()))? {
            match Piece::from_path(&path) {
                Some(piece) => pieces.push(piece),
                None if self.path(&path).is_dir() => {
                    pieces.extend(self.entries(&path)?.iter().filter_map(|path| Piece::from_path(path)));
                }
                None => {}
            }
        }
        pieces.sort_unstable();
        Ok(pieces)
    }

    /// The paths of what is in a directory of the history, relative to the history; nothing if it does not exist.
    pub(super) fn entries(&self, directory: &Path) -> Result<Vec<PathBuf>, Error> {
        let path = self.path(directory);
        let failed = |error| Error::read(&path, error);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(directory.join(entry?.file_name()));
        entries.map(name).collect::<io::Result<_>>().map_err(failed)
    }

    /// The path of a file of the history.
    pub(super) fn path(&self, relative: &Path) -> PathBuf {
        self.directory.join(relative)
    }

    /// Opens a file, and checks that it is what its name says.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub(super) fn open_piece(&self, piece: &Piece) -> Result<StoredFile, Error> {
        let path = self.path(&piece.path());
        let file = StoredFile::open(&path)?;
        if file.fact(key::STEP) != Some(&piece.tier.step().to_string()) {
            return Err(Error::damaged(&path, format!("it has no intervals of {}", piece.tier.name())));
        }
        if file.times().is_some_and(|(first, last)| first < piece.start || last >= piece.end()) {
            return Err(Error::damaged(&path, "its rows are of another time than its name says"));
        }
        Ok(file)
    }

    /// The size of a file, bytes; 0 if it is gone.
    pub(super) fn size(&self, piece: &Piece) -> u64 {
        fs::metadata(self.path(&piece.path())).map_or(0, |it| it.len())
    }

    /// The room on the disk, bytes; `None` if the file system does not say.
    pub(super) fn free_room(&self) -> Option<u64> {
        // Some file systems have no blocks, and so no room that could be told.
        let disk = statvfs(&self.directory).ok().filter(|disk| disk.f_blocks > 0)?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Begins a new file of a time, under the first name that is free, for groups with these other columns.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn begin(
        &self,
        first: Piece,
        labels: &BTreeSet<Arc<str>>,
        profiles: &Profiles,
    ) -> Result<NewFile, Error> {
        let paths = (1..).map(|number| self.path(&Piece { number, ..first }.path()));
        // A link to nothing takes a name, too.
        let mut free = paths.skip_while(|path| path.symlink_metadata().is_ok());
        let path = free.next().unwrap_or_else(|| self.path(&first.path()));
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|error| Error::write(directory, error))?;
        }
        NewFile::create(&path, first.tier.step(), labels, profiles)
    }

    /// Removes a file, and its directory if that is empty then.
    ///
    /// # Errors
    /// If the file system refuses.
    pub(super) fn remove(&self, piece: &Piece) -> Result<(), Error> {
        let path = self.path(&piece.path());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::write(&path, error)),
            _ => {}
        }
        if let Some(directory) = path.parent() {
            // It fails as long as another file is there.
            fs::remove_dir(directory).ok();
        }
        Ok(())
    }

    /// Renames a damaged file, so that it stays for whoever wants to look at it.
    ///
    /// # Errors
    /// If the file system refuses.
    pub(super) fn set_aside(path: &Path) -> Result<(), Error> {
        fs::rename(path, path.with_added_extension(DAMAGED)).map_err(|error| Error::write(path, error))
    }

    /// Removes what a killed writer did not complete.
    fn remove_temporary(&self) {
        let is_temporary = |path: &PathBuf| path.extension().is_some_and(|it| it == TEMPORARY);
        for tier in Tier::ALL {
            let entries = self.entries(Path::new(tier.name())).unwrap_or_default();
            let inner = entries.iter().flat_map(|path| self.entries(path).unwrap_or_default());
            let all: Vec<PathBuf> = inner.chain(entries.iter().cloned()).filter(is_temporary).collect();
            for path in all {
                fs::remove_file(self.path(&path)).ok();
            }
        }
    }
}

/// Whether a directory is a history.
pub(super) fn is_history(directory: &Path) -> bool {
    directory.join(MARKER).exists()
}

/// Reads the marker; `None` if there is none.
fn read_marker(directory: &Path) -> Result<Option<()>, Error> {
    let path = directory.join(MARKER);
    let opened = text::open(&path).and_then(|file| text::read_bytes(file, MARKER_BYTES));
    let text = match opened {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::read(&path, error)),
    };
    let Marker { format, by } =
        serde_json::from_slice(&text).map_err(|error| Error::damaged(&path, error.to_string()))?;
    let by = sanitized(&by);
    if format > FORMAT {
        return Err(Error::Newer { directory: directory.to_owned(), by, format, known: FORMAT });
    }
    Ok(Some(()))
}

fn write_marker(directory: &Path) -> io::Result<()> {
    let marker = Marker { format: FORMAT, by: format!("pping {}", env!("CARGO_PKG_VERSION")) };
    let (path, temporary) = (directory.join(MARKER), directory.join(UNFINISHED_MARKER));
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(&marker)?)?;
    file.sync_all()?;
    fs::rename(temporary, &path)?;
    sync_parent(&path)
}

fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join(LOCK);
    // Opening a pipe for writing would wait for its reader.
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file =
        File::options().create(true).truncate(false).write(true).custom_flags(without_waiting).open(&path);
    let file = file.map_err(|error| Error::write(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked(directory.to_owned())),
        Err(TryLockError::Error(error)) => Err(Error::write(&path, error)),
    }
}
