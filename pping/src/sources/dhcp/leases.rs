//! The leases of a file, as it changes.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use foldhash::fast::RandomState;
use ipnet::IpNet;

use super::{
    dnsmasq,
    isc::Isc,
    kea::Kea,
    lease::{Content, Event, LabelBy},
    tail::{Part, Tail},
};
use crate::{
    groups::overlay::MAX_PREFIXES,
    sources::{
        change::{Change, Name},
        complaints::Complaints,
        settled::Settled,
    },
    text,
};

/// The longest file that Kea moved away, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The longest entry of a file, in bytes.
const MAX_ENTRY: usize = 1 << 20;

/// A file of leases.
pub(super) struct LeaseFile {
    file: Format,
    leases: Leases,
}

/// How a server keeps its leases.
enum Format {
    /// Lines are added. A new file goes on where the old one ended.
    Kea { tail: Tail, kea: Kea, rest: Vec<u8> },
    /// Declarations are added. A new file has all of them.
    Isc { tail: Tail, isc: Isc, rest: Vec<u8> },
    /// All lines are written again.
    Dnsmasq { settled: Settled, content: Content },
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no lease file of this server.
    #[error(
        "this is no lease file of {0}; give those of Kea to --kea, of dnsmasq to --dnsmasq, and of ISC's dhcpd to --isc"
    )]
    Foreign(&'static str),
}

/// Who has which lease.
struct Leases {
    label_by: LabelBy,
    held: HashMap<IpNet, Lease, RandomState>,
    /// Whether another file lists everything from its beginning on, as soon as it is known to have leases.
    is_replaced: bool,
    /// Those of the file before, until this one is read.
    previous: HashMap<IpNet, Lease, RandomState>,
    /// Seconds since 1970.
    now: u64,
}

struct Lease {
    label: Arc<str>,
    expires: Option<u64>,
    /// Whether it has expired. It is kept for a while: a clock that is wrong may be put right.
    has_ended: bool,
}

impl Lease {
    fn change(&self, prefix: IpNet) -> Change {
        self.name().map_or(Change::Unset(prefix), |name| Change::Set(prefix, name))
    }

    fn name(&self) -> Option<Name> {
        (!self.has_ended).then(|| Name { label: Arc::clone(&self.label), columns: None })
    }
}

/// How long a lease is kept that has expired, in seconds.
const KEEP_ENDED: u64 = 24 * 3600;

impl LeaseFile {
    pub(super) fn kea(path: PathBuf, label_by: LabelBy) -> Self {
        let format = Format::Kea { tail: Tail::new(path), kea: Kea::default(), rest: Vec::new() };
        Self::new(format, label_by)
    }

    pub(super) fn isc(path: PathBuf, label_by: LabelBy) -> Self {
        Self::new(Format::Isc { tail: Tail::new(path), isc: Isc::default(), rest: Vec::new() }, label_by)
    }

    pub(super) fn dnsmasq(path: PathBuf, label_by: LabelBy) -> Self {
        let format = Format::Dnsmasq { settled: Settled::new(path), content: Content::Unknown };
        Self::new(format, label_by)
    }

    fn new(file: Format, label_by: LabelBy) -> Self {
        let (held, previous) = (HashMap::default(), HashMap::default());
        Self { file, leases: Leases { label_by, held, is_replaced: false, previous, now: 0 } }
    }

    pub(super) fn path(&self) -> &Path {
        match &self.file {
            Format::Kea { tail, .. } | Format::Isc { tail, .. } => tail.path(),
            Format::Dnsmasq { settled, .. } => settled.path(),
        }
    }

    /// The name of an active lease.
    pub(super) fn name_of(&self, prefix: &IpNet) -> Option<Name> {
        self.leases.held.get(prefix).and_then(Lease::name)
    }

    /// Reads what Kea had moved away before this began. A file goes on where the one before it ended, so the order matters, and
    /// files that Kea is just rewriting may be missing: they are only wanted for leases that have not changed since.
    pub(super) fn read_earlier(&mut self, now: u64, changes: &mut Vec<Change>, complaints: &mut Complaints) {
        let Self { file: Format::Kea { tail, .. }, leases } = self else { return };
        leases.now = now;
        let with = |suffix: &str| {
            let mut name = tail.path().as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let mut read = |suffix| {
            let path = with(suffix);
            let mut bytes = match text::open(&path).and_then(|file| text::read_bytes(file, MAX_BYTES)) {
                Ok(bytes) => bytes,
                Err(error) => {
                    if error.kind() != io::ErrorKind::NotFound {
                        complaints.warn("times that a file could not be read", || {
                            format!("{}: {error}", path.display())
                        });
                    }
                    return false;
                }
            };
            let mut kea = Kea::default();
            kea.read(text_of(&mut bytes), &mut |event| leases.take(event, &path, changes, complaints));
            true
        };
        if !read(".completed") {
            read(".2");
            read(".1");
        }
    }

    /// Reads what has changed, and ends leases that have expired. Returns whether the file was read now or before.
    ///
    /// # Errors
    /// If it cannot be read, or is no lease file. Its leases stay as they were then, until they expire.
    pub(super) fn poll(
        &mut self,
        now: u64,
        changes: &mut Vec<Change>,
        complaints: &mut Complaints,
    ) -> Result<bool, ReadError> {
        self.leases.now = now;
        let read = self.read(changes, complaints);
        self.leases.end_previous(changes);
        self.leases.expire(changes);
        let (content, server) = match &self.file {
            Format::Kea { kea, .. } => (kea.content(), "Kea"),
            Format::Isc { isc, .. } => (isc.content(), "ISC's dhcpd"),
            Format::Dnsmasq { content, .. } => (*content, "dnsmasq"),
        };
        read?;
        match content {
            Content::Unknown => Ok(false),
            Content::Leases => Ok(true),
            Content::Foreign => Err(ReadError::Foreign(server)),
        }
    }

    fn read(&mut self, changes: &mut Vec<Change>, complaints: &mut Complaints) -> io::Result<()> {
        let Self { file, leases } = self;
        match file {
            Format::Kea { tail, kea, rest } => {
                let path = tail.path().to_owned();
                tail.poll(&mut |part| match part {
                    Part::Bytes(bytes) => read_part(rest, bytes, &path, complaints, |text, complaints| {
                        kea.read(text, &mut |event| leases.take(event, &path, changes, complaints))
                    }),
                    Part::Replaced => {
                        rest.clear();
                        *kea = Kea::default();
                    }
                })
            }
            Format::Isc { tail, isc, rest } => {
                let path = tail.path().to_owned();
                tail.poll(&mut |part| match part {
                    Part::Bytes(bytes) => {
                        read_part(rest, bytes, &path, complaints, |text, complaints| {
                            isc.read(text, &mut |event| leases.take(event, &path, changes, complaints))
                        });
                        if isc.content() == Content::Leases {
                            leases.begin_if_replaced();
                        }
                    }
                    Part::Replaced => {
                        rest.clear();
                        *isc = Isc::default();
                        leases.is_replaced = true;
                    }
                })
            }
            Format::Dnsmasq { settled, content } => {
                let Some(mut bytes) = settled.poll()? else { return Ok(()) };
                let path = settled.path().to_owned();
                let text = text_of(&mut bytes);
                *content = dnsmasq::content(text);
                if *content == Content::Foreign {
                    return Ok(());
                }
                // What is not all there says nothing of leases that it does not list.
                leases.is_replaced = dnsmasq::is_whole(text);
                leases.begin_if_replaced();
                dnsmasq::read(text, &mut |event| leases.take(event, &path, changes, complaints));
                Ok(())
            }
        }
    }
}

/// Reads the whole entries of what has come, and keeps the rest.
fn read_part(
    rest: &mut Vec<u8>,
    bytes: &[u8],
    path: &Path,
    complaints: &mut Complaints,
    mut read: impl FnMut(&str, &mut Complaints) -> usize,
) {
    rest.extend(bytes);
    let length = read(text_of(rest), complaints);
    rest.drain(..length);
    if rest.len() > MAX_ENTRY {
        rest.clear();
        complaints.warn("unreadable", || format!("{}: an entry has no end", path.display()));
    }
}

/// The text that bytes are. What is not UTF-8 becomes a question mark, and a character that is not there yet is left out.
fn text_of(bytes: &mut [u8]) -> &str {
    while let Err(error) = std::str::from_utf8(bytes) {
        let start = error.valid_up_to();
        let Some(length) = error.error_len() else {
            return std::str::from_utf8(&bytes[..start]).unwrap_or_default();
        };
        bytes[start..start + length].fill(b'?');
    }
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl Leases {
    fn take(&mut self, event: Event, path: &Path, changes: &mut Vec<Change>, complaints: &mut Complaints) {
        self.begin_if_replaced();
        match event {
            Event::Leased { prefix, client, expires } => {
                let Some(label) = client.label(self.label_by) else {
                    self.free(prefix, changes);
                    return complaints.warn("without a name", || {
                        format!("{}: the lease of {prefix} has no name, and is left out", path.display())
                    });
                };
                if self.held.len() >= MAX_PREFIXES && !self.held.contains_key(&prefix) {
                    return complaints.warn("without room", || {
                        format!("{}: there are more than {MAX_PREFIXES} leases", path.display())
                    });
                }
                self.previous.remove(&prefix);
                let has_ended = expires.is_some_and(|expires| expires <= self.now);
                let lease = Lease { label, expires, has_ended };
                changes.push(lease.change(prefix));
                self.held.insert(prefix, lease);
            }
            Event::Free(prefix) => self.free(prefix, changes),
            Event::Unreadable(line) => complaints.warn("unreadable", || {
                format!("{}: this cannot be read, and is left out: {}", path.display(), line.escape_debug())
            }),
        }
    }

    fn free(&mut self, prefix: IpNet, changes: &mut Vec<Change>) {
        if self.held.remove(&prefix).or(self.previous.remove(&prefix)).is_some() {
            changes.push(Change::Unset(prefix));
        }
    }

    /// Keeps the leases of the file before apart if another file lists everything from here on.
    fn begin_if_replaced(&mut self) {
        if std::mem::take(&mut self.is_replaced) {
            let before = std::mem::take(&mut self.held);
            self.previous.extend(before);
        }
    }

    /// What the other file does not list has ended.
    fn end_previous(&mut self, changes: &mut Vec<Change>) {
        changes.extend(self.previous.drain().map(|(prefix, _)| Change::Unset(prefix)));
    }

    fn expire(&mut self, changes: &mut Vec<Change>) {
        let now = self.now;
        self.held.retain(|prefix, lease| {
            let Some(expires) = lease.expires else { return true };
            let has_ended = expires <= now;
            if std::mem::replace(&mut lease.has_ended, has_ended) != has_ended {
                changes.push(lease.change(*prefix));
            }
            now.saturating_sub(expires) < KEEP_ENDED
        });
    }
}

#[cfg(test)]
mod tests;
