//! Writing records without ever waiting for whoever reads them.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use crate::Error;

/// Batches of lines that may wait for the writer. Beyond that they are dropped and counted: a slow reader
/// stops neither the kernel side nor the metrics.
const WAITING_BATCHES: usize = 256;

/// How long the last batches may take to be written once pping stops.
const FLUSH_TIME: Duration = Duration::from_millis(500);

enum Message {
    Batch(Batch),
    Reopen,
}

/// Whole lines, and how many.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) octets: Vec<u8>,
    pub(crate) lines: u64,
}

/// A thread that writes lines to a file or to standard output.
pub(crate) struct Output {
    sender: SyncSender<Message>,
    finished: Receiver<()>,
    lines_lost: u64,
    /// Lines that were handed over and are not written yet.
    lines_waiting: Arc<AtomicU64>,
}

/// How writing ended before its time: `None` when the reader closed its end.
pub(crate) type Ended = oneshot::Receiver<Option<Error>>;

impl Output {
    /// Opens the file, or standard output where there is none, and starts the thread.
    ///
    /// # Errors
    /// [`Error::OpenOutput`] when the file cannot be opened.
    pub(crate) fn open(path: Option<&Path>) -> Result<(Self, Ended), Error> {
        let writer = Writer::open(path)?;
        let (sender, receiver) = mpsc::sync_channel(WAITING_BATCHES);
        let (finish, finished) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let lines_waiting = Arc::new(AtomicU64::new(0));
        let waiting = Arc::clone(&lines_waiting);
        thread::Builder::new().name("pping-output".into()).spawn(move || {
            if let Err(error) = writer.run(&receiver, &waiting) {
                // Nobody may be waiting any more, which is fine.
                end.send(error).ok();
            }
            finish.send(()).ok();
        })?;
        Ok((Self { sender, finished, lines_lost: 0, lines_waiting }, ended))
    }

    /// Hands over lines.
    pub(crate) fn write(&mut self, batch: Batch) {
        let lines = batch.lines;
        // Before the writer can take them off again.
        self.lines_waiting.fetch_add(lines, Ordering::Relaxed);
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Message::Batch(batch)) {
            self.lines_waiting.fetch_sub(lines, Ordering::Relaxed);
            self.lines_lost += lines;
        }
    }

    /// Has the file opened again, after the lines handed over so far.
    pub(crate) fn reopen(&self) {
        // When the queue is full the next SIGHUP may have more luck; log rotation sends one a day.
        if self.sender.try_send(Message::Reopen).is_err() {
            tracing::warn!("the output is too far behind to be opened again now");
        }
    }

    /// Lines that were dropped since the writer was behind.
    pub(crate) fn lines_lost(&self) -> u64 {
        self.lines_lost
    }

    /// Waits until all has been written, but not for long. Returns how many lines were lost in all.
    pub(crate) fn finish(self) -> u64 {
        drop(self.sender);
        if self.finished.recv_timeout(FLUSH_TIME).is_ok() {
            return self.lines_lost;
        }
        tracing::warn!("the reader of the output is stuck; its last lines are lost");
        self.lines_lost + self.lines_waiting.load(Ordering::Relaxed)
    }
}

/// What runs in the thread.
struct Writer {
    path: Option<PathBuf>,
    target: Box<dyn Write + Send>,
}

impl Writer {
    fn open(path: Option<&Path>) -> Result<Self, Error> {
        let target: Box<dyn Write + Send> = match path {
            Some(path) => Box::new(open(path)?),
            None => Box::new(io::stdout()),
        };
        Ok(Self { path: path.map(Path::to_owned), target })
    }

    fn run(mut self, messages: &Receiver<Message>, waiting: &AtomicU64) -> Result<(), Option<Error>> {
        for message in messages {
            match message {
                Message::Batch(Batch { octets, lines }) => {
                    self.target.write_all(&octets).and_then(|()| self.target.flush()).map_err(|source| {
                        let target = self
                            .path
                            .as_ref()
                            .map_or("standard output".into(), |it| it.display().to_string());
                        (source.kind() != io::ErrorKind::BrokenPipe)
                            .then_some(Error::Output { target, source })
                    })?;
                    waiting.fetch_sub(lines, Ordering::Relaxed);
                }
                Message::Reopen => {
                    if let Some(path) = &self.path {
                        self.target = Box::new(open(path).map_err(Some)?);
                    }
                }
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| Error::OpenOutput { path: path.to_owned(), source })
}
