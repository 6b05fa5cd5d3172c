//! The thread that writes records.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::Receiver,
    },
    time::Instant,
};

use super::{
    batch::{Batch, Framing, Header},
    error::Error,
    outage::Outage,
    target::{Target, Torn},
};

/// A message to the writer.
pub(super) enum Message {
    /// Records to write.
    Batch(Batch),
    /// Wakes the writer, to reopen the file.
    Reopen,
    /// No more records will come.
    End,
}

/// The reaction to a file that cannot be written, for instance on a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// Drop and count records until it can be written again: packets of an interface do not wait.
    Drop,
    /// End the run: a capture can be read again.
    End,
}

/// The option that names the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `--write`, or standard output: a run ends when its reader closes it.
    Records,
    /// `--hdr-log`.
    Log,
}

impl Role {
    /// The name of the option.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Records => "write",
            Self::Log => "hdr-log",
        }
    }

    /// The name of the thread.
    pub(super) fn thread(self) -> &'static str {
        match self {
            Self::Records => "pping-output",
            Self::Log => "pping-hdr-log",
        }
    }
}

/// The state that the writer shares with [`super::Output`] and [`super::Reopen`].
#[derive(Default)]
pub(super) struct WriterState {
    /// Records in the queue, and those that the writer is writing.
    pub(super) waiting: AtomicU64,
    /// The size of the batches in the queue, bytes, without the batch that the writer is writing: while a large one is written,
    /// records can wait.
    pub(super) waiting_bytes: AtomicUsize,
    /// Records that the writer dropped.
    pub(super) lost: AtomicU64,
    /// Whether the file is to be reopened.
    pub(super) reopen: AtomicBool,
    /// The file; `None` is standard output.
    pub(super) path: Mutex<Option<PathBuf>>,
}

/// The reason why writing ended early: `None` if the reader closed its end.
type Result<T> = std::result::Result<T, Option<Error>>;

/// The state of the thread.
pub(super) struct Writer {
    role: Role,
    name: Name,
    target: Target,
    framing: Framing,
    on_failure: OnFailure,
    outage: Outage,
    /// Whether [`Framing::begin`] is in the file.
    has_begun: bool,
    /// The number of the newest header in the file.
    header: Option<u64>,
    /// Records in the file.
    records: u64,
    /// The size of the last record with its separator, bytes.
    last: usize,
}

impl Writer {
    pub(super) fn open(
        role: Role,
        path: Option<&Path>,
        framing: Framing,
        on_failure: OnFailure,
    ) -> std::result::Result<Self, Error> {
        let target = match path {
            Some(path) => Target::open(role.option(), path, framing)?,
            None => Target::standard_output().map_err(Error::from)?,
        };
        Ok(Self {
            role,
            name: Name(path.map(Path::to_owned)),
            target,
            framing,
            on_failure,
            outage: Outage::default(),
            has_begun: false,
            header: None,
            records: 0,
            last: 0,
        })
    }

    /// Writes batches until [`Message::End`].
    pub(super) fn run(mut self, messages: &Receiver<Message>, shared: &WriterState) -> Result<()> {
        self.begin()?;
        for message in messages {
            match message {
                Message::Batch(batch) => {
                    shared.waiting_bytes.fetch_sub(batch.len(), Ordering::Relaxed);
                    let lost = self.write(&batch)?;
                    shared.lost.fetch_add(lost, Ordering::Relaxed);
                    shared.waiting.fetch_sub(batch.records(), Ordering::Relaxed);
                }
                // Only wakes the thread.
                Message::Reopen => {}
                Message::End => break,
            }
            if shared.reopen.swap(false, Ordering::Relaxed) {
                self.reopen(shared)?;
            }
        }
        self.end(shared)
    }

    /// Writes [`Framing::begin`].
    fn begin(&mut self) -> Result<()> {
        let begin = self.framing.begin;
        match self.target.write(begin, [begin.len()].into_iter()) {
            Ok(()) => self.has_begun = true,
            Err(torn) => self.handle_failure(torn)?,
        }
        Ok(())
    }

    /// Writes a header.
    fn write_header(&mut self, header: &Header) -> Result<()> {
        let length = header.bytes.len();
        let Err(torn) = self.target.write(&header.bytes, [length].into_iter()) else {
            self.header = Some(header.number);
            return Ok(());
        };
        // A header that could not be truncated is completed before anything else is written.
        if torn.kept == length {
            self.header = Some(header.number);
        }
        self.handle_failure(torn)
    }

    /// Writes records. Returns how many were dropped.
    fn write(&mut self, batch: &Batch) -> Result<u64> {
        let now = Instant::now();
        if self.outage.may_write(now) && !self.has_begun {
            self.begin()?;
        }
        if let Some(header) = batch.header().filter(|header| self.header != Some(header.number))
            && self.outage.may_write(now)
            && self.has_begun
        {
            self.write_header(header)?;
        }
        if !self.outage.may_write(now) || !self.has_begun {
            self.outage.dropped(batch.records());
            return Ok(batch.records());
        }
        // Every record of a batch has a separator before it, but the first record of a file must not.
        let skipped = if self.records == 0 { self.framing.separator.len() } else { 0 };
        let ends = batch.ends().iter().map(|end| end - skipped);
        let (kept, torn) = match self.target.write(&batch.bytes()[skipped..], ends.clone()) {
            Ok(()) => (batch.len() - skipped, None),
            Err(torn) => (torn.kept, Some(torn)),
        };
        let mut records = 0;
        let mut before = 0;
        for end in ends.take_while(|&end| end <= kept) {
            self.last = end - before;
            (before, records) = (end, records + 1);
        }
        self.records += records;
        let dropped = batch.records() - records;
        match torn {
            None => self.outage.succeeded(now, &self.name),
            Some(torn) => {
                self.handle_failure(torn)?;
                self.outage.dropped(dropped);
            }
        }
        Ok(dropped)
    }

    /// Writes [`Framing::end`]. On a full disk, it replaces the last record. A record whose rest could not be written until now
    /// is lost.
    fn end(&mut self, shared: &WriterState) -> Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        let Err(torn) = self.write_end() else { return Ok(()) };
        // The rest that is still to be written could also be that of the begin or the end of the file.
        let is_record_torn = self.records > 0 && torn.kept == 0 && self.target.has_unfinished();
        self.handle_failure(torn)?;
        if is_record_torn {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        } else if self.framing.is_closed() && self.last > 0 && self.target.truncate(self.last).is_ok() {
            self.records -= 1;
            shared.lost.fetch_add(1, Ordering::Relaxed);
            if let Err(torn) = self.write_end() {
                self.handle_failure(torn)?;
            }
        }
        Ok(())
    }

    fn write_end(&mut self) -> std::result::Result<(), Torn> {
        let end = if self.records == 0 { self.framing.end_of_none } else { self.framing.end };
        self.target.write(end, [end.len()].into_iter())
    }

    /// Ends the open file, and opens the one that has its path now. If that fails, writing goes on in the open file.
    fn reopen(&mut self, shared: &WriterState) -> Result<()> {
        let path = shared.path.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let opened = match &path {
            Some(path) => Target::open(self.role.option(), path, self.framing),
            None if self.name.0.is_none() => return Ok(()),
            None => Target::standard_output().map_err(Error::Io),
        };
        let target = match opened {
            Ok(target) => target,
            Err(error) => {
                tracing::warn!("{error}; still writing to the file that was open");
                return Ok(());
            }
        };
        self.end(shared)?;
        (self.target, self.name) = (target, Name(path));
        self.outage.retry(Instant::now());
        (self.has_begun, self.header, self.records, self.last) = (false, None, 0, 0);
        self.begin()
    }

    /// Starts or continues an outage if packets do not wait, else ends the run.
    fn handle_failure(&mut self, torn: Torn) -> Result<()> {
        let is_file = self.name.0.is_some() || self.target.is_regular();
        if torn.error.kind() == io::ErrorKind::BrokenPipe && self.role == Role::Records {
            return Err(None);
        }
        if self.on_failure == OnFailure::Drop && is_file {
            self.outage.failed(Instant::now(), &self.name, &torn.error);
            return Ok(());
        }
        Err(Some(Error::Write { target: self.name.to_string(), source: torn.error }))
    }
}

/// The path of the output; `None` is standard output.
struct Name(Option<PathBuf>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(f),
            None => f.write_str("standard output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reopening_loses_an_incomplete_record() {
        let directory = tempfile::tempdir().unwrap();
        let shared =
            WriterState { path: Mutex::new(Some(directory.path().join("next"))), ..WriterState::default() };
        let full = Some(Path::new("/dev/full"));
        let mut writer = Writer::open(Role::Records, full, Framing::LINES, OnFailure::Drop).unwrap();
        // Two records, but only six bytes: a device cannot be truncated, so the second record counts as kept.
        assert_eq!(writer.target.repair(b"one\ntwo\n", [4, 8].into_iter(), 6), 8);
        (writer.has_begun, writer.records, writer.last) = (true, 2, 4);
        writer.reopen(&shared).unwrap();
        assert_eq!(shared.lost.load(Ordering::Relaxed), 1);
        // The new file lacks nothing.
        writer.end(&shared).unwrap();
        assert_eq!(shared.lost.load(Ordering::Relaxed), 1);
    }
}
