//! Pins: maps, programs and links in a directory of a bpffs, which outlive a run.
//!
//! ```text
//! DIR/maps-LAYOUT/NAME            what the programs share with the agent
//! DIR/programs/NAME               the programs of the last agent
//! DIR/programs/HOOK_STAGES-ID     the arrays by which they call each other
//! DIR/links/IFINDEX-DIRECTION-POINT     what keeps them attached
//! ```
//!
//! Another version of pping, or one with another `--max-interfaces`, may have another layout, whose maps are useless to this
//! one. They stay until the programs that use them are replaced.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use aya::maps::{Array, Map, MapData};
use pping_common::{abi::layout_for, parse::Direction, table::Table};
use rustix::{
    fs::{FlockOperation, flock, fstatfs},
    process::geteuid,
};

use super::{attach_point::AttachPoint, load_options::LoadOptions};
use crate::kernel::Error;

/// `BPF_FS_MAGIC` of linux/magic.h.
pub(crate) const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// The permissions of the directories: what is in them and their lock are for their owner only.
const PRIVATE: u32 = 0o700;

/// The permissions of the group and of other users: all of them, and to write.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// Only owners of an entry, and the owner of the directory, may rename or remove the entry.
const STICKY: u32 = 0o1000;

/// Comes before the id in the name of a program array.
const STAGES: &str = "_STAGES-";

/// The directory, and the lock on it, which is held until this is dropped.
pub struct Pins {
    directory: PathBuf,
    maps: PathBuf,
    _lock: File,
}

impl Pins {
    /// Takes the directory, and makes it if necessary.
    ///
    /// # Errors
    /// [`Error::Pin`] if it is not on a bpffs, if other users can change it, or if another pping has it.
    pub fn take(directory: &Path, max_interfaces: u32) -> Result<Self, Error> {
        refuse_others_ancestors(directory)?;
        let lock = lock(directory, true)?;
        let maps = directory.join(format!("maps-{:016x}", layout_for(max_interfaces)));
        for directory in [&maps, &directory.join("programs"), &directory.join("links")] {
            make(directory)?;
            make_private(directory, &File::open(directory).map_err(|error| refused(directory, &error))?)?;
        }
        Ok(Self { directory: directory.to_owned(), maps, _lock: lock })
    }

    /// The interfaces to which an earlier run left programs attached, by ifindex.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn linked(&self) -> Result<BTreeSet<u32>, Error> {
        let links = entries(&self.directory.join("links"))?;
        let ifindex = |path: PathBuf| path.file_name()?.to_str()?.split('-').next()?.parse().ok();
        Ok(links.into_iter().filter_map(ifindex).collect())
    }

    /// The path of a map.
    pub(super) fn map(&self, name: &str) -> PathBuf {
        self.maps.join(name)
    }

    /// The path of a program.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.directory.join("programs").join(name)
    }

    /// The path of an array of programs with this id.
    pub(super) fn stages(&self, name: &str, id: u32) -> PathBuf {
        self.program(&format!("{name}-{id}"))
    }

    /// The path of an interface's link.
    pub(super) fn link(&self, ifindex: u32, direction: Direction, attach_point: AttachPoint) -> PathBuf {
        let name = format!("{ifindex}-{}-{}", direction.name(), attach_point.name());
        self.directory.join("links").join(name)
    }

    /// Adapts `options` to the pinned maps, whose sizes cannot change.
    ///
    /// # Errors
    /// If the maps cannot be read.
    pub fn fit(&self, options: &mut LoadOptions) -> Result<(), Error> {
        let room = |name| -> Result<Option<u32>, Error> {
            let path = self.map(name);
            if !path.exists() {
                return Ok(None);
            }
            let map = MapData::from_pin(&path)?;
            Ok(Some(map.info()?.max_entries()))
        };
        let table = self.table()?;
        let mut max_pending = options.pending_entries();
        // Otherwise it follows from `--max-flows`.
        let has_own_limit = options.max_pending <= options.max_flows;
        for (option, pinned, wanted) in [
            ("--max-flows", table.map(|table| table.entries.max), &mut options.max_flows),
            // The pool is never larger than the flow table.
            ("--max-pending", table.map(|table| table.pending.max), &mut max_pending),
            ("--max-groups", room("GROUPS")?, &mut options.max_groups),
        ] {
            if let Some(pinned) = pinned
                && pinned != *wanted
            {
                if has_own_limit || option != "--max-pending" {
                    tracing::warn!(
                        "{option} {wanted}: the maps pinned in {} have room for {pinned}, which cannot change; \
                         to make new ones, stop pping and run `pping unpin {0}`",
                        self.directory.display()
                    );
                }
                *wanted = pinned;
            }
        }
        options.max_pending = max_pending;
        options.max_series = room("SERIES")?;
        // It has no option to warn of.
        options.ring_bytes = room("EVENTS")?.unwrap_or(options.ring_bytes);
        let has_room = options.max_series.is_none_or(|pinned| pinned >= options.series_wanted());
        if !has_room {
            tracing::warn!(
                "the maps pinned in {} were made without groups, and have little room for them; to make \
                 larger ones, stop pping and run `pping unpin {0}`",
                self.directory.display()
            );
        }
        Ok(())
    }

    /// Returns the head of the pinned flow tables, if they are in use. Both address families have the same sizes and keys.
    pub(super) fn table(&self) -> Result<Option<Table>, Error> {
        let path = self.map("TABLES");
        if !path.exists() {
            return Ok(None);
        }
        let tables: Array<_, Table> = Array::try_from(Map::from_map_data(MapData::from_pin(&path)?)?)?;
        let table = tables.get(&0, 0)?;
        Ok((table.buckets != 0).then_some(table))
    }

    /// Removes the links that are not in `held`, which detaches their programs. Then removes the program arrays that
    /// are not in `held`, and the maps of other layouts.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn remove_others(&self, held: &BTreeSet<PathBuf>) -> Result<(), Error> {
        for path in entries(&self.directory.join("links"))? {
            if !held.contains(&path) {
                tracing::info!("{}: not used by this run; detaching", path.display());
                remove(&path)?;
            }
        }
        for path in entries(&self.directory.join("programs"))? {
            let is_of_stages = path.file_name().is_some_and(|name| name.to_string_lossy().contains(STAGES));
            if is_of_stages && !held.contains(&path) {
                remove(&path)?;
            }
        }
        for path in entries(&self.directory)? {
            let is_of_maps = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("maps-"));
            if is_of_maps && path != self.maps {
                tracing::warn!(
                    "{}: pinned by another version of pping, or with another --max-interfaces, in another layout; \
                     counters start again from zero",
                    path.display()
                );
                remove_all(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the links of an interface except those in `keep`, which detaches their programs.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub(super) fn remove_links(&self, ifindex: u32, keep: &[PathBuf]) -> Result<(), Error> {
        let prefix = format!("{ifindex}-");
        for path in entries(&self.directory.join("links"))? {
            let is_of_it = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
            if is_of_it && !keep.contains(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Removes all that pping pinned in a directory, and the directory. This detaches the programs, and discards what they
/// counted.
///
/// # Errors
/// [`Error::Pin`] if another pping has it, or if it cannot be removed.
pub fn unpin(directory: &Path) -> Result<(), Error> {
    let _lock = lock(directory, false)?;
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The kernel frees programs with their last link, and maps with their last user.
        if name == "links" || name == "programs" || name.starts_with("maps-") {
            remove_all(&path)?;
        }
    }
    match fs::remove_dir(directory) {
        // A mount point stays, and so does a directory that contains something else.
        Err(error) if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::ResourceBusy) => {
            Err(refused(directory, &error))
        }
        _ => Ok(()),
    }
}

/// Locks the directory until the returned file is dropped or the process ends.
fn lock(directory: &Path, may_make: bool) -> Result<File, Error> {
    let is_new = may_make && make(directory)?;
    let file = File::open(directory).map_err(|error| refused(directory, &error))?;
    let system = fstatfs(&file).map_err(|error| refused(directory, &error.into()))?;
    if system.f_type != BPF_FS_MAGIC {
        if is_new {
            fs::remove_dir(directory).ok();
        }
        return Err(Error::Pin {
            path: directory.to_owned(),
            reason: "not on a BPF file system; give a directory on one, like /sys/fs/bpf/pping (mount -t \
                     bpf bpf /sys/fs/bpf)"
                .to_owned(),
        });
    }
    if may_make {
        make_private(directory, &file)?;
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Pin {
            path: directory.to_owned(),
            reason: "another pping uses it; stop that one, or give each its own directory".to_owned(),
        }),
        Err(error) => Err(refused(directory, &error.into())),
    }
}

/// Makes the directory, and returns whether it did not exist before.
fn make(directory: &Path) -> Result<bool, Error> {
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(refused(directory, &error)),
    }
}

/// Refuses a directory into whose place another user could put something, because an ancestor belongs to another user or
/// others can write to it.
fn refuse_others_ancestors(directory: &Path) -> Result<(), Error> {
    let path = std::path::absolute(directory).map_err(|error| refused(directory, &error))?;
    // The parent without links: a link leads to ancestors with other owners.
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = parent.canonicalize().map_err(|error| refused(parent, &error))?;
    for ancestor in parent.ancestors() {
        let metadata = fs::metadata(ancestor).map_err(|error| refused(ancestor, &error))?;
        let is_writable = metadata.mode() & OTHERS_WRITE != 0 && metadata.mode() & STICKY == 0;
        if is_writable || !is_trusted(&metadata) {
            return Err(exposed(
                directory,
                &format!("other users can rename what is in {}", ancestor.display()),
            ));
        }
    }
    Ok(())
}

/// Lets only the owner of a directory use it. Refuses one of another user, or one that others could write to so far: they
/// may have put something into it.
fn make_private(directory: &Path, opened: &File) -> Result<(), Error> {
    let metadata = opened.metadata().map_err(|error| refused(directory, &error))?;
    if metadata.uid() != geteuid().as_raw() {
        return Err(exposed(directory, &format!("it belongs to the user {}", metadata.uid())));
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(exposed(directory, "other users can write to it"));
    }
    if metadata.mode() & OTHERS != 0 {
        opened
            .set_permissions(Permissions::from_mode(PRIVATE))
            .map_err(|error| refused(directory, &error))?;
    }
    Ok(())
}

/// Whether the owner of a directory is root or this process' user.
fn is_trusted(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || metadata.uid() == geteuid().as_raw()
}

fn exposed(directory: &Path, reason: &str) -> Error {
    let advice = "give a directory that only this user can write to, such as a separate BPF file system \
                  (mount -t bpf -o mode=0700 bpf /run/pping)";
    Error::Pin { path: directory.to_owned(), reason: format!("{reason}; {advice}") }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(directory).map_err(|error| refused(directory, &error))?;
    entries.map(|entry| Ok(entry.map_err(|error| refused(directory, &error))?.path())).collect()
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(refused(path, &error)),
        _ => Ok(()),
    }
}

fn remove_all(directory: &Path) -> Result<(), Error> {
    for path in entries(directory)? {
        remove(&path)?;
    }
    fs::remove_dir(directory).map_err(|error| refused(directory, &error))
}

fn refused(path: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => "; the directory has to belong to the user that pping runs as",
        ErrorKind::NotFound => "; is there a BPF file system? (mount -t bpf bpf /sys/fs/bpf)",
        _ => "",
    };
    Error::Pin { path: path.to_owned(), reason: format!("{error}{hint}") }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use pping_common::abi::{LAYOUT, PINNED_MAPS};

    use super::*;

    /// Returns the lines of a file in `tests/releases` that say what this version pins.
    fn lines() -> BTreeSet<String> {
        let maps = PINNED_MAPS.iter().map(|map| format!("{} = \"{:016x}\"", map.name, map.layout));
        maps.chain([format!("layout = \"{LAYOUT:016x}\""), "[maps]".to_owned()]).collect()
    }

    /// Returns the name of the file of the newest version in `tests/releases`, and its lines about maps.
    fn newest() -> (String, BTreeSet<String>) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases");
        let files =
            directory.read_dir().unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|name| {
            let numbers = name.strip_suffix(".toml").unwrap().split('.');
            Reverse(numbers.map(|number| number.parse::<u32>().unwrap()).collect::<Vec<_>>())
        });
        let text = fs::read_to_string(directory.join(&files[0])).unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("commit "));
        (files[0].clone(), lines.map(ToOwned::to_owned).collect())
    }

    #[test]
    fn an_upgrade_from_the_last_release_continues_its_maps() {
        let ((file, release), current) = (newest(), lines());
        let (gone, new): (Vec<_>, Vec<_>) =
            (release.difference(&current).collect(), current.difference(&release).collect());
        assert!(
            release == current,
            "pping/tests/releases/{file} has {gone:#?}\nand this version {new:#?}\n\
             The maps that it pins have another layout, so an upgrade would set all counters to zero. Keep the layout \
             of the release: put new fields into a map that is not pinned, for instance. If that cannot be, say in \
             CHANGELOG.md that counters start again, and write a file for the next version with the new lines. Once \
             that version is released, its file gets the line `commit`."
        );
    }
}
