//! Databases in the format of `MaxMind` (<https://maxmind.github.io/MaxMind-DB/>), which others make, too: `GeoLite2-ASN.mmdb`,
//! those of DB-IP and of `IPinfo`.

use std::{collections::HashMap, net::IpAddr, path::Path};

use ipnet::IpNet;
use maxminddb::{MaxMindDbError, Reader, WithinOptions};
use serde::{Deserialize, de::IgnoredAny};

use super::{
    file_error::Error,
    listed::{Listed, Owner},
};
use crate::{config::RemoteBy as By, groups::valid, text};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// What these databases say of a prefix, under the names that they have for it.
#[derive(Debug, Default, Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    autonomous_system_number: Option<Number<'a>>,
    #[serde(borrow)]
    autonomous_system_organization: Option<&'a str>,
    #[serde(borrow)]
    asn: Option<Number<'a>>,
    #[serde(borrow)]
    as_name: Option<&'a str>,
    #[serde(borrow)]
    name: Option<&'a str>,
    #[serde(borrow)]
    country_code: Option<&'a str>,
    #[serde(borrow)]
    country: Option<Country<'a>>,
}

/// An AS number: 64500, or `AS64500`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number<'a> {
    Bare(u32),
    Prefixed(&'a str),
    /// What has another form is left out.
    Other(IgnoredAny),
}

/// A country: its code, or a map with it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Country<'a> {
    Code(&'a str),
    Map {
        #[serde(borrow)]
        iso_code: Option<&'a str>,
    },
    Other(IgnoredAny),
}

impl<'a> Entry<'a> {
    fn owner(&self) -> Owner<'a> {
        let number = self.autonomous_system_number.as_ref().or(self.asn.as_ref());
        let asn = number.and_then(|asn| match asn {
            Number::Bare(number) => Some(*number),
            Number::Prefixed(text) => super::table::asn(text),
            Number::Other(_) => None,
        });
        let country = self.country.as_ref().and_then(|country| match country {
            Country::Code(code) => Some(*code),
            Country::Map { iso_code } => *iso_code,
            Country::Other(_) => None,
        });
        let name = self.autonomous_system_organization.or(self.as_name).or(self.name);
        Owner {
            asn: asn.unwrap_or(0),
            name: name.unwrap_or_default(),
            // Some have the name of the country beside its code.
            country: self.country_code.or(country).unwrap_or_default(),
        }
    }
}

/// Adds what a database lists.
///
/// # Errors
/// If it cannot be read, is no such database, or is damaged.
pub(super) fn read(path: &Path, mut listed: Listed, by: By) -> Result<Listed, Error> {
    let bytes = text::read_file(path, MAX_BYTES)?;
    let damaged = |error: &MaxMindDbError| {
        Error::of_file(
            path,
            &format!("this is no MaxMind database, or a damaged one ({error}); fetch it again"),
        )
    };
    let reader = Reader::from_source(bytes).map_err(|error| damaged(&error))?;
    // Many prefixes share what is said of them.
    let mut numbers: HashMap<Option<usize>, Option<u32>> = HashMap::new();
    // All leaves of the tree, so that their number shows a tree whose branches meet again: there the number of ways may double with each
    // node. An honest tree has one leaf more than nodes, and its IPv4 part may be in four places.
    let most = 8 * (reader.metadata().node_count as usize + 1);
    let options = WithinOptions::default().include_networks_without_data().include_aliased_networks();
    for (count, found) in reader.networks(options).map_err(|error| damaged(&error))?.enumerate() {
        if count > most {
            return Err(Error::of_file(
                path,
                &"the branches of its tree meet again; fetch the database again",
            ));
        }
        let found = found.map_err(|error| damaged(&error))?;
        let number = if let Some(known) = numbers.get(&found.offset()) {
            *known
        } else {
            let entry: Entry = found.decode().map_err(|error| damaged(&error))?.unwrap_or_default();
            let number = listed.number(&entry.owner(), by);
            numbers.insert(found.offset(), number);
            number
        };
        let Some(number) = number else { continue };
        let network = found.network().map_err(|error| damaged(&error))?;
        if is_alias(network.ip()) {
            continue;
        }
        let prefix =
            IpNet::new(network.ip(), network.prefix()).map_err(|error| Error::of_file(path, &error))?;
        listed
            .add(valid::without_mapping(prefix.trunc()), number)
            .map_err(|reason| Error::of_file(path, &reason))?;
    }
    Ok(listed)
}

/// Whether an address is one of 6to4 (RFC 3056) or Teredo (RFC 4380), under which trees have IPv4 again.
fn is_alias(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => matches!(address.segments(), [0x2002, ..] | [0x2001, 0, ..]),
    }
}
