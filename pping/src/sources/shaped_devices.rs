//! `pping groups shaped-devices`: the circuits of LibreQoS.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use clap::{Args, ValueEnum};
use csv::{ReaderBuilder, StringRecord, Trim};
use ipnet::IpNet;

use super::{
    change::{Change, Name},
    complaints::Complaints,
    error::Error,
    feed::Feed,
    run::{Stop, give_up_privileges, until_stopped},
    settled::Settled,
};
use crate::{
    groups,
    log::say_started,
    notify::Notify,
    output,
    spelling::counted,
    text::{self, FileError},
};

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The interval at which the file is looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// The kind of complaints about single entries.
const LEFT_OUT: &str = "entries left out";

/// What is wrong with the header of another file.
const OTHER_FILE: &str = "the header has no `Circuit ID` and `Circuit Name`; this is no ShapedDevices.csv";

/// The options of `pping groups shaped-devices`.
#[derive(Clone, Debug, Args)]
pub struct ShapedDevicesArguments {
    /// File of circuits, most often /opt/libreqos/src/ShapedDevices.csv
    pub file: PathBuf,
    /// Name groups after this; a name that several circuits have gets the ID of each
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = LabelBy::CircuitName)]
    pub label_by: LabelBy,
    /// Go on, and take the file again each time it changes
    #[arg(long)]
    pub follow: bool,
}

/// What groups are named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabelBy {
    /// Circuit Name
    CircuitName,
    /// Circuit ID
    CircuitId,
}

/// Takes the file once, or follows it until it is stopped.
///
/// # Errors
/// If the file cannot be read or is no such file, or pping cannot be reached (without `--follow`).
pub(super) fn run(arguments: ShapedDevicesArguments, socket: PathBuf, source: Arc<str>) -> Result<(), Error> {
    give_up_privileges()?;
    let ShapedDevicesArguments { file, label_by, follow } = arguments;
    let mut feed = Feed::new(socket, source, false);
    let mut complaints = Complaints::default();
    let circuits = read(&file, label_by, &mut complaints)?;
    if circuits.is_empty() && !follow {
        let reason = without_circuits(feed.source());
        return Err(FileError::Invalid { path: file, line: 1, column: 1, reason }.into());
    }
    if follow {
        let prefixes = counted(circuits.len(), "prefix", "prefixes");
        say_started(&format!("following {}: {prefixes}", file.display()));
        return until_stopped(move |stop| {
            replace(&mut feed, circuits, &mut complaints);
            follow_file(file, label_by, feed, complaints, stop);
            Ok(())
        });
    }
    replace(&mut feed, circuits, &mut complaints);
    feed.flush_once(&mut complaints)?;
    let (source, prefixes, summary) = (feed.source(), feed.len(), complaints.summary());
    let prefixes = counted(prefixes, "prefix", "prefixes");
    let text = format!("{source} lists {prefixes} now{summary}\n");
    Ok(output::print(text.as_bytes())?)
}

fn follow_file(file: PathBuf, label_by: LabelBy, mut feed: Feed, mut complaints: Complaints, stop: &Stop) {
    let notify = Notify::from_environment();
    notify.ready(&counted(feed.len(), "prefix", "prefixes"));
    let mut settled = Settled::new(file);
    while !stop.is_set() {
        match settled.poll() {
            Ok(None) => {}
            Ok(Some(bytes)) => match parse(&bytes, settled.path(), label_by, &mut complaints) {
                Ok(circuits) => {
                    replace(&mut feed, circuits, &mut complaints);
                    let prefixes = counted(feed.len(), "prefix", "prefixes");
                    notify.status(&format!("{prefixes}{}", complaints.summary()));
                }
                Err(error) => tracing::error!("{error}; the groups stay as they were"),
            },
            Err(error) => {
                let path = settled.path().display();
                complaints.warn("times that the file could not be read", || format!("{path}: {error}"));
            }
        }
        // Without a pping that listens, everything waits in the feed.
        feed.flush(&mut complaints).ok();
        notify.alive();
        thread::sleep(INTERVAL);
    }
    notify.stopping();
}

/// Says that a file has no circuits. Another program made it, and most likely failed.
fn without_circuits(source: &str) -> String {
    format!(
        "there is no circuit with an address in this file, so the groups stay as they were; to remove them all, stop what \
         follows the file, and run: pping groups remove --all --source {source}"
    )
}

/// Makes these all that the feed has, unless there are none.
fn replace(feed: &mut Feed, circuits: HashMap<IpNet, Name>, complaints: &mut Complaints) {
    if circuits.is_empty() {
        complaints.warn("times that the file had no circuits", || without_circuits(feed.source()));
        return;
    }
    let gone: Vec<IpNet> = feed.prefixes().filter(|prefix| !circuits.contains_key(prefix)).collect();
    let set = circuits.into_iter().map(|(prefix, name)| Change::Set(prefix, name));
    for change in gone.into_iter().map(Change::Unset).chain(set) {
        feed.apply(change, complaints);
    }
    feed.complete();
}

fn read(
    path: &Path,
    label_by: LabelBy,
    complaints: &mut Complaints,
) -> Result<HashMap<IpNet, Name>, FileError> {
    let bytes = text::open(path).and_then(|file| text::read_bytes(file, MAX_BYTES));
    let bytes = bytes.map_err(|source| FileError::Open { path: path.to_owned(), source })?;
    parse(&bytes, path, label_by, complaints)
}

/// The places of the columns in the header.
struct Header {
    id: usize,
    name: usize,
    parent: Option<usize>,
    addresses: [Option<usize>; 2],
    /// The highest rates, down and up.
    rates: [Option<usize>; 2],
}

impl Header {
    /// Finds the columns that matter.
    ///
    /// # Errors
    /// What is missing.
    fn of(record: &StringRecord) -> Result<Self, &'static str> {
        // Some versions write the unit, and some do not.
        let place = |name: &str| {
            let is = |field: &str| field.trim_end_matches(" Mbps").eq_ignore_ascii_case(name);
            record.iter().position(is)
        };
        let (Some(id), Some(name)) = (place("Circuit ID"), place("Circuit Name")) else {
            return Err(OTHER_FILE);
        };
        let addresses = [place("IPv4"), place("IPv6")];
        if addresses == [None; 2] {
            return Err("the header has neither `IPv4` nor `IPv6`; without them no circuit has an address");
        }
        Ok(Self {
            id,
            name,
            parent: place("Parent Node"),
            addresses,
            rates: [place("Download Max"), place("Upload Max")],
        })
    }
}

/// A device of a circuit.
struct Device {
    line: u64,
    id: String,
    name: String,
    columns: groups::Columns,
    prefixes: Vec<IpNet>,
}

/// Reads the file. Entries with an error are left out, because another program made it, and cannot correct them.
///
/// # Errors
/// If it is no such file: then nothing changes.
fn parse(
    bytes: &[u8],
    path: &Path,
    label_by: LabelBy,
    complaints: &mut Complaints,
) -> Result<HashMap<IpNet, Name>, FileError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = ReaderBuilder::new();
    reader.comment(Some(b'#')).flexible(true).has_headers(false).trim(Trim::All);
    let mut records = reader.from_reader(bytes).into_records();
    let mut lines = Lines { bytes, at: 0, line: 1 };
    let invalid = |line: u64, reason: &str| FileError::Invalid {
        path: path.to_owned(),
        line: line as usize,
        column: 1,
        reason: reason.to_owned(),
    };
    let header = match records.next() {
        Some(Ok(record)) => {
            Header::of(&record).map_err(|reason| invalid(lines.of(record.position()), reason))?
        }
        Some(Err(error)) => return Err(invalid(lines.of(error.position()), &reason_of(&error))),
        None => return Err(invalid(1, OTHER_FILE)),
    };
    let mut left_out = |line: u64, reason: &str| {
        complaints.warn(LEFT_OUT, || format!("{}:{line}: {reason}; it is left out", path.display()));
    };
    let mut devices = Vec::new();
    for record in records {
        match record {
            Ok(record) => {
                let line = lines.of(record.position());
                devices.extend(device(line, &record, &header, &mut left_out));
            }
            Err(error) => left_out(lines.of(error.position()), &reason_of(&error)),
        }
    }
    Ok(named(&devices, label_by, &mut left_out))
}

/// What is wrong with a record, without the line that the reader believes it to be in.
fn reason_of(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => text::ReadError::NOT_UTF8.to_owned(),
        _ => error.to_string(),
    }
}

/// Counts lines. The reader's own count is that of the byte after the record before, where a line feed or comments may follow.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line in which a record begins. It comes after those that were asked for before.
    fn of(&mut self, position: Option<&csv::Position>) -> u64 {
        let mut start = position.map_or(self.at, |position| position.byte() as usize);
        loop {
            let rest = self.bytes.get(start..).unwrap_or_default();
            start += match rest.first() {
                Some(b'\r' | b'\n') => 1,
                Some(b'#') => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
                _ => break,
            };
        }
        let passed = self.bytes.get(self.at..start).unwrap_or_default();
        self.line += passed.split(|&byte| byte == b'\n').skip(1).count() as u64;
        self.at = start;
        self.line
    }
}

fn device(
    line: u64,
    record: &StringRecord,
    header: &Header,
    left_out: &mut impl FnMut(u64, &str),
) -> Option<Device> {
    let get = |column: usize| record.get(column).unwrap_or_default();
    let (id, name) = (get(header.id), get(header.name));
    if id.is_empty() && name.is_empty() {
        left_out(line, "the circuit has neither an ID nor a name");
        return None;
    }
    let mut columns = groups::Columns::new();
    if let Some(parent) = header.parent.map(get).filter(|parent| !parent.is_empty()) {
        columns.push(("parent".into(), parent.into()));
    }
    if let [Some(down), Some(up)] = header.rates.map(|rate| rate.map(get).filter(|rate| !rate.is_empty())) {
        columns.push(("plan".into(), format!("{down}/{up}").into()));
    }
    let mut prefixes = Vec::new();
    let fields = header.addresses.into_iter().flatten().map(get);
    for text in fields.flat_map(|field| field.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
        match groups::prefix(text) {
            Ok(prefix) if prefix.prefix_len() == 0 => {
                left_out(line, &format!("{prefix} is every address; give a circuit its own"));
            }
            Ok(prefix) => prefixes.push(prefix),
            Err(reason) => left_out(line, &reason),
        }
    }
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    Some(Device { line, id: or(id, name), name: or(name, id), columns, prefixes })
}

/// Gives each prefix the name of its circuit.
fn named(
    devices: &[Device],
    label_by: LabelBy,
    left_out: &mut impl FnMut(u64, &str),
) -> HashMap<IpNet, Name> {
    let labels = labels(devices, label_by);
    let columns = columns(devices, &labels, left_out);
    let mut named: HashMap<IpNet, Name> = HashMap::new();
    for (Device { line, prefixes, .. }, label) in devices.iter().zip(&labels) {
        for &prefix in prefixes {
            match named.get(&prefix) {
                Some(other) if other.label != *label => {
                    left_out(
                        *line,
                        &format!("{prefix} is an address of the circuit `{}` already", other.label),
                    );
                }
                Some(_) => {}
                None => {
                    let columns = columns.get(&**label).cloned().unwrap_or_default();
                    named.insert(prefix, Name { label: Arc::clone(label), columns: Some(columns) });
                }
            }
        }
    }
    named
}

/// The label of each device: that of its circuit. A name that several circuits have gets the ID of each, and gets it once more if
/// that is the name of another one.
fn labels(devices: &[Device], label_by: LabelBy) -> Vec<Arc<str>> {
    if label_by == LabelBy::CircuitId {
        return devices.iter().map(|device| device.id.as_str().into()).collect();
    }
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut ambiguous: HashSet<&str> = HashSet::new();
    for Device { id, name, .. } in devices {
        if *first.entry(name).or_insert(id) != id {
            ambiguous.insert(name);
        }
    }
    let mut taken: HashSet<String> = first.keys().map(|&name| name.to_owned()).collect();
    let mut made: HashMap<(&str, &str), Arc<str>> = HashMap::new();
    let mut labels = Vec::with_capacity(devices.len());
    for Device { id, name, .. } in devices {
        if !ambiguous.contains(name.as_str()) {
            labels.push(name.as_str().into());
            continue;
        }
        let label = made.entry((name, id)).or_insert_with(|| {
            let mut label = format!("{name} ({id})");
            while !taken.insert(label.clone()) {
                label = format!("{label} ({id})");
            }
            label.into()
        });
        labels.push(Arc::clone(label));
    }
    labels
}

/// The columns of each label. They are those of all its devices, so the first line that has one counts.
fn columns<'a>(
    devices: &[Device],
    labels: &'a [Arc<str>],
    left_out: &mut impl FnMut(u64, &str),
) -> HashMap<&'a str, groups::Columns> {
    let mut all: HashMap<&str, groups::Columns> = HashMap::new();
    for (Device { line, columns, .. }, label) in devices.iter().zip(labels) {
        let known = all.entry(label).or_default();
        for (name, value) in columns {
            match known.iter().find(|(column, _)| column == name) {
                Some((_, first)) if first != value => {
                    left_out(*line, &format!("`{label}` has the {name} `{first}` already, not `{value}`"));
                }
                Some(_) => {}
                None => known.push((Arc::clone(name), Arc::clone(value))),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,\
                          Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n";

    fn parse_by(label_by: LabelBy, text: &str) -> (Vec<(String, String, String)>, String) {
        let mut complaints = Complaints::default();
        let named = parse(text.as_bytes(), Path::new("s.csv"), label_by, &mut complaints).unwrap();
        let columns = |name: &Name| {
            let columns = name.columns.iter().flatten().map(|(name, value)| format!("{name}={value}"));
            columns.collect::<Vec<_>>().join(" ")
        };
        let mut rows: Vec<_> = named
            .iter()
            .map(|(prefix, name)| (prefix.to_string(), name.label.to_string(), columns(name)))
            .collect();
        rows.sort_unstable();
        (rows, complaints.summary())
    }

    #[track_caller]
    fn expect(label_by: LabelBy, text: &str, expected: &[(&str, &str, &str)], complaints: &str) {
        let (rows, said) = parse_by(label_by, text);
        let rows: Vec<_> = rows.iter().map(|(a, b, c)| (&**a, &**b, &**c)).collect();
        assert_eq!((&rows[..], &*said), (expected, complaints));
    }

    const CIRCUITS: &str = "# made by an integration\n\
        77,\"12 Mill Lane, Ayton\",1,Router,AP_North,,\"100.70.0.1, 100.70.0.9\",2001:db8:70::/56,1,1,155,20,\n\
        78,Bakery,2,CPE,,02:00:5e:00:70:02,100.70.1.0/29,,1,1,50.5,10,\"two\nlines\"\n\
        78,Bakery,3,Camera,,,100.70.2.1,,1,1,50.5,10,,cake\n";

    #[test]
    fn circuits_have_their_addresses_and_parents() {
        let mill = ("12 Mill Lane, Ayton", "parent=AP_North plan=155/20");
        let expected = [
            ("100.70.0.1/32", mill.0, mill.1),
            ("100.70.0.9/32", mill.0, mill.1),
            ("100.70.1.0/29", "Bakery", "plan=50.5/10"),
            ("100.70.2.1/32", "Bakery", "plan=50.5/10"),
            ("2001:db8:70::/56", mill.0, mill.1),
        ];
        let text = format!("\u{feff}{HEADER}{CIRCUITS}");
        expect(LabelBy::CircuitName, &text, &expected, "");
        let by_id = expected
            .map(|(prefix, label, columns)| (prefix, if label == "Bakery" { "78" } else { "77" }, columns));
        expect(LabelBy::CircuitId, &text, &by_id, "");
        // Other versions have other columns, in another order.
        let other = "circuit id,Comment,Circuit Name,IPv6,IPv4,Download Max\n5,x,Mill,,100.70.0.1,5\n";
        expect(LabelBy::CircuitName, other, &[("100.70.0.1/32", "Mill", "")], "");
    }

    #[test]
    fn a_name_of_several_circuits_gets_their_ids() {
        let text = format!(
            "{HEADER}1,Flat,1,,,,10.0.0.1,\n2,Flat,2,,,,10.0.0.2,\n2,Flat,3,,,,10.0.0.3,\n3,,4,,,,10.0.0.4,\n"
        );
        let expected = [
            ("10.0.0.1/32", "Flat (1)", ""),
            ("10.0.0.2/32", "Flat (2)", ""),
            ("10.0.0.3/32", "Flat (2)", ""),
            ("10.0.0.4/32", "3", ""),
        ];
        expect(LabelBy::CircuitName, &text, &expected, "");
    }

    #[test]
    fn a_name_with_an_id_is_that_of_no_other_circuit() {
        for order in [[0, 1, 2], [2, 1, 0]] {
            let lines = ["1,Flat,1,,,,10.0.0.1,\n", "2,Flat,2,,,,10.0.0.2,\n", "9,Flat (1),3,,,,10.0.0.9,\n"];
            let text = format!("{HEADER}{}", order.map(|index| lines[index]).concat());
            let expected = [
                ("10.0.0.1/32", "Flat (1) (1)", ""),
                ("10.0.0.2/32", "Flat (2)", ""),
                ("10.0.0.9/32", "Flat (1)", ""),
            ];
            expect(LabelBy::CircuitName, &text, &expected, "");
        }
    }

    #[test]
    fn the_first_parent_of_a_circuit_counts() {
        let line = |device: u8, parent: &str| format!("1,A,{device},,{parent},,10.0.0.{device},\n");
        let text = format!("{HEADER}{}{}{}", line(1, ""), line(2, "AP_1"), line(3, "AP_2"));
        let expected =
            ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"].map(|prefix| (prefix, "A", "parent=AP_1"));
        expect(LabelBy::CircuitName, &text, &expected, ", 1 entries left out");
        expect(
            LabelBy::CircuitId,
            &text,
            &expected.map(|(prefix, _, it)| (prefix, "1", it)),
            ", 1 entries left out",
        );
        // A circuit that has no parent any more says so.
        let named = parse(
            format!("{HEADER}{}", line(1, "")).as_bytes(),
            Path::new("s.csv"),
            LabelBy::CircuitName,
            &mut Complaints::default(),
        );
        assert_eq!(named.unwrap().into_values().next().unwrap().columns, Some(Vec::new()));
    }

    #[test]
    fn a_file_without_circuits_takes_nothing_away() {
        let mut feed = Feed::new("none".into(), "qos".into(), false);
        let mut complaints = Complaints::default();
        let circuits = |text: &str| {
            parse(text.as_bytes(), Path::new("s.csv"), LabelBy::CircuitId, &mut Complaints::default())
                .unwrap()
        };
        replace(&mut feed, circuits(&format!("{HEADER}{CIRCUITS}")), &mut complaints);
        let len = feed.len();
        for text in [HEADER.to_owned(), format!("{HEADER}1,A,1,,,,,\n2,B,2,,,,0.0.0.0/0,::/0\n")] {
            replace(&mut feed, circuits(&text), &mut complaints);
            assert_eq!(feed.len(), len);
        }
        assert_eq!(complaints.summary(), ", 2 times that the file had no circuits");
        assert!(without_circuits("qos").contains("pping groups remove --all --source qos"));
    }

    #[test]
    fn lines_are_those_of_an_editor() {
        for end in ["\n", "\r\n"] {
            let text = [
                "Circuit ID,Circuit Name,IPv4",
                "# a",
                "",
                "1,\"A",
                "B\",10.0.0.1",
                "2,C,10.0.0.1",
                "#",
                "3,D,x",
            ];
            let text = text.join(end);
            let mut reader = ReaderBuilder::new();
            reader.comment(Some(b'#')).flexible(true).has_headers(false);
            let mut lines = Lines { bytes: text.as_bytes(), at: 0, line: 1 };
            let records = reader.from_reader(text.as_bytes()).into_records();
            let found: Vec<u64> = records.map(|record| lines.of(record.unwrap().position())).collect();
            assert_eq!(found, [1, 4, 6, 8]);
        }
    }

    #[test]
    fn entries_with_errors_are_left_out() {
        let text = format!(
            "{HEADER}1,A,1,,,,\"10.0.0.1,10.0.0.300,10.0.0.1\",\n,,2,,,,10.0.0.2,\n3,C,3,,,,10.0.0.1,\n4,D,4,,,,10.0.0.5/24,\n\
             5,E,5,,,,0.0.0.0/0,::/0\n6\n"
        );
        expect(LabelBy::CircuitName, &text, &[("10.0.0.1/32", "A", "")], ", 6 entries left out");
    }

    #[test]
    fn another_file_changes_nothing() {
        for text in ["", "prefix,group\n10.0.0.0/8,a\n"] {
            let error =
                parse(text.as_bytes(), Path::new("s.csv"), LabelBy::CircuitId, &mut Complaints::default());
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with("s.csv:1:1: the header has no `Circuit ID`"), "{error}");
        }
        let text = b"# made\r\nCircuit ID,Circuit Name,Parent Node\r\n1,A,AP\r\n";
        let error = parse(text, Path::new("s.csv"), LabelBy::CircuitId, &mut Complaints::default());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("s.csv:2:1: the header has neither `IPv4` nor `IPv6`"), "{error}");
    }
}
