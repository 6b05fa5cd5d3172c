//! `--hdr-log`: an interval log of `HdrHistogram`, version 2, for its usual tools.
//!
//! Times are seconds since the Unix epoch (base time 0), so that they stay valid however the file is cut. Values are
//! nanoseconds; the highest of an interval, which is for people, is in milliseconds.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use super::names::{direction_name, method_name};
use crate::{
    aggregate::Distribution,
    groups::SeriesName,
    output::{Error, OnFailure, Outage, Target},
};

/// The option that names the file.
const OPTION: &str = "hdr-log";

/// Separates the parts of a tag.
const SEPARATOR: char = ';';

/// The divisor of the highest value of a line: nanoseconds in a millisecond.
const MILLISECOND: f64 = 1e6;

/// The names of the columns. Readers skip this line.
const LEGEND: &[u8] =
    b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// An open log.
pub(crate) struct HdrLog {
    path: PathBuf,
    target: Target,
    on_failure: OnFailure,
    outage: Outage,
    has_header: bool,
    serializer: V2DeflateSerializer,
}

impl HdrLog {
    /// Opens the file, to append.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        let target = Target::append(&path).map_err(Error::open(OPTION, &path))?;
        let (outage, serializer) = (Outage::default(), V2DeflateSerializer::new());
        Ok(Self { path, target, on_failure: OnFailure::End, outage, has_header: false, serializer })
    }

    /// Drops lines that cannot be written from now on, instead of failing.
    pub(crate) fn tolerate_failures(&mut self) {
        self.on_failure = OnFailure::Drop;
    }

    /// Reopens the file, as after a rotation.
    pub(crate) fn reopen(&mut self) {
        match Target::append(&self.path) {
            Ok(target) => (self.target, self.has_header) = (target, false),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!("--{OPTION} {path}: {error}; still writing to the file that was open");
            }
        }
    }

    /// Begins the next write with a new header, since the clock was set back.
    pub(crate) fn restart(&mut self) {
        self.has_header = false;
    }

    /// Writes the distributions of the interval that began at `began`, ns since the epoch, and took `interval` ns.
    ///
    /// # Errors
    /// [`Error::Write`], unless failures are tolerated.
    pub(crate) fn write<'a>(
        &mut self,
        series: impl Iterator<Item = (&'a SeriesName, &'a Distribution)>,
        began: u64,
        interval: u64,
    ) -> Result<(), Error> {
        let (mut out, had_header) = (Vec::new(), self.has_header);
        let failed = |path: &Path, source| Error::Write { target: path.display().to_string(), source };
        let header =
            self.format(series, began, interval, &mut out).map_err(|source| failed(&self.path, source))?;
        let newlines =
            out.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(position, _)| position + 1);
        // With an incomplete header, a reader would get the times wrong.
        let ends = newlines.filter(|&end| end >= header);
        let Err(torn) = self.target.write(&out, ends.clone()) else {
            self.outage.succeeded(Instant::now(), &self.path.display());
            return Ok(());
        };
        self.has_header = had_header || torn.kept >= header;
        if self.on_failure == OnFailure::End {
            return Err(failed(&self.path, torn.error));
        }
        self.outage.failed(Instant::now(), &self.path.display(), &torn.error);
        self.outage.dropped(ends.filter(|&end| end > torn.kept.max(header)).count() as u64);
        Ok(())
    }

    /// Appends the lines to `out`. Returns the length of the header before them, bytes.
    fn format<'a>(
        &mut self,
        series: impl Iterator<Item = (&'a SeriesName, &'a Distribution)>,
        began: u64,
        interval: u64,
        out: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let began = Duration::from_nanos(began);
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_max_value_divisor(MILLISECOND);
        if !self.has_header {
            builder
                .add_comment("[Histogram log format version 1.3]")
                .add_comment(concat!("[Logged with pping ", env!("CARGO_PKG_VERSION"), ", values in ns]"))
                .with_start_time(SystemTime::UNIX_EPOCH + began)
                .with_base_time(UNIX_EPOCH);
        }
        let mut header = Vec::new();
        builder.begin_log_with(&mut header, &mut self.serializer)?;
        if !self.has_header {
            out.append(&mut header);
            out.extend_from_slice(LEGEND);
            self.has_header = true;
        }
        let header_length = out.len();
        // A second writer, since the first has written the header.
        let mut lines = Vec::new();
        let mut writer = builder.begin_log_with(&mut lines, &mut self.serializer)?;
        for (name, distribution) in series.filter(|(_, distribution)| distribution.range.is_some()) {
            let tag = tag(name);
            let histogram = distribution.histogram();
            writer
                .write_histogram(&histogram, began, Duration::from_nanos(interval), Tag::new(&tag))
                .map_err(|error| io::Error::other(error.to_string()))?;
        }
        out.extend(
            lines.split_inclusive(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#")).flatten(),
        );
        Ok(header_length)
    }
}

/// `group;method;direction;interface`, with `-` for an unknown part. Characters that a tag cannot contain are
/// percent-encoded, and so is the separator.
fn tag(name: &SeriesName) -> String {
    let mut tag = String::new();
    let interface = name.interface.as_deref().unwrap_or("-");
    let matched = name.matched.map_or("-", direction_name);
    for (index, part) in
        [&*name.group.label, method_name(name.method), matched, interface].into_iter().enumerate()
    {
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
    use std::{fs, sync::Arc};

    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use pping_common::{
        abi::{Direction, Tally},
        group::GroupKey,
        rtt::Method,
    };

    use super::*;
    use crate::groups::{GroupName, Labels};

    fn series(label: &str) -> (SeriesName, Distribution) {
        let group = GroupName { label: label.into(), ..GroupName::new(&GroupKey::ALL, &Labels::default()) };
        let (method, matched) = (Method::TcpTs, Some(Direction::Egress));
        let mut tally = Tally::EMPTY;
        tally.sample(5_000_000, 0);
        let mut distribution = Distribution::default();
        distribution.add(&tally);
        (SeriesName { interface: Some("eth0".into()), method, matched, group: Arc::new(group) }, distribution)
    }

    #[test]
    fn tags_are_percent_encoded() {
        assert_eq!(tag(&series("192.0.2.0/24").0), "192.0.2.0/24;tcp-ts;egress;eth0");
        let (name, _) = series("Müller, Söhne;50 %");
        assert_eq!(tag(&name), "Müller%2C%20Söhne%3B50%20%25;tcp-ts;egress;eth0");
        assert!(Tag::new(&tag(&name)).is_some());
    }

    #[test]
    fn a_full_disk_ends_a_replay_but_not_live_monitoring() {
        let mut log = HdrLog::open(Path::new("/dev/full")).unwrap();
        let (name, distribution) = series("a");
        let write = |log: &mut HdrLog| log.write([(&name, &distribution)].into_iter(), 1, 1);
        let error = write(&mut log).unwrap_err().to_string();
        assert!(error.starts_with("writing to /dev/full failed: No space left"), "{error}");
        log.on_failure = OnFailure::Drop;
        write(&mut log).unwrap();
        assert!(!log.has_header);
    }

    #[test]
    fn a_log_has_one_header_per_file_and_a_line_per_series_with_samples() {
        let directory = tempfile::tempdir().unwrap();
        let (path, rotated) = (directory.path().join("log"), directory.path().join("old"));
        let mut log = HdrLog::open(&path).unwrap();
        let (name, distribution) = series("a");
        let none = Distribution::default();
        let second = 1_000_000_000;
        for number in 1..=2 {
            let series = [(&name, &distribution), (&name, &none)];
            log.write(series.into_iter(), 1_700_000_000 * second * number, 10 * second).unwrap();
        }
        fs::rename(&path, &rotated).unwrap();
        log.reopen();
        log.write([(&name, &distribution)].into_iter(), second, second).unwrap();
        for (path, lines) in [(rotated, 2), (path, 1)] {
            let bytes = fs::read(path).unwrap();
            let entries: Vec<_> = IntervalLogIterator::new(&bytes).map(Result::unwrap).collect();
            let (mut starts, mut intervals) = (0, 0);
            for entry in &entries {
                match entry {
                    LogEntry::StartTime(_) => starts += 1,
                    LogEntry::BaseTime(base) => assert_eq!(*base, Duration::ZERO),
                    LogEntry::Interval(interval) => {
                        assert_eq!(interval.tag().unwrap().as_str(), "a;tcp-ts;egress;eth0");
                        intervals += 1;
                    }
                }
            }
            assert_eq!((starts, intervals), (1, lines));
        }
    }
}
