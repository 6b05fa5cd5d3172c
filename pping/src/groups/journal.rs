//! The file that keeps what came by the socket across restarts.
//!
//! Its first line says what it is. Every other line is a number and a request of [`super::protocol`] that was carried out, so a
//! change is appended, and reading the file repeats the changes. The numbers count from 1, which shows if a line is missing. A
//! thread writes it, because a disk may take long. What was written
//! survives a kill of pping at once, and a loss of power after a second. A file of many outdated changes is written again beside
//! the old one, and takes its place.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::fs::OFlags;

use super::{
    labels::Labels,
    overlay::Overlay,
    protocol::{MAX_LINE, Request},
};
use crate::capabilities;

/// The first line.
const HEADER: &[u8] = b"{\"pping_groups\":2}\n";

/// The longest line: a number of 20 digits, a space and a request.
const MAX_NUMBERED: usize = MAX_LINE + 21;

/// The time after which what was written is on the disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two attempts to write the file again after an error.
const RETRY: Duration = Duration::from_secs(10);

/// The interval at which a file that is being synced is looked at.
const WHILE_SYNCING: Duration = Duration::from_millis(5);

/// How many pieces may wait for the disk. Beyond that the file is written again later.
const MAX_WAITING: usize = 4096;

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Damage {
    /// The last line was not written to its end: pping was killed, or the power failed. All before it is used.
    CutOff,
    /// From this line on, counted from 1, nothing can be read. All before it is used.
    End {
        /// The line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// This line, counted from 1, cannot be read or is missing, but others after it can. Nothing is used: a prefix may have moved
    /// there.
    Middle {
        /// The line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// It is another kind of file.
    Foreign,
}

/// Reads a file, and returns its requests with what is wrong with it. There are none if it does not exist.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> io::Result<(Vec<Request>, Option<Damage>)> {
    // Opening a named pipe must not wait for a writer.
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file; give another path"));
    }
    parse(BufReader::new(file))
}

fn parse(mut file: impl io::BufRead) -> io::Result<(Vec<Request>, Option<Damage>)> {
    let (mut requests, mut damage, mut line) = (Vec::new(), None, Vec::new());
    for of_line in 1.. {
        line.clear();
        let mut limited = file.by_ref().take(MAX_NUMBERED as u64);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if of_line == 1 {
            if line == HEADER {
                continue;
            }
            let is_cut = HEADER.starts_with(&line);
            return Ok((Vec::new(), Some(if is_cut { Damage::CutOff } else { Damage::Foreign })));
        }
        let is_whole = line.ends_with(b"\n");
        let is_cut = !is_whole && line.len() < MAX_NUMBERED && !line.contains(&0);
        match numbered(line.trim_ascii_end()) {
            Ok((number, request)) => match damage {
                None if number == requests.len() as u64 + 1 => requests.push(request),
                None => {
                    let reason =
                        format!("change {} should be there, and change {number} is", requests.len() + 1);
                    return Ok((Vec::new(), Some(Damage::Middle { line: of_line, reason })));
                }
                Some(Damage::End { line, reason }) => {
                    return Ok((Vec::new(), Some(Damage::Middle { line, reason })));
                }
                Some(_) => {}
            },
            Err(_) if damage.is_some() => {}
            Err(_) if is_cut => damage = Some(Damage::CutOff),
            Err(reason) => damage = Some(Damage::End { line: of_line, reason }),
        }
    }
    Ok((requests, damage))
}

/// Parses a line, without its line break: the number of a change, and the change.
fn numbered(line: &[u8]) -> Result<(u64, Request), String> {
    let (number, request) = split_number(line).ok_or("it has no number")?;
    match Request::parse(request)? {
        request @ (Request::Add(_) | Request::Remove { .. } | Request::Columns { .. }) => {
            Ok((number, request))
        }
        _ => Err("it is no change".to_owned()),
    }
}

fn split_number(line: &[u8]) -> Option<(u64, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (number, request) = line.split_at_checked(space)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, request.trim_ascii_start()))
}

/// Keeps a file from others: two pping would write over each other's changes. The lock ends with what is returned, and with the
/// process. `None` if the file system has no room for it, or no locks.
///
/// # Errors
/// [`Locked`] if another pping has it.
pub fn lock(path: &Path) -> Result<Option<File>, Locked> {
    // The file itself is replaced now and then.
    let path = beside(path, ".lock");
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o640).custom_flags(without_waiting);
    let Ok(file) = options.open(path) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Locked),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Another process has locked a file.
#[derive(Debug)]
pub struct Locked;

/// Puts a damaged file aside, and returns where it is. A file that was put aside before is replaced.
///
/// # Errors
/// If it cannot be renamed.
pub fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let aside = beside(path, ".damaged");
    fs::rename(path, &aside)?;
    Ok(aside)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What the thread has to do.
enum Task {
    /// Append these lines.
    Append(Vec<u8>),
    /// Write the file again.
    Rewrite(Box<(Overlay, Labels)>),
}

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
        let file = JournalFile { path, file: None, is_failing: false, is_behind: Arc::clone(&is_behind) };
        let thread = thread::Builder::new().name("pping-groups-wr".into()).spawn(move || file.run(&inbox))?;
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

/// The file, in the thread that writes it.
struct JournalFile {
    path: PathBuf,
    file: Option<Numbered>,
    /// Whether the log says so already.
    is_failing: bool,
    is_behind: Arc<AtomicBool>,
}

impl JournalFile {
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
    fn rewrite(&mut self, (overlay, labels): &(Overlay, Labels), tasks: &Receiver<Task>) -> io::Result<()> {
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

/// A file that is appended to.
struct Numbered {
    file: File,
    /// The number of the last change in it.
    last: u64,
}

impl Numbered {
    /// Begins a file.
    fn create(path: &Path) -> io::Result<Self> {
        let mut file = create(path)?;
        file.write_all(HEADER)?;
        Ok(Self { file, last: 0 })
    }

    /// Appends requests, each with its number.
    fn append(&mut self, requests: &[u8]) -> io::Result<()> {
        let mut lines = Vec::with_capacity(requests.len() + requests.len() / 4);
        for request in requests.split_inclusive(|&byte| byte == b'\n') {
            self.last += 1;
            write!(lines, "{} ", self.last)?;
            lines.extend_from_slice(request);
        }
        self.file.write_all(&lines)
    }
}

/// Creates a file, in place of what has its name. Another user must not learn who has which address, nor have put a link there.
fn create(path: &Path) -> io::Result<File> {
    fs::remove_file(path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    OpenOptions::new().append(true).create_new(true).mode(0o640).open(path)
}

/// Opens the file of an earlier run to append to it; `None` if there is none, or if its last line is not whole.
fn open_whole(path: &Path) -> Option<Numbered> {
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).append(true).custom_flags(without_waiting).open(path).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    let length = (MAX_NUMBERED as u64).min(metadata.len());
    let mut end = vec![0; length as usize];
    file.read_exact_at(&mut end, metadata.len() - length).ok()?;
    let last = end.strip_suffix(b"\n")?.rsplit(|&byte| byte == b'\n').next()?;
    let last = if *last == HEADER[..HEADER.len() - 1] { 0 } else { split_number(last)?.0 };
    Some(Numbered { file, last })
}

#[cfg(test)]
mod tests {
    use ipnet::IpNet;

    use super::*;
    use crate::groups::Columns;

    fn add(prefix: &str, label: &str, source: &str) -> Request {
        let line = format!(r#"{{"op":"add","prefix":"{prefix}","label":"{label}","source":"{source}"}}"#);
        Request::parse(line.as_bytes()).unwrap()
    }

    /// A file with three changes.
    fn text() -> Vec<u8> {
        let mut text = HEADER.to_vec();
        for (number, request) in (1..).zip([
            add("10.0.0.1", "one", "cli"),
            add("10.0.0.1", "two", "radius"),
            Request::Remove { prefix: "10.0.0.1/32".parse().unwrap(), source: "cli".into() },
        ]) {
            write!(text, "{number} ").unwrap();
            request.write(&mut text);
        }
        text
    }

    fn parsed(text: &[u8]) -> (usize, Option<Damage>) {
        let (requests, damage) = parse(text).unwrap();
        (requests.len(), damage)
    }

    #[test]
    fn a_cut_file_has_all_that_is_whole() {
        let text = text();
        assert_eq!(parsed(&text), (3, None));
        let ends: Vec<usize> =
            text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1).collect();
        for length in 0..text.len() {
            // A line that lacks only its line break is whole.
            let whole = ends.iter().filter(|&&end| end <= length + 1).count();
            let is_whole = length == 0
                || ends.iter().any(|&end| end == length || end == length + 1 && end > HEADER.len());
            let (requests, damage) = parsed(&text[..length]);
            assert_eq!(requests, whole.saturating_sub(1), "{length}");
            assert_eq!(damage, (!is_whole).then_some(Damage::CutOff), "{length}");
        }
    }

    #[test]
    fn a_zeroed_end_is_left_out() {
        let mut zeroed = text();
        zeroed.extend([0; 5_000]);
        let (requests, damage) = parsed(&zeroed);
        assert_eq!(requests, 3);
        assert!(matches!(damage, Some(Damage::End { line: 5, .. })), "{damage:?}");
        zeroed.extend(vec![0; 3 * MAX_NUMBERED]);
        assert!(matches!(parsed(&zeroed), (3, Some(Damage::End { line: 5, .. }))));
    }

    #[test]
    fn nothing_of_a_file_with_a_gap_is_used() {
        let mut text = text();
        let second = text.iter().position(|&byte| byte == b'\n').unwrap() + 5;
        text[second..second + 4].fill(0);
        let (requests, damage) = parsed(&text);
        assert_eq!(requests, 0);
        assert!(matches!(damage, Some(Damage::Middle { line: 2, .. })), "{damage:?}");
    }

    #[test]
    fn a_line_that_is_missing_is_a_gap() {
        let text = text();
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        for (order, damaged) in [(&[0, 1, 3][..], 3), (&[0, 2, 3], 2), (&[0, 1, 2, 2, 3], 4), (&[0, 2], 2)] {
            let (requests, damage) =
                parsed(&order.iter().map(|&line| lines[line]).collect::<Vec<_>>().concat());
            assert_eq!(requests, 0, "{order:?}");
            assert!(matches!(damage, Some(Damage::Middle { line, .. }) if line == damaged), "{damage:?}");
        }
        // What is missing at the end cannot be known.
        assert_eq!(parsed(&lines[..2].concat()), (1, None));
        let (requests, damage) = parsed(&[&text[..], b"{\"op\":\"hello\"}\n"].concat());
        assert!(requests == 3 && matches!(damage, Some(Damage::End { line: 5, .. })), "{damage:?}");
    }

    #[test]
    fn two_processes_do_not_keep_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let held = lock(&path).unwrap();
        assert!(held.is_some());
        assert!(lock(&path).is_err());
        drop(held);
        assert!(lock(&path).unwrap().is_some());
        assert!(lock(Path::new("/nonexistent/journal")).unwrap().is_none());
    }

    #[test]
    fn a_foreign_file_is_told_from_one_of_groups() {
        for foreign in [&b"prefix,group\n10.0.0.0/8,x\n"[..], b"\0\0\0\0", b"{\"pping_groups\":1}\n", b"\n"] {
            assert_eq!(parsed(foreign), (0, Some(Damage::Foreign)), "{foreign:?}");
        }
        assert_eq!(parsed(b""), (0, None));
        assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular file"));
        assert_eq!(read(Path::new("/nonexistent")).unwrap().0.len(), 0);
    }

    #[test]
    fn what_is_appended_and_written_again_is_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("groups.journal");
        let (mut overlay, mut labels) = (Overlay::default(), Labels::default());
        let [cli, radius] = ["cli", "radius"].map(|name| overlay.source(&name.into()).unwrap());
        let prefix: IpNet = "10.0.0.1/32".parse().unwrap();
        // The order of addresses is not that of changes: the source that comes first spoke last.
        let [one, two] = ["one", "two"].map(|label| labels.number(label, Vec::new()));
        overlay.set(prefix, radius, two);
        overlay.set(prefix, cli, one);
        let journal = Journal::start(path.clone(), None, &overlay, &labels).unwrap();
        drop(journal);
        let both = [add("10.0.0.1", "two", "radius"), add("10.0.0.1", "one", "cli")];
        assert_eq!(read(&path).unwrap(), (both.to_vec(), None));

        let mut journal = Journal::start(path.clone(), None, &overlay, &labels).unwrap();
        let (mut lines, more) = (Vec::new(), add("10.0.0.2", "two", "cli"));
        more.write(&mut lines);
        journal.append(lines, 1);
        drop(journal);
        assert_eq!(read(&path).unwrap(), ([&both[..], &[more]].concat(), None));
        assert!(!beside(&path, ".new").exists());
    }

    #[test]
    fn the_source_whose_columns_count_is_the_same_when_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("groups.journal");
        let columns = |value: &str| -> Columns { vec![("site".into(), value.into())] };
        for order in [["cli", "radius"], ["radius", "cli"]] {
            let (mut overlay, mut labels) = (Overlay::default(), Labels::default());
            let label = labels.number("one", Vec::new());
            // The order of addresses is not that of columns.
            for (prefix, source) in [("10.0.0.1/32", "cli"), ("10.0.0.2/32", "radius")] {
                let source = overlay.source(&source.into()).unwrap();
                overlay.set(prefix.parse().unwrap(), source, label);
            }
            for name in order {
                let source = overlay.source(&name.into()).unwrap();
                overlay.set_columns(label, source, &columns(name));
            }
            drop(Journal::start(path.clone(), None, &overlay, &labels).unwrap());
            let (requests, damage) = read(&path).unwrap();
            let given = |name: &str| Request::Columns {
                label: "one".into(),
                columns: columns(name),
                source: name.into(),
            };
            let both = [add("10.0.0.1", "one", "cli"), add("10.0.0.2", "one", "radius")];
            assert_eq!((requests, damage), ([&both[..], &order.map(given)].concat(), None));
        }
    }

    #[test]
    fn what_comes_while_the_file_is_written_again_is_in_both() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("groups.journal");
        let mut lines = text();
        fs::write(&path, &lines).unwrap();
        let before = File::open(&path).unwrap();
        let is_behind = Arc::new(AtomicBool::new(false));
        let mut file = JournalFile { path: path.clone(), file: None, is_failing: false, is_behind };
        let (tasks, inbox) = sync_channel(2);
        let (more, mut line) = (add("10.0.0.2", "three", "cli"), Vec::new());
        more.write(&mut line);
        tasks.send(Task::Append(line.clone())).unwrap();
        file.rewrite(&Default::default(), &inbox).unwrap();
        // A kill before the new file has its name would have left this one.
        lines.extend(b"4 ");
        lines.extend(&line);
        assert_eq!(io::read_to_string(before).unwrap().as_bytes(), lines);
        assert_eq!(read(&path).unwrap(), (vec![more], None));
    }
}
