//! What a file of networks lists, in either format.

use std::{collections::HashMap, path::Path, sync::Arc};

use ipnet::IpNet;
use pping_common::limits::MAX_NETWORK_PREFIXES;

use super::file_error::Error;
use crate::{
    config::RemoteBy as By,
    groups::labels::{ALL, Labels, OTHER, UNLISTED},
};

/// The prefixes of networks, each with the number of its network.
pub type Prefixes = Vec<(IpNet, u32)>;

/// Bytes of a label.
const MAX_LABEL: usize = 128;

/// What a file says of a prefix.
#[derive(Debug, Default)]
pub(super) struct Owner<'a> {
    /// The number of its autonomous system; 0 if it has none.
    pub(super) asn: u32,
    /// The name of its organisation.
    pub(super) name: &'a str,
    /// The code of its country, such as `SE`.
    pub(super) country: &'a str,
}

/// The prefixes so far, and the labels of their networks.
#[derive(Debug, Default)]
pub(super) struct Listed {
    labels: Labels,
    /// The numbers of autonomous systems that have a label. The first name that the file has for one is that of all its prefixes.
    systems: HashMap<u32, u32>,
    prefixes: Prefixes,
    /// Whether any prefix has a number, or a country.
    has: [bool; 2],
}

impl Listed {
    /// Nothing yet, after files with these labels.
    pub(super) fn after(labels: Labels) -> Self {
        Self { labels, ..Self::default() }
    }

    /// Returns the number of a network; `None` if the file does not say what it is told apart by.
    pub(super) fn number(&mut self, owner: &Owner, by: By) -> Option<u32> {
        let Owner { asn, name, country } = *owner;
        self.has[By::Asn as usize] |= asn != 0;
        self.has[By::Country as usize] |= !country.is_empty();
        match by {
            By::Country => {
                let country = plain(country);
                (!country.is_empty()).then(|| self.labels.number(&apart(country), Vec::new()))
            }
            By::Asn if asn == 0 => None,
            By::Asn => {
                if let Some(number) = self.systems.get(&asn) {
                    return Some(*number);
                }
                let (name, code) = (plain(name), asn.to_string());
                let label = format!("AS{asn} {name}");
                let mut columns = vec![("asn".into(), Arc::from(code))];
                if !name.is_empty() {
                    columns.push(("name".into(), name.into()));
                }
                let number = self.labels.number(label.trim_end(), columns);
                self.systems.insert(asn, number);
                Some(number)
            }
        }
    }

    /// Adds a prefix of the network with this number.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn add(&mut self, prefix: IpNet, number: u32) -> Result<(), String> {
        if self.prefixes.len() >= MAX_NETWORK_PREFIXES as usize {
            return Err(format!("there are more than {MAX_NETWORK_PREFIXES} prefixes; use a smaller file"));
        }
        self.prefixes.push((prefix, number));
        Ok(())
    }

    /// The labels and the prefixes.
    ///
    /// # Errors
    /// If there are none.
    pub(super) fn finish(self, path: &Path, by: By) -> Result<(Labels, Prefixes), Error> {
        if !self.prefixes.is_empty() {
            return Ok((self.labels, self.prefixes));
        }
        let reason = match (by, self.has) {
            (By::Asn, [_, true]) => "it has countries, but no AS numbers; use --remote-by country",
            (By::Country, [true, _]) => "it has AS numbers, but no countries; use --remote-by asn",
            _ => "it has no prefix with an AS number or a country",
        };
        Err(Error::of_file(path, &reason))
    }
}

/// A name without control characters, and with single spaces, of at most [`MAX_LABEL`] bytes.
fn plain(name: &str) -> String {
    let words = name.split(|it: char| it.is_whitespace() || it.is_control()).filter(|word| !word.is_empty());
    let mut plain = words.collect::<Vec<_>>().join(" ");
    plain.truncate(plain.floor_char_boundary(MAX_LABEL));
    plain
}

/// A name that is not that of what has no network.
fn apart(name: String) -> String {
    if [ALL, OTHER, UNLISTED].contains(&name.as_str()) { format!("{name}.") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner<'a>(asn: u32, name: &'a str, country: &'a str) -> Owner<'a> {
        Owner { asn, name, country }
    }

    fn label(listed: &Listed, number: u32) -> String {
        listed.labels.get(number).0.to_string()
    }

    #[test]
    fn a_system_has_one_label_however_often_it_is_named() {
        let mut listed = Listed::default();
        let first = listed.number(&owner(64_500, " Example\n  Net\t", "SE"), By::Asn).unwrap();
        assert_eq!(listed.number(&owner(64_500, "Example Network AB", "DE"), By::Asn), Some(first));
        assert_eq!(label(&listed, first), "AS64500 Example Net");
        let nameless = listed.number(&owner(64_501, "", ""), By::Asn).unwrap();
        assert_eq!(label(&listed, nameless), "AS64501");
        assert_eq!(listed.number(&owner(0, "Nobody", "SE"), By::Asn), None);
        let long = listed.number(&owner(64_502, &"ä".repeat(1000), ""), By::Asn).unwrap();
        assert!(label(&listed, long).len() < 150);
    }

    #[test]
    fn countries_are_told_apart_by_their_codes() {
        let mut listed = Listed::default();
        let [one, again, other] =
            ["SE", "SE", "DE"].map(|code| listed.number(&owner(1, "", code), By::Country));
        assert!(one == again && one != other);
        assert_eq!(label(&listed, other.unwrap()), "DE");
        let reserved = listed.number(&owner(1, "", "other"), By::Country).unwrap();
        assert_ne!(label(&listed, reserved), OTHER);
    }

    #[test]
    fn a_file_of_the_other_kind_is_named_as_such() {
        for (by, owner, option) in [
            (By::Asn, owner(0, "", "SE"), "--remote-by country"),
            (By::Country, owner(7, "", ""), "--remote-by asn"),
            (By::Asn, owner(0, "x", ""), "no prefix with"),
        ] {
            let mut listed = Listed::default();
            assert_eq!(listed.number(&owner, by), None);
            let error = listed.finish(Path::new("x.csv"), by).unwrap_err().to_string();
            assert!(error.starts_with("x.csv: ") && error.contains(option), "{error}");
        }
    }
}
