//! The thread that writes.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{PoisonError, atomic::Ordering, mpsc::Receiver},
    time::Instant,
};

use super::{
    Batch, Counts, Message, OnFailure,
    target::{Target, Torn},
    trouble::Trouble,
};
use crate::{Error, records::format::Framing};

/// How a run ends when writing does: `None` when the reader has closed its end.
type Result<T> = std::result::Result<T, Option<Error>>;

/// What runs in the thread.
pub(super) struct Writer {
    name: Name,
    target: Target,
    framing: Framing,
    on_failure: OnFailure,
    trouble: Trouble,
    /// Whether what comes before the first record is in the file.
    has_begun: bool,
    /// Records in the file.
    records: u64,
    /// Bytes of the last of them, with what separates it from the one before.
    last: usize,
}

impl Writer {
    pub(super) fn open(
        path: Option<&Path>,
        framing: Framing,
        on_failure: OnFailure,
    ) -> std::result::Result<Self, Error> {
        let target = match path {
            Some(path) => Target::open(path, framing)?,
            None => Target::standard_output()?,
        };
        let (name, trouble) = (Name(path.map(Path::to_owned)), Trouble::default());
        Ok(Self { name, target, framing, on_failure, trouble, has_begun: false, records: 0, last: 0 })
    }

    /// Writes what comes, until it is told to end.
    pub(super) fn run(mut self, messages: &Receiver<Message>, counts: &Counts) -> Result<()> {
        self.begin()?;
        for message in messages {
            match message {
                Message::Batch(batch) => {
                    let lost = self.write(&batch)?;
                    counts.lost.fetch_add(lost, Ordering::Relaxed);
                    counts.waiting.fetch_sub(batch.lines(), Ordering::Relaxed);
                }
                // Asked for below.
                Message::Reopen => {}
                Message::End => break,
            }
            if counts.reopen.swap(false, Ordering::Relaxed) {
                self.reopen(counts)?;
            }
        }
        self.end(counts)
    }

    /// Writes what comes before the first record.
    fn begin(&mut self) -> Result<()> {
        let begin = self.framing.begin;
        match self.target.write(begin, [begin.len()].into_iter()) {
            Ok(()) => self.has_begun = true,
            Err(torn) => self.endure(torn)?,
        }
        Ok(())
    }

    /// Writes records, and returns how many of them were dropped.
    fn write(&mut self, batch: &Batch) -> Result<u64> {
        let now = Instant::now();
        if self.trouble.lets_try(now) && !self.has_begun {
            self.begin()?;
        }
        if !self.trouble.lets_try(now) || !self.has_begun {
            self.trouble.dropped(batch.lines());
            return Ok(batch.lines());
        }
        // The separator in front of the first record of all.
        let skipped = if self.records == 0 { self.framing.separator.len() } else { 0 };
        let ends = batch.ends.iter().map(|end| end - skipped);
        let (kept, torn) = match self.target.write(&batch.bytes[skipped..], ends.clone()) {
            Ok(()) => (batch.bytes.len() - skipped, None),
            Err(torn) => (torn.kept, Some(torn)),
        };
        let mut records = 0;
        let mut before = 0;
        for end in ends.take_while(|&end| end <= kept) {
            self.last = end - before;
            (before, records) = (end, records + 1);
        }
        self.records += records;
        let dropped = batch.lines() - records;
        match torn {
            None => self.trouble.succeeded(now, &self.name),
            Some(torn) => {
                self.endure(torn)?;
                self.trouble.dropped(dropped);
            }
        }
        Ok(dropped)
    }

    /// Writes what comes after the last record. On a full disk, that takes the place of the last record.
    fn end(&mut self, counts: &Counts) -> Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        let Err(torn) = self.write_end() else { return Ok(()) };
        self.endure(torn)?;
        if self.framing.is_closed() && self.last > 0 && self.target.take_back(self.last).is_ok() {
            self.records -= 1;
            counts.lost.fetch_add(1, Ordering::Relaxed);
            if let Err(torn) = self.write_end() {
                self.endure(torn)?;
            }
        }
        Ok(())
    }

    fn write_end(&mut self) -> std::result::Result<(), Torn> {
        let end = if self.records == 0 { self.framing.end_of_none } else { self.framing.end };
        self.target.write(end, [end.len()].into_iter())
    }

    /// Ends this file and goes on in the one that has its name now, or in this one if there is no such file to be had.
    fn reopen(&mut self, counts: &Counts) -> Result<()> {
        let path = counts.path.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let opened = match &path {
            Some(path) => Target::open(path, self.framing),
            None if self.name.0.is_none() => return Ok(()),
            None => Target::standard_output().map_err(Error::from),
        };
        let target = match opened {
            Ok(target) => target,
            Err(error) => {
                tracing::warn!("{error}; still writing to the file that was open");
                return Ok(());
            }
        };
        self.end(counts)?;
        (self.target, self.name) = (target, Name(path));
        self.trouble.retry(Instant::now());
        (self.has_begun, self.records, self.last) = (false, 0, 0);
        self.begin()
    }

    /// Waits for better times, if this is a file of packets that do not wait.
    fn endure(&mut self, torn: Torn) -> Result<()> {
        let is_file = self.name.0.is_some() || self.target.is_regular();
        if torn.error.kind() == io::ErrorKind::BrokenPipe {
            return Err(None);
        }
        if self.on_failure == OnFailure::Drop && is_file {
            self.trouble.failed(Instant::now(), &self.name, &torn.error);
            return Ok(());
        }
        Err(Some(Error::Output { target: self.name.to_string(), source: torn.error }))
    }
}

/// What records are written to.
struct Name(Option<PathBuf>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(f),
            None => f.write_str("standard output"),
        }
    }
}
