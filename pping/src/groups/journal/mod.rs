//! The file that keeps what came by the socket across restarts.
//!
//! Its first line says what it is. Every other line is a number and a request of [`super::protocol`] that was carried out, so a
//! change is appended, and reading the file repeats the changes. The numbers count from 1, which shows if a line is missing. A
//! thread writes it, because a disk may take long. What was written survives a kill of pping at once, and a loss of power after a
//! second. A file of many outdated changes is written again beside the old one, and takes its place.

mod beside;
mod numbered;
mod read;
#[cfg(test)]
mod tests;
mod thread;

use std::{
    fs::File,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use self::thread::{JournalFile, Task};
pub use self::{
    beside::{Locked, lock, put_aside},
    read::{Damage, read},
};
use super::{labels::Labels, overlay::Overlay};

/// The time between two attempts to write the file again after an error.
const RETRY: Duration = Duration::from_secs(10);

/// How many pieces may wait for the disk. Beyond that the file is written again later.
const MAX_WAITING: usize = 4096;

/// A file that is being kept.
pub struct Journal {
    tasks: Option<SyncSender<Task>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the file lacks something, so that it has to be written again.
    is_behind: Arc<AtomicBool>,
    /// When that was begun last.
    rewritten: Instant,
    /// The lines that were appended since.
    appended: usize,
    /// Keeps the file from others, until everything is written.
    _lock: Option<File>,
}

impl Journal {
    /// Starts the thread, which writes the file again first.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(path: PathBuf, lock: Option<File>, overlay: &Overlay, labels: &Labels) -> io::Result<Self> {
        let (tasks, inbox) = sync_channel(MAX_WAITING);
        let is_behind = Arc::new(AtomicBool::new(false));
        let thread = JournalFile::new(path, Arc::clone(&is_behind)).start(inbox)?;
        let mut journal = Self {
            tasks: Some(tasks),
            thread: Some(thread),
            is_behind,
            rewritten: Instant::now(),
            appended: 0,
            _lock: lock,
        };
        journal.rewrite(overlay, labels);
        Ok(journal)
    }

    /// Appends requests that were carried out. Never waits.
    pub fn append(&mut self, requests: Vec<u8>, count: usize) {
        self.appended += count;
        self.send(Task::Append(requests));
    }

    /// Writes the file again if it has many outdated changes, or lacks some.
    pub fn tidy(&mut self, overlay: &Overlay, labels: &Labels) {
        let is_long = self.appended > 10_000 + 2 * overlay.len();
        let is_behind = self.is_behind.load(Ordering::Relaxed) && self.rewritten.elapsed() >= RETRY;
        if is_long || is_behind {
            self.rewrite(overlay, labels);
        }
    }

    fn rewrite(&mut self, overlay: &Overlay, labels: &Labels) {
        (self.rewritten, self.appended) = (Instant::now(), 0);
        self.is_behind.store(false, Ordering::Relaxed);
        self.send(Task::Rewrite(Box::new((overlay.clone(), labels.clone()))));
    }

    fn send(&self, task: Task) {
        if self.tasks.as_ref().is_none_or(|tasks| tasks.try_send(task).is_err()) {
            self.is_behind.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Journal {
    /// Waits until everything is on the disk.
    fn drop(&mut self) {
        self.tasks.take();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
