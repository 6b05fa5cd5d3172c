//! CSV with a header, as `GeoLite2-ASN-Blocks-IPv4.csv` and others have it: a line for each prefix.

use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};

use super::{
    file_error::Error,
    listed::{Listed, Owner},
};
use crate::{
    config::RemoteBy as By,
    groups::valid,
    text::{FileError, Position, read_text},
};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The names that files have for their columns.
const PREFIX: &[&str] = &["prefix", "network", "cidr"];
const ASN: &[&str] = &["asn", "as_number", "autonomous_system_number"];
const NAME: &[&str] = &["name", "as_name", "organization", "org", "autonomous_system_organization"];
const COUNTRY: &[&str] = &["country_code", "country_iso_code", "country"];

/// Where the columns are.
struct Columns {
    prefix: usize,
    asn: Option<usize>,
    name: Option<usize>,
    country: Option<usize>,
}

/// Adds what a file lists.
///
/// # Errors
/// If it cannot be read, or a line has an error: the first, with its line.
pub(super) fn read(path: &Path, mut listed: Listed, by: By) -> Result<Listed, Error> {
    let text = read_text(path, MAX_BYTES)?;
    let at = |line, reason: String| FileError::invalid(path, Position { line, column: 1 }, reason);
    let invalid = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        at(line as usize, error.to_string())
    };
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| invalid(&error))?;
    let columns = Columns::of(header).map_err(|reason| at(1, reason))?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| invalid(&error))? {
        let line = record.position().map_or(1, csv::Position::line) as usize;
        if record.iter().any(|field| field.contains(['\n', '\r'])) {
            return Err(at(
                line,
                "a quotation mark is not closed on this line; close it, or remove it".to_owned(),
            )
            .into());
        }
        let field = |index: Option<usize>| index.and_then(|index| record.get(index)).unwrap_or_default();
        let prefix = valid::prefix(field(Some(columns.prefix))).map_err(|reason| at(line, reason))?;
        let number = field(columns.asn);
        let owner = Owner {
            asn: if number.is_empty() { 0 } else { asn(number).ok_or_else(|| at(line, no_asn(number)))? },
            name: field(columns.name),
            country: field(columns.country),
        };
        if let Some(number) = listed.number(&owner, by) {
            listed.add(prefix, number).map_err(|reason| at(line, reason))?;
        }
    }
    Ok(listed)
}

/// Parses an AS number: `64500`, or `AS64500`.
pub(super) fn asn(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("AS").or_else(|| text.strip_prefix("as")).unwrap_or(text);
    if digits.bytes().all(|it| it.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn no_asn(text: &str) -> String {
    format!("`{text}` is not the number of an autonomous system; write it like 64500 or AS64500")
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, String> {
        let find = |names: &[&str]| {
            names.iter().find_map(|name| header.iter().position(|it| it.eq_ignore_ascii_case(name)))
        };
        let columns = Self {
            prefix: find(PREFIX).ok_or_else(|| {
                "the first line names no column of prefixes; begin the file with a line like \
                 `network,asn,name,country`"
                    .to_owned()
            })?,
            asn: find(ASN),
            name: find(NAME),
            country: find(COUNTRY),
        };
        if columns.asn.is_none() && columns.country.is_none() {
            return Err(
                "the first line names neither a column `asn` nor a column `country`; it has to have one \
                        of them"
                    .to_owned(),
            );
        }
        Ok(columns)
    }
}
