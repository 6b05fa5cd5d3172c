//! Reading the file.

use std::{collections::HashMap, path::Path};

use csv::{ReaderBuilder, StringRecord, Trim};
use ipnet::IpNet;

use super::{
    super::{change::Name, complaints::Complaints},
    circuits::{Device, LabelBy, named},
};
use crate::{
    groups,
    text::{self, FileError},
};

/// The longest file, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The kind of complaints about single entries.
const LEFT_OUT: &str = "left out";

/// What is wrong with the header of another file.
const OTHER_FILE: &str = "the header has no `Circuit ID` and `Circuit Name`; this is no ShapedDevices.csv";

/// Reads it.
///
/// # Errors
/// As [`parse`], and if it cannot be read.
pub(super) fn read(
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

/// Reads the file. Entries with an error are left out, because another program made it, and cannot correct them.
///
/// # Errors
/// If it is no such file: then nothing changes.
pub(super) fn parse(
    bytes: &[u8],
    path: &Path,
    label_by: LabelBy,
    complaints: &mut Complaints,
) -> Result<HashMap<IpNet, Name>, FileError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = ReaderBuilder::new();
    reader.comment(Some(b'#')).flexible(true).has_headers(false).trim(Trim::All);
    let mut records = reader.from_reader(bytes).into_records();
    let mut lines = Lines::new(bytes);
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
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// The line in which a record begins. It comes after those that were asked for before.
    pub(super) fn of(&mut self, position: Option<&csv::Position>) -> u64 {
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
