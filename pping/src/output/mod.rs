//! Writing records, without ever waiting for whoever reads them where packets do not wait either.

mod target;
#[cfg(test)]
mod tests;
mod trouble;
mod writer;

use std::{
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use self::writer::Writer;
pub(crate) use self::{target::Target, trouble::Trouble};
use crate::{
    Error,
    records::Record,
    records::format::{Framing, Sink},
};

/// Batches of records that may wait for the writer. Of packets that do not wait, those beyond are dropped and counted: a
/// slow reader stops neither the kernel side nor the metrics.
const WAITING_BATCHES: usize = 256;

/// How often to look whether the writer has room again, or is done.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How long the last batches may take to be written once pping stops.
const FLUSH_TIME: Duration = Duration::from_millis(500);

enum Message {
    Batch(Batch),
    Reopen,
    End,
}

/// What a file means that cannot be written to, for instance on a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// Records are dropped, and counted, until it can be written to again: packets do not wait for that.
    Drop,
    /// The run ends: it can be made again.
    End,
}

/// Whole records, each with what separates it from the one before.
#[derive(Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
}

/// What the writer and those who hand over records both count.
#[derive(Default)]
struct Counts {
    /// Lines that were handed over and are not written yet.
    waiting: AtomicU64,
    /// Lines that the writer had to drop.
    lost: AtomicU64,
    /// Whether the file is to be opened again.
    reopen: AtomicBool,
    /// Which file that is; standard output if there is none.
    path: Mutex<Option<PathBuf>>,
}

impl Batch {
    /// Adds a record, if the format has a place for it.
    pub fn push(&mut self, sink: &mut dyn Sink, record: &Record) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(sink.framing().separator);
        let start = self.bytes.len();
        sink.write(record, &mut self.bytes);
        if self.bytes.len() == start {
            self.bytes.truncate(before);
        } else {
            self.ends.push(self.bytes.len());
        }
    }

    /// The records as they are written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn lines(&self) -> u64 {
        self.ends.len() as u64
    }

    /// How long it is, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What it holds, which it no longer does.
    pub(crate) fn take(&mut self) -> Self {
        mem::take(self)
    }
}

/// Has the output opened again, from wherever.
pub(crate) struct Reopen {
    sender: SyncSender<Message>,
    counts: Arc<Counts>,
}

impl Reopen {
    /// Has the file opened again, as soon as the writer is done with what it is writing.
    pub(crate) fn reopen(&self) {
        self.send();
    }

    /// Has this file, or standard output, opened in its place.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "a capture has no other output half way"))]
    pub(crate) fn reopen_at(&self, path: Option<PathBuf>) {
        *self.counts.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
        self.send();
    }

    fn send(&self) {
        self.counts.reopen.store(true, Ordering::Relaxed);
        // Should the queue be full, there is no need to wake the writer.
        self.sender.try_send(Message::Reopen).ok();
    }
}

/// A thread that writes records to a file or to standard output.
pub(crate) struct Output {
    sender: SyncSender<Message>,
    finished: Receiver<()>,
    /// Lines that were dropped since the writer was behind.
    lines_refused: u64,
    counts: Arc<Counts>,
}

/// How writing ended before its time: `None` when the reader closed its end.
pub(crate) type Ended = oneshot::Receiver<Option<Error>>;

impl Output {
    /// Opens the file, or standard output where there is none, and starts the thread.
    ///
    /// # Errors
    /// [`Error::OpenOutput`] when the file cannot be opened.
    pub(crate) fn open(
        path: Option<&Path>,
        framing: Framing,
        on_failure: OnFailure,
    ) -> Result<(Self, Ended), Error> {
        let writer = Writer::open(path, framing, on_failure)?;
        let (sender, receiver) = mpsc::sync_channel(WAITING_BATCHES);
        let (finish, finished) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let counts = Arc::new(Counts { path: Mutex::new(path.map(Path::to_owned)), ..Counts::default() });
        let shared = Arc::clone(&counts);
        thread::Builder::new().name("pping-output".into()).spawn(move || {
            // It opens files again, and has nothing to do with the kernel.
            #[cfg(feature = "live")]
            if on_failure == OnFailure::Drop
                && let Err(error) = crate::kernel::capabilities::keep(&crate::kernel::capabilities::FOR_FILES)
            {
                tracing::warn!("the output keeps capabilities that it does not need: {error}");
            }
            if let Err(error) = writer.run(&receiver, &shared) {
                // Nobody may be waiting any more, which is fine.
                end.send(error).ok();
            }
            finish.send(()).ok();
        })?;
        Ok((Self { sender, finished, lines_refused: 0, counts }, ended))
    }

    /// Hands over records, or drops them when the writer is behind.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "the packets of a capture wait"))]
    pub(crate) fn write(&mut self, batch: Batch) {
        let lines = batch.lines();
        if self.offer(batch).is_err() {
            self.lines_refused += lines;
        }
    }

    /// Hands over records, and waits until the writer has room for them or `stop` is set.
    pub(crate) fn write_all(&mut self, mut batch: Batch, stop: &AtomicBool) {
        while let Err(rejected) = self.offer(batch) {
            if stop.load(Ordering::Relaxed) {
                self.lines_refused += rejected.lines();
                return;
            }
            batch = rejected;
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Hands over records, or returns them when the writer is behind. When it has ended, they are of no interest to
    /// anybody.
    fn offer(&self, batch: Batch) -> Result<(), Batch> {
        let lines = batch.lines();
        if lines == 0 {
            return Ok(());
        }
        // Before the writer can take them off again.
        self.counts.waiting.fetch_add(lines, Ordering::Relaxed);
        match self.sender.try_send(Message::Batch(batch)) {
            Err(TrySendError::Full(Message::Batch(batch))) => {
                self.counts.waiting.fetch_sub(lines, Ordering::Relaxed);
                Err(batch)
            }
            _ => Ok(()),
        }
    }

    /// What has the output opened again.
    pub(crate) fn reopener(&self) -> Reopen {
        Reopen { sender: self.sender.clone(), counts: Arc::clone(&self.counts) }
    }

    /// Lines that were dropped since the writer was behind, which a slower pace would help.
    #[cfg(any(feature = "live", test))]
    pub(crate) fn lines_refused(&self) -> u64 {
        self.lines_refused
    }

    /// Lines that were dropped, for whatever reason.
    pub(crate) fn lines_lost(&self) -> u64 {
        self.lines_refused + self.counts.lost.load(Ordering::Relaxed)
    }

    /// Waits until all has been written, or `stop` is set; then no longer than [`Output::finish`].
    pub(crate) fn finish_all(self, stop: &AtomicBool) -> u64 {
        let mut message = Some(Message::End);
        while !stop.load(Ordering::Relaxed) {
            message = match message.map(|message| self.sender.try_send(message)) {
                Some(Err(TrySendError::Full(message))) => Some(message),
                _ => None,
            };
            if self.finished.recv_timeout(LOOK_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return self.lines_lost();
            }
        }
        self.finish()
    }

    /// Waits until all has been written, but not for long. Returns how many lines were lost in all.
    pub(crate) fn finish(self) -> u64 {
        // Should there be no room for this, the reader is stuck anyway.
        self.sender.try_send(Message::End).ok();
        if self.finished.recv_timeout(FLUSH_TIME).is_ok() {
            return self.lines_lost();
        }
        tracing::warn!("the reader of the output is stuck; its last lines are lost");
        self.lines_lost() + self.counts.waiting.load(Ordering::Relaxed)
    }
}
