//! The thread that writes the file.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    super::{labels::Labels, overlay::Overlay},
    beside::beside,
    numbered::{Numbered, open_whole},
};
use crate::capabilities;

/// The time after which what was written is on the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The interval at which a file that is being synced is looked at.
const WHILE_SYNCING: Duration = Duration::from_millis(5);

/// What the thread has to do.
pub(super) enum Task {
    /// Append these lines.
    Append(Vec<u8>),
    /// Write the file again.
    Rewrite(Box<(Overlay, Labels)>),
}

/// The file, in the thread that writes it.
pub(super) struct JournalFile {
    path: PathBuf,
    file: Option<Numbered>,
    /// Whether the log says so already.
    is_failing: bool,
    is_behind: Arc<AtomicBool>,
}

impl JournalFile {
    pub(super) fn new(path: PathBuf, is_behind: Arc<AtomicBool>) -> Self {
        Self { path, file: None, is_failing: false, is_behind }
    }

    /// Starts the thread.
    pub(super) fn start(self, tasks: Receiver<Task>) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("pping-groups-wr".into()).spawn(move || self.run(&tasks))
    }

    fn run(mut self, tasks: &Receiver<Task>) {
        if let Err(error) = capabilities::drop_all() {
            tracing::warn!("--groups-state: cannot give up capabilities: {error}");
        }
        let mut unsynced: Option<Instant> = None;
        loop {
            let left = unsynced.map(|since| SYNC_INTERVAL.saturating_sub(since.elapsed()));
            let task = match left {
                None => tasks.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(left) => tasks.recv_timeout(left),
            };
            let is_over = matches!(task, Err(RecvTimeoutError::Disconnected));
            let done = match task {
                Ok(task) => {
                    unsynced.get_or_insert_with(Instant::now);
                    self.perform(task, tasks)
                }
                Err(_) => Ok(()),
            };
            let is_due = unsynced.is_some_and(|since| is_over || since.elapsed() >= SYNC_INTERVAL);
            let synced = if is_due {
                unsynced = None;
                self.file.as_ref().map_or(Ok(()), |file| file.file.sync_data())
            } else {
                Ok(())
            };
            self.say(done.and(synced));
            if is_over {
                return;
            }
        }
    }

    fn perform(&mut self, task: Task, tasks: &Receiver<Task>) -> io::Result<()> {
        match task {
            // Without a file everything waits until it is written again.
            Task::Append(lines) => self.file.as_mut().map_or(Ok(()), |file| file.append(&lines)),
            Task::Rewrite(content) => {
                self.rewrite(&content, tasks)?;
                if self.is_failing {
                    tracing::info!("--groups-state {}: it is written again", self.path.display());
                    self.is_failing = false;
                }
                Ok(())
            }
        }
    }

    /// Writes the file beside the present one, and then puts it in its place. What comes meanwhile is appended to both, so a kill at
    /// any moment loses none of it.
    pub(super) fn rewrite(
        &mut self,
        (overlay, labels): &(Overlay, Labels),
        tasks: &Receiver<Task>,
    ) -> io::Result<()> {
        let present = self.file.take().or_else(|| open_whole(&self.path));
        let mut meanwhile = Meanwhile { tasks, present, lines: Vec::new(), is_asked_again: false };
        let new = beside(&self.path, ".new");
        let mut file = Numbered::create(&new)?;
        overlay.write(labels, |lines| {
            file.append(lines)?;
            meanwhile.take_all()
        })?;
        meanwhile.take_until_synced(&file.file)?;
        file.append(&meanwhile.lines)?;
        fs::rename(&new, &self.path)?;
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        self.file = Some(file);
        if meanwhile.is_asked_again {
            self.is_behind.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Logs an error once.
    fn say(&mut self, done: io::Result<()>) {
        let Err(error) = done else { return };
        // A line may be there in part, so nothing can be appended.
        self.file = None;
        self.is_behind.store(true, Ordering::Relaxed);
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::error!(
                "--groups-state {}: {error}; what comes by --groups-socket is not kept until this is repaired",
                self.path.display()
            );
        }
    }
}

/// What comes while a file is written again.
struct Meanwhile<'a> {
    tasks: &'a Receiver<Task>,
    /// The file that is still in its place, if there is one that is whole.
    present: Option<Numbered>,
    /// The lines that came, which the new file lacks.
    lines: Vec<u8>,
    /// Whether the file is to be written once more.
    is_asked_again: bool,
}

impl Meanwhile<'_> {
    fn take_all(&mut self) -> io::Result<()> {
        while let Ok(task) = self.tasks.try_recv() {
            self.take(task)?;
        }
        Ok(())
    }

    fn take(&mut self, task: Task) -> io::Result<()> {
        match task {
            Task::Append(lines) => {
                if let Some(present) = &mut self.present {
                    present.append(&lines)?;
                }
                self.lines.extend(lines);
            }
            Task::Rewrite(_) => self.is_asked_again = true,
        }
        Ok(())
    }

    /// Takes what comes until a file is on the disk, which may take seconds.
    fn take_until_synced(&mut self, file: &File) -> io::Result<()> {
        thread::scope(|scope| {
            let Ok(syncing) = thread::Builder::new().spawn_scoped(scope, || file.sync_all()) else {
                return file.sync_all();
            };
            while !syncing.is_finished() {
                match self.tasks.recv_timeout(WHILE_SYNCING) {
                    Ok(task) => self.take(task)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    // pping ends, and nothing more comes.
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            syncing.join().unwrap_or_else(|_| Err(io::Error::other("the disk was not reached")))
        })
    }
}
