use std::{fs, net::IpAddr, path::PathBuf};

use ipnet::IpNet;

use super::*;

/// A file in a directory of this test.
fn file(name: &str, content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    (directory, path)
}

fn load(name: &str, content: impl AsRef<[u8]>, by: By) -> Result<(Networks, Prefixes), String> {
    let (_directory, path) = file(name, content);
    let networks = Networks::default();
    let prefixes = networks.load(&path, by).map_err(|error| error.to_string())?;
    Ok((networks, prefixes))
}

fn label(networks: &Networks, address: &str) -> Option<String> {
    let address: IpAddr = address.parse().unwrap();
    networks.label(address).map(|label| label.to_string())
}

#[test]
fn the_longest_prefix_of_a_table_has_the_name() {
    let text = "network,autonomous_system_number,autonomous_system_organization\n\
                192.0.2.0/24,64500,\"Example, Inc.\"\n192.0.2.128/25,AS64501,Inner\n2001:db8::/32,64500,Other Name\n";
    let (networks, prefixes) = load("asn.csv", text, By::Asn).unwrap();
    assert_eq!(prefixes.len(), 3);
    for (address, expected) in [
        ("192.0.2.1", Some("AS64500 Example, Inc.")),
        ("192.0.2.200", Some("AS64501 Inner")),
        ("2001:db8::1", Some("AS64500 Example, Inc.")),
        ("::ffff:192.0.2.1", Some("AS64500 Example, Inc.")),
        ("198.51.100.1", None),
    ] {
        assert_eq!(label(&networks, address).as_deref(), expected, "{address}");
    }
    let number = networks.number(IpAddress::from_bytes([0; 16]));
    assert_eq!((number, &*networks.get(number).0), (0, UNLISTED));
    let (_, columns) = networks.get(prefixes[1].1);
    assert_eq!(columns, [("asn".into(), "64501".into()), ("name".into(), "Inner".into())]);
}

#[test]
fn networks_may_be_told_apart_by_country() {
    let text = "prefix,country\n192.0.2.0/24,SE\n198.51.100.0/24,DE\n203.0.113.0/24,\n";
    let (networks, prefixes) = load("country.csv", text, By::Country).unwrap();
    assert_eq!(prefixes.len(), 2);
    assert_eq!(label(&networks, "192.0.2.1").as_deref(), Some("SE"));
    assert_eq!(label(&networks, "203.0.113.1"), None);
}

#[test]
fn an_error_says_where_and_what_to_write() {
    for (text, line, reason) in [
        ("192.0.2.0/24,64500\n", 1, "names no column of prefixes"),
        ("network,name\n192.0.2.0/24,x\n", 1, "neither a column `asn` nor"),
        ("network,asn\n192.0.2.1/24,64500\n", 2, "write 192.0.2.0/24"),
        ("network,asn\n192.0.2.0/24,64500\nx,64500\n", 3, "is not a prefix"),
        ("network,asn\n192.0.2.0/24,4294967296\n", 2, "write it like 64500 or AS64500"),
    ] {
        let error = load("x.csv", text, By::Asn).unwrap_err();
        assert!(error.contains(&format!("x.csv:{line}:1: ")) && error.contains(reason), "{error}");
    }
    let error = load("x.csv", "network,country\n192.0.2.0/24,SE\n", By::Asn).unwrap_err();
    assert!(error.contains("--remote-by country"), "{error}");
    let missing = Networks::default().load(Path::new("/nonexistent.mmdb"), By::Asn).unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent.mmdb: "), "{missing}");
}

#[test]
fn after_an_error_the_networks_stay_and_a_network_keeps_its_number() {
    let (networks, before) = load("x.csv", "network,asn\n192.0.2.0/24,64500\n", By::Asn).unwrap();
    let (_directory, bad) = file("x.csv", "network,asn\nx,1\n");
    networks.load(&bad, By::Asn).unwrap_err();
    assert_eq!(label(&networks, "192.0.2.1").as_deref(), Some("AS64500"));
    let (_directory, good) =
        file("x.csv", "network,asn,name\n192.0.2.0/24,64501,B\n198.51.100.0/24,64500,\n");
    let after = networks.load(&good, By::Asn).unwrap();
    assert_eq!(before[0].1, after[1].1);
    assert_eq!(label(&networks, "192.0.2.1").as_deref(), Some("AS64501 B"));
    // Samples may still count for one that the file no longer has.
    assert_eq!(&*networks.get(before[0].1).0, "AS64500");
}

/// A value of a database.
enum Value<'a> {
    Text(&'a str),
    Short(u16),
    Number(u32),
    Long(u64),
    Map(&'a [(&'a str, Value<'a>)]),
    EmptyList,
}

/// Writes a value in the encoding of the data section: a type and a length, and then the value.
fn encode(value: &Value<'_>, to: &mut Vec<u8>) {
    match value {
        Value::Text(text) => {
            // A length of 29 stands for one more byte, which counts on from there.
            match text.len() as u8 {
                len @ ..29 => to.push(2 << 5 | len),
                len => to.extend([2 << 5 | 0x1d, len - 29]),
            }
            to.extend(text.as_bytes());
        }
        Value::Short(number) => {
            to.push(5 << 5 | 2);
            to.extend(number.to_be_bytes());
        }
        Value::Number(number) => {
            to.push(6 << 5 | 4);
            to.extend(number.to_be_bytes());
        }
        Value::Long(number) => {
            // A type of 0 stands for one more byte, which counts on from 7.
            to.extend([8, 2]);
            to.extend(number.to_be_bytes());
        }
        Value::EmptyList => to.extend([0, 4]),
        Value::Map(pairs) => {
            to.push(7 << 5 | pairs.len() as u8);
            for (key, value) in *pairs {
                encode(&Value::Text(key), to);
                encode(value, to);
            }
        }
    }
}

/// A database of IPv6 in the format of `MaxMind`, in which the IPv4 addresses are those of `::/96`.
fn database(entries: &[(&str, Value<'_>)]) -> Vec<u8> {
    /// A record of a node: nothing, another node, or a value.
    #[derive(Clone, Copy)]
    enum Record {
        Nothing,
        Node(usize),
        Value(usize),
    }
    let (mut nodes, mut data) = (vec![[Record::Nothing; 2]], Vec::new());
    for (prefix, value) in entries {
        let prefix: IpNet = prefix.parse().unwrap();
        let (bits, len) = match prefix {
            IpNet::V4(prefix) => (u128::from(prefix.network().to_bits()), prefix.prefix_len() + 96),
            IpNet::V6(prefix) => (prefix.network().to_bits(), prefix.prefix_len()),
        };
        let bit = |depth: u8| (bits >> (127 - depth) & 1) as usize;
        let mut at = 0;
        for depth in 0..len - 1 {
            at = if let Record::Node(next) = nodes[at][bit(depth)] {
                next
            } else {
                nodes.push([Record::Nothing; 2]);
                let next = nodes.len() - 1;
                nodes[at][bit(depth)] = Record::Node(next);
                next
            };
        }
        nodes[at][bit(len - 1)] = Record::Value(data.len());
        encode(value, &mut data);
    }
    let count = nodes.len();
    let mut bytes = Vec::new();
    for record in nodes.iter().flatten() {
        let number = match *record {
            Record::Nothing => count,
            Record::Node(node) => node,
            Record::Value(offset) => count + 16 + offset,
        };
        bytes.extend((number as u32).to_be_bytes());
    }
    bytes.extend([0; 16]);
    bytes.extend(data);
    bytes.extend(b"\xab\xcd\xefMaxMind.com");
    let metadata = Value::Map(&[
        ("binary_format_major_version", Value::Short(2)),
        ("binary_format_minor_version", Value::Short(0)),
        ("build_epoch", Value::Long(1)),
        ("database_type", Value::Text("Test")),
        ("description", Value::Map(&[("en", Value::Text("Test"))])),
        ("languages", Value::EmptyList),
        ("ip_version", Value::Short(6)),
        ("node_count", Value::Number(count as u32)),
        ("record_size", Value::Short(32)),
    ]);
    encode(&metadata, &mut bytes);
    bytes
}

#[test]
fn labels_of_files_long_ago_are_forgotten() {
    let networks = Networks::default();
    let mut numbers = Vec::new();
    for name in ["A", "B", "C", "C"] {
        let (_directory, path) = file("x.csv", format!("network,asn,name\n192.0.2.0/24,64500,{name}\n"));
        numbers.push(networks.load(&path, By::Asn).unwrap()[0].1);
    }
    assert_eq!((numbers[2], &*networks.get(numbers[2]).0), (numbers[3], "AS64500 C"));
    assert_eq!([numbers[0], numbers[1]].map(|number| networks.get(number).0.to_string()), [OTHER, OTHER]);
}

#[test]
fn a_quotation_mark_that_is_not_closed_swallows_no_lines() {
    let text = "network,asn,name\n192.0.2.0/25,1,A\n192.0.2.128/25,2,\"B\n198.51.100.0/24,3,C\n";
    let error = load("x.csv", text, By::Asn).unwrap_err();
    assert!(error.contains("x.csv:3:1: ") && error.contains("not closed"), "{error}");
    let error = load("x.csv", "network,asn,name\n192.0.2.0/24,1,A\n198.51.100.0/24\n", By::Asn).unwrap_err();
    assert!(error.contains("x.csv:3:1: "), "{error}");
}

/// A tree in which both records of each node lead to the next: there are as many ways as 2 to the number of nodes.
#[test]
fn a_tree_whose_branches_meet_again_is_refused_at_once() {
    let mut bytes = database(&[("::/100", Value::Map(&[("asn", Value::Number(1))]))]);
    for node in 0..99_u32 {
        for record in 0..2 {
            let at = (node * 8 + record * 4) as usize;
            bytes[at..at + 4].copy_from_slice(&(node + 1).to_be_bytes());
        }
    }
    let error = load("x.mmdb", &bytes, By::Asn).unwrap_err();
    assert!(error.contains("meet again"), "{error}");
}

#[test]
fn mapped_addresses_are_those_of_ipv4_and_other_forms_are_left_out() {
    let number = || Value::Map(Box::leak(Box::new([("asn", Value::Number(64_500))])));
    let other = Value::Map(&[("asn", Value::Map(&[("number", Value::Number(7))]))]);
    let bytes = database(&[
        ("::ffff:192.0.2.0/120", number()),
        ("2001:db8::/32", number()),
        ("2001:db9::/32", other),
    ]);
    let (networks, _) = load("x.mmdb", &bytes, By::Asn).unwrap();
    let found = ["192.0.2.1", "2001:db8::1", "2001:db9::1"].map(|address| label(&networks, address));
    assert_eq!(found, [Some("AS64500".to_owned()), Some("AS64500".to_owned()), None]);
}

fn geolite() -> Vec<u8> {
    let owner = |asn, name| {
        Value::Map(Box::leak(Box::new([
            ("autonomous_system_number", Value::Number(asn)),
            ("autonomous_system_organization", Value::Text(name)),
        ])))
    };
    database(&[
        ("192.0.2.0/24", owner(64_500, "Example")),
        ("198.51.100.128/25", owner(64_501, "Other")),
        ("2001:db8::/32", owner(64_500, "Example")),
    ])
}

#[test]
fn a_database_has_the_names_of_its_prefixes() {
    let (networks, prefixes) = load("GeoLite2-ASN.mmdb", geolite(), By::Asn).unwrap();
    assert_eq!(prefixes.len(), 3);
    for (address, expected) in [
        ("192.0.2.77", Some("AS64500 Example")),
        ("198.51.100.200", Some("AS64501 Other")),
        ("198.51.100.1", None),
        ("2001:db8:ffff::1", Some("AS64500 Example")),
    ] {
        assert_eq!(label(&networks, address).as_deref(), expected, "{address}");
    }
    let error = load("GeoLite2-ASN.mmdb", geolite(), By::Country).unwrap_err();
    assert!(error.contains("--remote-by asn"), "{error}");
}

#[test]
fn databases_name_the_same_things_differently() {
    let ipinfo = Value::Map(&[
        ("as_name", Value::Text("Example")),
        ("asn", Value::Text("AS64500")),
        ("country", Value::Text("Sweden")),
        ("country_code", Value::Text("SE")),
    ]);
    let country = Value::Map(&[("country", Value::Map(&[("iso_code", Value::Text("DE"))]))]);
    let both = database(&[("192.0.2.0/24", ipinfo), ("2001:db8::/32", country)]);
    let (networks, _) = load("x.mmdb", &both, By::Asn).unwrap();
    assert_eq!(label(&networks, "192.0.2.1").as_deref(), Some("AS64500 Example"));
    assert_eq!(label(&networks, "2001:db8::1"), None);
    let (networks, _) = load("x.mmdb", &both, By::Country).unwrap();
    let found = ["192.0.2.1", "2001:db8::1"].map(|address| label(&networks, address));
    assert_eq!(found, [Some("SE".to_owned()), Some("DE".to_owned())]);
}

#[test]
fn a_damaged_database_is_an_error_and_nothing_worse() {
    let whole = geolite();
    for end in 0..whole.len() {
        load("x.mmdb", &whole[..end], By::Asn).unwrap_err();
    }
    // Whatever a byte becomes, reading ends.
    for at in 0..whole.len() {
        for value in [0, 0x7f, 0xff, whole[at] ^ 1] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            load("x.mmdb", &damaged, By::Asn).ok();
        }
    }
    let error = load("x.mmdb", "network,asn\n", By::Asn).unwrap_err();
    assert!(error.contains("no MaxMind database") && error.contains("fetch it again"), "{error}");
}
