//! `--hdr-log`: an interval log of `HdrHistogram`, version 2, for its usual tools.
//!
//! Times are seconds since the Unix epoch (base time 0), so that they stay valid however the file is cut. Values are
//! nanoseconds; the highest of an interval, which is for people, is in milliseconds.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};
use pping_common::{group::Side, parse::Direction};

use crate::{
    aggregate::Distribution,
    groups::SeriesName,
    output::{Batch, Ended, Error, Framing, OnFailure, Output, Role},
};

/// Separates the parts of a tag.
const SEPARATOR: char = ';';

/// The divisor of the highest value of a line: nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

/// The names of the columns. Readers skip this line.
const LEGEND: &[u8] =
    b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// What happens while the file is too slow or cannot be written.
pub(crate) enum Pace {
    /// Packets of an interface do not wait: lines are dropped and counted.
    Live,
    /// A capture waits until this is set, and an error ends it.
    Capture(Arc<AtomicBool>),
}

/// An open log, which a separate thread writes.
pub(crate) struct HdrLog {
    path: PathBuf,
    pace: Pace,
    output: Output,
    /// Resolves to the error that ended the thread.
    ended: Ended,
    /// The number of the header that lines need at present.
    header: u64,
    serializer: V2DeflateSerializer,
}

impl HdrLog {
    /// Opens the file, to append, and starts the thread.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::NoReader`], or [`Error::Io`] if the thread cannot be started.
    pub(crate) fn open(path: &Path, pace: Pace) -> Result<Self, Error> {
        let on_failure = match pace {
            Pace::Live => OnFailure::Drop,
            Pace::Capture(_) => OnFailure::End,
        };
        let (output, ended) = Output::open(Role::Log, Some(path), Framing::LINES, on_failure)?;
        let (path, serializer) = (path.to_owned(), V2DeflateSerializer::new());
        Ok(Self { path, pace, output, ended, header: 0, serializer })
    }

    /// Reopens the file, as after a rotation.
    pub(crate) fn reopen(&self) {
        self.output.reopener().reopen();
    }

    /// Begins the next write with a new header, since the clock was set back.
    pub(crate) fn restart(&mut self) {
        self.header += 1;
    }

    /// Writes the distributions of the interval that began at `began`, ns since the epoch, and took `interval` ns.
    ///
    /// # Errors
    /// [`Error::Write`] of this or an earlier write, for a capture.
    pub(crate) fn write<'a>(
        &mut self,
        series: impl Iterator<Item = (&'a SeriesName, &'a Distribution)>,
        began: u64,
        interval: u64,
    ) -> Result<(), Error> {
        let failed = |source| Error::Write { target: self.path.display().to_string(), source };
        let batch = format(&mut self.serializer, self.header, series, began, interval).map_err(failed)?;
        match &self.pace {
            Pace::Live => self.output.write(batch),
            Pace::Capture(stop) => self.output.write_all(batch, stop),
        }
        self.ended.try_recv().ok().flatten().map_or(Ok(()), Err)
    }

    /// Waits until all is written: half a second at most, unless a capture is read to its end. Returns the number of lines lost
    /// in all.
    ///
    /// # Errors
    /// [`Error::Write`] for a capture.
    pub(crate) fn close(mut self) -> Result<u64, Error> {
        let lost = match &self.pace {
            Pace::Live => self.output.finish(),
            Pace::Capture(stop) => self.output.finish_all(stop),
        };
        self.ended.try_recv().ok().flatten().map_or(Ok(lost), Err)
    }

    /// Lines dropped for any reason.
    #[cfg(feature = "live")]
    pub(crate) fn lines_lost(&self) -> u64 {
        self.output.lines_lost()
    }

    /// Lines dropped because the queue was full.
    #[cfg(feature = "live")]
    pub(crate) fn lines_refused(&self) -> u64 {
        self.output.lines_refused()
    }
}

/// Makes the lines of an interval, with the header that a new file needs before them.
fn format<'a>(
    serializer: &mut V2DeflateSerializer,
    number: u64,
    series: impl Iterator<Item = (&'a SeriesName, &'a Distribution)>,
    began: u64,
    interval: u64,
) -> io::Result<Batch> {
    let began = Duration::from_nanos(began);
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .with_max_value_divisor(MILLISECOND)
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(concat!("[Logged with pping ", env!("CARGO_PKG_VERSION"), ", values in ns]"))
        .with_start_time(SystemTime::UNIX_EPOCH + began)
        .with_base_time(UNIX_EPOCH);
    let mut header = Vec::new();
    builder.begin_log_with(&mut header, serializer)?;
    header.extend_from_slice(LEGEND);
    let mut batch = Batch::default();
    batch.set_header(number, header);
    // A second writer, since the first has written the header.
    let mut lines = Vec::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.with_max_value_divisor(MILLISECOND);
    let mut writer = builder.begin_log_with(&mut lines, serializer)?;
    for (name, distribution) in series.filter(|(_, distribution)| distribution.range.is_some()) {
        let tag = tag(name);
        let histogram = distribution.histogram();
        writer
            .write_histogram(&histogram, began, Duration::from_nanos(interval), Tag::new(&tag))
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    for line in lines.split_inclusive(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#")) {
        batch.push(Framing::LINES, |out| out.extend_from_slice(line));
    }
    Ok(batch)
}

/// `group;method;direction;interface`, with `-` for an unknown part, and `;side` if `--inside` tells sides apart. Characters that
/// a tag cannot contain are percent-encoded, and so is the separator.
fn tag(name: &SeriesName) -> String {
    let mut tag = String::new();
    let interface = name.interface.as_deref().unwrap_or("-");
    let matched = name.matched.map_or("-", Direction::name);
    let parts = [&*name.group.label, name.method.name(), matched, interface];
    for (index, part) in parts.into_iter().chain(name.side.map(Side::name)).enumerate() {
        if index > 0 {
            tag.push(SEPARATOR);
        }
        for c in part.chars() {
            if c.is_whitespace() || c.is_control() || [',', '%', SEPARATOR].contains(&c) {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string cannot fail.
                    write!(tag, "%{byte:02X}").ok();
                }
            } else {
                tag.push(c);
            }
        }
    }
    tag
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read as _, os::fd::AsRawFd as _, thread};

    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use pping_common::{group::GroupKey, method::Method, series::SeriesCounts};

    use super::*;
    use crate::groups::{GroupName, Labels};

    fn series(label: &str) -> (SeriesName, Distribution) {
        let group = GroupName { label: label.into(), ..GroupName::new(&GroupKey::ALL, &Labels::default()) };
        let (method, matched) = (Method::TcpTs, Some(Direction::Egress));
        let mut counts = SeriesCounts::EMPTY;
        counts.sample(5_000_000, 0);
        let mut distribution = Distribution::default();
        distribution.add(&counts);
        let (interface, group) = (Some("eth0".into()), Arc::new(group));
        (SeriesName { interface, method, matched, side: None, group }, distribution)
    }

    #[test]
    fn tags_are_percent_encoded() {
        assert_eq!(tag(&series("192.0.2.0/24").0), "192.0.2.0/24;tcp-ts;egress;eth0");
        let (name, _) = series("Müller, Söhne;50 %");
        assert_eq!(tag(&name), "Müller%2C%20Söhne%3B50%20%25;tcp-ts;egress;eth0");
        assert!(Tag::new(&tag(&name)).is_some());
    }

    /// Returns how many lines of series and how many headers a log has.
    fn contents(bytes: &[u8]) -> (u64, u64) {
        let (mut intervals, mut starts) = (0, 0);
        for entry in IntervalLogIterator::new(bytes).map(Result::unwrap) {
            match entry {
                LogEntry::StartTime(_) => starts += 1,
                LogEntry::BaseTime(base) => assert_eq!(base, Duration::ZERO),
                LogEntry::Interval(interval) => {
                    assert_eq!(interval.tag().unwrap().as_str(), "a;tcp-ts;egress;eth0");
                    intervals += 1;
                }
            }
        }
        (intervals, starts)
    }

    #[test]
    fn a_full_disk_ends_a_replay_but_not_live_monitoring() {
        let full = Path::new("/dev/full");
        let (name, distribution) = series("a");
        let write = |log: &mut HdrLog| log.write([(&name, &distribution)].into_iter(), 1, 1);
        let mut log = HdrLog::open(full, Pace::Capture(Arc::default())).unwrap();
        let error = write(&mut log).and_then(|()| log.close().map(drop)).unwrap_err().to_string();
        assert!(error.starts_with("writing to /dev/full failed: No space left"), "{error}");
        let mut log = HdrLog::open(full, Pace::Live).unwrap();
        write(&mut log).unwrap();
        write(&mut log).unwrap();
        assert_eq!(log.close().unwrap(), 2);
    }

    #[test]
    fn stuck_file_loses_lines_without_blocking() {
        const INTERVALS: u64 = 1_000;
        let (mut reader, writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let (name, distribution) = series("a");
        let mut log = HdrLog::open(Path::new(&path), Pace::Live).unwrap();
        for began in 1..=INTERVALS {
            log.write([(&name, &distribution)].into_iter(), began, 1).unwrap();
        }
        // Nothing has been read yet.
        let refused = log.output.lines_refused();
        assert!(refused > 0 && refused < INTERVALS, "{refused}");
        log.reopen();
        let read = thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        let lost = log.close().unwrap();
        // Until then, the path must not name what another test opens.
        drop(writer);
        assert_eq!(lost, refused);
        assert_eq!(contents(&read.join().unwrap().unwrap()).0, INTERVALS - lost);
    }

    #[test]
    fn log_has_one_header_and_a_line_per_series() {
        let directory = tempfile::tempdir().unwrap();
        let (path, rotated) = (directory.path().join("log"), directory.path().join("old"));
        let mut log = HdrLog::open(&path, Pace::Live).unwrap();
        let (name, distribution) = series("a");
        let none = Distribution::default();
        let second = 1_000_000_000;
        for number in 1..=2 {
            let series = [(&name, &distribution), (&name, &none)];
            log.write(series.into_iter(), 1_700_000_000 * second * number, 10 * second).unwrap();
        }
        let lines = |path: &Path| contents(&fs::read(path).unwrap()).0;
        while lines(&path) < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        fs::rename(&path, &rotated).unwrap();
        log.reopen();
        while !path.exists() {
            thread::sleep(Duration::from_millis(1));
        }
        log.write([(&name, &distribution)].into_iter(), second, second).unwrap();
        // The clock is set back.
        log.restart();
        log.write([(&name, &distribution)].into_iter(), 1, second).unwrap();
        assert_eq!(log.close().unwrap(), 0);
        assert_eq!(contents(&fs::read(rotated).unwrap()), (2, 1));
        assert_eq!(contents(&fs::read(path).unwrap()), (2, 2));
    }
}
