//! Writes batches of encoded records to a file or standard output, in a separate thread. The log of `--hdr-log` has another
//! such thread.
//!
//! While packets of an interface are measured, nothing waits for these threads: if the reader is too slow, records are dropped
//! and counted. A capture waits.

mod batch;
mod error;
mod outage;
mod target;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use self::writer::{Message, Writer, WriterState};
pub(crate) use self::writer::{OnFailure, Role};
pub use self::{
    batch::{Batch, Framing},
    error::Error,
};
#[cfg(feature = "live")]
use crate::capabilities;

/// The length of the queue to the writer, batches.
const WAITING_BATCHES: usize = 256;

/// The size of the batches in the queue, bytes, beyond which it takes no more. A batch may be a whole interval: an empty queue
/// takes one of any size.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The interval of checking whether the queue has room again, or the writer is done.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The time that the last batches have to be written once pping stops.
const FLUSH_TIME: Duration = Duration::from_millis(500);

/// Writes a text to standard output, for commands that answer once. A reader that closes it is not an error.
///
/// # Errors
/// If writing fails.
pub(crate) fn print(text: &[u8]) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    match output.write_all(text).and_then(|()| output.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Write { target: "standard output".to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// A handle to reopen the output, as after a log rotation.
pub(crate) struct Reopen {
    sender: SyncSender<Message>,
    shared: Arc<WriterState>,
}

impl Reopen {
    /// Reopens the file once the writer is done with its current batch.
    pub(crate) fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::Relaxed);
        // A full queue wakes the writer anyway.
        self.sender.try_send(Message::Reopen).ok();
    }

    /// Opens this file, or standard output, in place of the present output.
    #[cfg_attr(
        not(feature = "live"),
        expect(dead_code, reason = "the output of a capture is never replaced")
    )]
    pub(crate) fn reopen_at(&self, path: Option<PathBuf>) {
        *self.shared.path.lock().unwrap_or_else(PoisonError::into_inner) = path;
        self.reopen();
    }
}

/// A thread that writes records to a file or standard output.
pub(crate) struct Output {
    role: Role,
    sender: SyncSender<Message>,
    finished: Receiver<()>,
    /// Records dropped because the queue was full.
    lines_refused: u64,
    shared: Arc<WriterState>,
    thread: JoinHandle<()>,
}

/// Resolves if writing ends early: to `None` if the reader closed its end.
pub(crate) type Ended = oneshot::Receiver<Option<Error>>;

impl Output {
    /// Opens the file, or standard output without one, and starts the thread.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::NoReader`] or [`Error::NotEmpty`] for the file, [`Error::Io`] for standard output or if the thread
    /// cannot be started.
    pub(crate) fn open(
        role: Role,
        path: Option<&Path>,
        framing: Framing,
        on_failure: OnFailure,
    ) -> Result<(Self, Ended), Error> {
        let writer = Writer::open(role, path, framing, on_failure)?;
        let (sender, receiver) = mpsc::sync_channel(WAITING_BATCHES);
        let (finish, finished) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let shared =
            Arc::new(WriterState { path: Mutex::new(path.map(Path::to_owned)), ..WriterState::default() });
        let of_writer = Arc::clone(&shared);
        let thread = thread::Builder::new().name(role.thread().into()).spawn(move || {
            // The thread needs capabilities only to reopen files.
            #[cfg(feature = "live")]
            if on_failure == OnFailure::Drop
                && let Err(error) = capabilities::restrict_to(&capabilities::FOR_FILES)
            {
                tracing::warn!(
                    "the thread of --{} could not drop the capabilities that it does not need: {error}",
                    role.option()
                );
            }
            if let Err(error) = writer.run(&receiver, &of_writer) {
                // The receiver may be gone.
                end.send(error).ok();
            }
            finish.send(()).ok();
        })?;
        Ok((Self { role, sender, finished, lines_refused: 0, shared, thread }, ended))
    }

    /// Queues records, or drops and counts them when the queue is full.
    pub(crate) fn write(&mut self, batch: Batch) {
        let lines = batch.records();
        if self.offer(batch).is_err() {
            self.lines_refused += lines;
        }
    }

    /// Queues records, waiting until the queue has room or `stop` is set.
    pub(crate) fn write_all(&mut self, mut batch: Batch, stop: &AtomicBool) {
        while let Err(rejected) = self.offer(batch) {
            if stop.load(Ordering::Relaxed) {
                self.lines_refused += rejected.records();
                return;
            }
            batch = rejected;
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Queues records, or returns them when the queue is full. Once the writer has ended, they are discarded.
    fn offer(&self, batch: Batch) -> Result<(), Batch> {
        let (lines, bytes) = (batch.records(), batch.len());
        if lines == 0 {
            return Ok(());
        }
        // A writer that has ended takes nothing out of the queue any more.
        if self.shared.waiting_bytes.load(Ordering::Relaxed) > MAX_WAITING_BYTES && !self.thread.is_finished()
        {
            return Err(batch);
        }
        // Counted first, since the writer subtracts them.
        self.shared.waiting.fetch_add(lines, Ordering::Relaxed);
        self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        match self.sender.try_send(Message::Batch(batch)) {
            Err(TrySendError::Full(Message::Batch(batch))) => {
                self.shared.waiting.fetch_sub(lines, Ordering::Relaxed);
                self.shared.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                Err(batch)
            }
            _ => Ok(()),
        }
    }

    /// A handle to reopen the output.
    pub(crate) fn reopener(&self) -> Reopen {
        Reopen { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }

    /// Records dropped because the queue was full: they came faster than they could be written.
    #[cfg(any(feature = "live", test))]
    pub(crate) fn lines_refused(&self) -> u64 {
        self.lines_refused
    }

    /// Records dropped for any reason.
    pub(crate) fn lines_lost(&self) -> u64 {
        self.lines_refused + self.shared.lost.load(Ordering::Relaxed)
    }

    /// Waits until all is written. Once `stop` is set, waits only as long as [`Output::finish`]. Returns the number of records
    /// lost in all.
    pub(crate) fn finish_all(self, stop: &AtomicBool) -> u64 {
        if self.end(|| stop.load(Ordering::Relaxed)).is_ok() {
            return self.lines_lost();
        }
        self.finish()
    }

    /// Waits up to half a second until all is written. Returns the number of records lost in all.
    pub(crate) fn finish(self) -> u64 {
        let deadline = Instant::now() + FLUSH_TIME;
        if self.end(|| Instant::now() >= deadline).is_ok() {
            return self.lines_lost();
        }
        match self.role {
            Role::Records => {
                tracing::warn!("the reader of the output has stopped reading; the last records are lost");
            }
            Role::Log => tracing::warn!("the file of --hdr-log does not answer; its last lines are lost"),
        }
        self.lines_lost() + self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Tells the writer to end as soon as the queue has room for that, and waits until it has ended or `is_over` returns true.
    fn end(&self, is_over: impl Fn() -> bool) -> Result<(), RecvTimeoutError> {
        let mut message = Some(Message::End);
        loop {
            message = match message.map(|message| self.sender.try_send(message)) {
                Some(Err(TrySendError::Full(message))) => Some(message),
                _ => None,
            };
            let ended = self.finished.recv_timeout(POLL_INTERVAL);
            if ended != Err(RecvTimeoutError::Timeout) || is_over() {
                return ended;
            }
        }
    }
}
