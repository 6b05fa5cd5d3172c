//! Writing records, without ever waiting for whoever reads them where packets do not wait either.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{
    Error,
    record::Record,
    sinks::{Framing, Sink},
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

/// Whole records with what separates them, and how many.
#[derive(Default)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    lines: u64,
}

impl Batch {
    /// Adds a record, if the format has a place for it.
    pub(crate) fn push(&mut self, sink: &mut dyn Sink, record: &Record) {
        let before = self.octets.len();
        if self.lines > 0 {
            self.octets.extend_from_slice(sink.framing().separator);
        }
        let start = self.octets.len();
        sink.write(record, &mut self.octets);
        if self.octets.len() == start {
            self.octets.truncate(before);
        } else {
            self.lines += 1;
        }
    }

    /// How long it is, in octets.
    pub(crate) fn len(&self) -> usize {
        self.octets.len()
    }

    /// What it holds, which it no longer does.
    pub(crate) fn take(&mut self) -> Self {
        mem::take(self)
    }
}

/// Has the output opened again, from wherever.
pub(crate) struct Reopen(SyncSender<Message>);

impl Reopen {
    /// Has the file opened again, after the records handed over so far.
    pub(crate) fn reopen(&self) {
        // When the queue is full the next SIGHUP may have more luck; log rotation sends one a day.
        if self.0.try_send(Message::Reopen).is_err() {
            tracing::warn!("the output is too far behind to be opened again now");
        }
    }
}

/// A thread that writes records to a file or to standard output.
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
    pub(crate) fn open(path: Option<&Path>, framing: Framing) -> Result<(Self, Ended), Error> {
        let writer = Writer::open(path, framing)?;
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

    /// Hands over records, or drops them when the writer is behind.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "the packets of a capture wait"))]
    pub(crate) fn write(&mut self, batch: Batch) {
        let lines = batch.lines;
        if self.offer(batch).is_err() {
            self.lines_lost += lines;
        }
    }

    /// Hands over records, and waits until the writer has room for them or `stop` is set.
    pub(crate) fn write_all(&mut self, mut batch: Batch, stop: &AtomicBool) {
        while let Err(rejected) = self.offer(batch) {
            if stop.load(Ordering::Relaxed) {
                self.lines_lost += rejected.lines;
                return;
            }
            batch = rejected;
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Hands over records, or returns them when the writer is behind. When it has ended, they are of no interest to
    /// anybody.
    fn offer(&self, batch: Batch) -> Result<(), Batch> {
        let lines = batch.lines;
        if lines == 0 {
            return Ok(());
        }
        // Before the writer can take them off again.
        self.lines_waiting.fetch_add(lines, Ordering::Relaxed);
        match self.sender.try_send(Message::Batch(batch)) {
            Err(TrySendError::Full(Message::Batch(batch))) => {
                self.lines_waiting.fetch_sub(lines, Ordering::Relaxed);
                Err(batch)
            }
            _ => Ok(()),
        }
    }

    /// What has the output opened again.
    pub(crate) fn reopener(&self) -> Reopen {
        Reopen(self.sender.clone())
    }

    /// Lines that were dropped since the writer was behind.
    #[cfg_attr(not(feature = "live"), expect(dead_code, reason = "the packets of a capture wait"))]
    pub(crate) fn lines_lost(&self) -> u64 {
        self.lines_lost
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
                return self.lines_lost;
            }
        }
        self.finish()
    }

    /// Waits until all has been written, but not for long. Returns how many lines were lost in all.
    pub(crate) fn finish(self) -> u64 {
        // Should there be no room for this, the reader is stuck anyway.
        self.sender.try_send(Message::End).ok();
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
    framing: Framing,
    /// Whether the file has no record yet.
    is_first: bool,
}

impl Writer {
    fn open(path: Option<&Path>, framing: Framing) -> Result<Self, Error> {
        let target: Box<dyn Write + Send> = match path {
            Some(path) => Box::new(open(path, framing)?),
            None => Box::new(io::stdout()),
        };
        Ok(Self { path: path.map(Path::to_owned), target, framing, is_first: true })
    }

    fn run(mut self, messages: &Receiver<Message>, waiting: &AtomicU64) -> Result<(), Option<Error>> {
        self.begin()?;
        for message in messages {
            match message {
                Message::Batch(batch) => {
                    self.write(&batch)?;
                    waiting.fetch_sub(batch.lines, Ordering::Relaxed);
                }
                Message::Reopen => self.reopen()?,
                Message::End => break,
            }
        }
        self.end()
    }

    fn begin(&mut self) -> Result<(), Option<Error>> {
        self.is_first = true;
        let written = self.target.write_all(self.framing.begin).and_then(|()| self.target.flush());
        written.map_err(|source| self.failed(source))
    }

    fn write(&mut self, batch: &Batch) -> Result<(), Option<Error>> {
        let separator = if self.is_first { b"" } else { self.framing.separator };
        self.is_first = false;
        let written = self
            .target
            .write_all(separator)
            .and_then(|()| self.target.write_all(&batch.octets))
            .and_then(|()| self.target.flush());
        written.map_err(|source| self.failed(source))
    }

    fn end(&mut self) -> Result<(), Option<Error>> {
        let end = if self.is_first { self.framing.end_of_none } else { self.framing.end };
        let written = self.target.write_all(end).and_then(|()| self.target.flush());
        written.map_err(|source| self.failed(source))
    }

    fn reopen(&mut self) -> Result<(), Option<Error>> {
        let Some(path) = &self.path else { return Ok(()) };
        let target = match open(path, self.framing) {
            Ok(target) => target,
            Err(error @ Error::NotEmpty { .. }) => {
                tracing::warn!("{error}; still writing to the file that was open");
                return Ok(());
            }
            Err(error) => return Err(Some(error)),
        };
        self.end()?;
        self.target = Box::new(target);
        self.begin()
    }

    /// What to end with: nothing to say when the reader has closed its end.
    fn failed(&self, source: io::Error) -> Option<Error> {
        let target = self.path.as_ref().map_or("standard output".into(), |it| it.display().to_string());
        (source.kind() != io::ErrorKind::BrokenPipe).then_some(Error::Output { target, source })
    }
}

fn open(path: &Path, framing: Framing) -> Result<File, Error> {
    let refused = |source| Error::OpenOutput { path: path.to_owned(), source };
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(refused)?;
    if framing.is_closed() && file.metadata().map_err(refused)?.len() > 0 {
        return Err(Error::NotEmpty { path: path.to_owned() });
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        cli::Format,
        record::{FlowRecord, Tuple},
        sinks,
    };

    fn record() -> Record {
        Record::Flow(FlowRecord {
            timestamp: 1,
            tuple: Tuple {
                src_ip: "192.0.2.1".parse().unwrap(),
                src_port: 1,
                dest_ip: "192.0.2.2".parse().unwrap(),
                dest_port: 2,
                protocol: "TCP",
            },
            flow_event: "opening",
            reason: "SYN",
            triggered_by: "dest",
            interface: None,
        })
    }

    fn elements(path: &Path) -> usize {
        let text = std::fs::read_to_string(path).unwrap();
        let array: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        array.len()
    }

    #[test]
    fn an_array_is_whole_whatever_was_dropped_and_wherever_a_file_ends() {
        let directory = tempfile::tempdir().unwrap();
        let (current, rotated) = (directory.path().join("now"), directory.path().join("then"));
        let mut sink = sinks::sink(Format::Json);
        let mut batch = |records| {
            let mut batch = Batch::default();
            (0..records).for_each(|_| batch.push(sink.as_mut(), &record()));
            batch
        };
        let framing = sinks::sink(Format::Json).framing();
        let (mut output, _ended) = Output::open(Some(&current), framing).unwrap();
        let stop = AtomicBool::new(false);
        // The first of all is dropped, as it would be when the writer is behind.
        drop(batch(2));
        output.write_all(batch(1), &stop);
        drop(batch(1));
        output.write_all(batch(3), &stop);
        while output.lines_waiting.load(Ordering::Relaxed) > 0 {
            thread::sleep(LOOK_INTERVAL);
        }
        std::fs::rename(&current, &rotated).unwrap();
        output.reopener().reopen();
        output.write_all(batch(0), &stop);
        assert_eq!(output.finish_all(&stop), 0);
        assert_eq!((elements(&rotated), elements(&current)), (4, 0));
    }
}
