use std::{fmt::Write as _, fs, path::PathBuf};

use ipnet::IpNet;
use pping_common::parse::IpAddress;
use tempfile::TempDir;

use super::*;
use crate::groups::Lookup;

fn file(name: &str, text: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    (directory, path)
}

fn read(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    read_with(name, text, PrefixRule::AtLeastOne)
}

/// Reads the prefixes of a file, and then its labels without one.
fn read_with(name: &str, text: &str, prefixes: PrefixRule) -> Result<Vec<(String, String)>, String> {
    let (_directory, path) = file(name, text);
    let mut labels = Labels::default();
    let groups = load(&path, prefixes, &mut labels).map_err(|error| {
        let message = error.to_string();
        let (_, reported) = message.split_once(name).unwrap();
        reported.to_owned()
    })?;
    let shown = |(prefix, number): (Option<IpNet>, u32)| {
        let (label, columns) = labels.get(number);
        let mut text = label.to_string();
        text.extend(columns.iter().flat_map(|(name, value)| [" ", name, "=", value]));
        (prefix.map_or_else(String::new, |prefix| prefix.to_string()), text)
    };
    let has_prefix = |number: u32| groups.prefixes.iter().any(|(_, label)| *label == number);
    let alone = groups.columns.iter().filter(|(number, _)| !has_prefix(*number));
    let prefixes = groups.prefixes.iter().map(|&(prefix, number)| (Some(prefix), number));
    Ok(prefixes.chain(alone.map(|&(number, _)| (None, number))).map(shown).collect())
}

fn listed(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(prefix, label)| (prefix.to_owned(), label.to_owned())).collect()
}

#[test]
fn lines_are_a_prefix_and_a_label() {
    let text = "\u{feff}# customers\r\n\r\n192.0.2.0/24,customer-1\r\n  2001:db8::/32 ,\"Müller, Söhne\" \n   \n\
                198.51.100.7,customer-1\n::ffff:203.0.113.0/120,mapped";
    assert_eq!(
        read("groups.csv", text).unwrap(),
        listed(&[
            ("192.0.2.0/24", "customer-1"),
            ("198.51.100.7/32", "customer-1"),
            ("203.0.113.0/24", "mapped"),
            ("2001:db8::/32", "Müller, Söhne"),
        ])
    );
}

#[test]
fn a_header_names_more_columns() {
    let text =
        "Prefix,group,site,upstream\n192.0.2.0/24,a,berlin,\n192.0.3.0/24,a,,as64500\n192.0.4.0/24,b\n";
    let a = "a site=berlin upstream=as64500";
    assert_eq!(
        read("groups.csv", text).unwrap(),
        listed(&[("192.0.2.0/24", a), ("192.0.3.0/24", a), ("192.0.4.0/24", "b")])
    );
}

#[test]
fn tables_list_the_same_as_lines() {
    let text = "[[group]]\nlabel = \"a\"\nsite = \"berlin\"\nprefixes = [\"192.0.2.0/24\", \"2001:db8::/32\"]\n\
                [[group]]\nlabel = 'b'\nprefixes = []\n";
    assert_eq!(
        read("groups.toml", text).unwrap(),
        listed(&[("192.0.2.0/24", "a site=berlin"), ("2001:db8::/32", "a site=berlin"), ("", "b")])
    );
}

#[test]
fn labels_may_lack_prefixes_if_these_come_by_the_socket() {
    let expected = [("", "a site=berlin ap=ap-3"), ("", "b site=lund")];
    for (name, text) in [
        ("g.csv", "group,site,ap\na,berlin,ap-3\nb,lund,\n"),
        ("g.csv", "# none\nGroup , site,ap\na,berlin,ap-3\nb,lund\n"),
        ("g.csv", "prefix,group,site,ap\n,a,berlin,ap-3\n,b,lund\n"),
        (
            "g.toml",
            "[[group]]\nlabel = \"a\"\nsite = \"berlin\"\nap = \"ap-3\"\n[[group]]\nlabel = \"b\"\nsite = \"lund\"\n\
             prefixes = []\n",
        ),
    ] {
        let columns_in_order = |mut rows: Vec<(String, String)>| {
            for (_, text) in &mut rows {
                *text = text.replace("ap=ap-3 site=berlin", "site=berlin ap=ap-3");
            }
            rows
        };
        let read = read_with(name, text, PrefixRule::Optional).map(columns_in_order);
        assert_eq!(read.unwrap(), listed(&expected), "{text:?}");
        let refused = read_with(name, text, PrefixRule::AtLeastOne).unwrap_err();
        assert!(refused.starts_with(":1:1: ") && refused.contains("no prefix in this file"), "{refused}");
        assert!(refused.contains("--groups-socket"), "{refused}");
        let refused = read_with(name, text, PrefixRule::EachLabel).unwrap_err();
        assert!(refused.contains("prefix"), "{refused}");
    }
    // Beside prefixes they do no harm.
    let text = "prefix,group,site\n192.0.2.0/24,a,berlin\n,b,lund\n,a,\n";
    let expected = [("192.0.2.0/24", "a site=berlin"), ("", "b site=lund")];
    for prefixes in [PrefixRule::AtLeastOne, PrefixRule::Optional] {
        assert_eq!(read_with("g.csv", text, prefixes).unwrap(), listed(&expected));
    }
    let refused = read_with("g.csv", text, PrefixRule::EachLabel).unwrap_err();
    assert!(refused.starts_with(":3:1: the prefix is missing; only a file of --groups"), "{refused}");
    for (text, position, said) in [
        ("", ":1:1: ", "neither a prefix nor a label"),
        ("group,site\n", ":1:1: ", "neither a prefix nor a label"),
        ("group\na\n", ":1:1: ", "write `prefix,group`, or `group,site`"),
        ("group,site\n,berlin\n", ":2:1: ", "the label is empty"),
        ("group,site\na,berlin,x\n", ":2:10: ", "no such column"),
        ("group,site\na,berlin\na,lund\n", ":3:3: ", "the site of `a` is `berlin`"),
        ("group,le\na,b\n", ":1:7: ", "rename"),
        ("prefix,group\n,a\n", ":2:1: ", "the prefix is missing"),
    ] {
        let refused = read_with("g.csv", text, PrefixRule::Optional).expect_err(text);
        assert!(refused.starts_with(position) && refused.contains(said), "{text:?}: {refused}");
    }
}

#[test]
fn errors_are_reported_with_line_and_column() {
    for (name, text, position, parts) in [
        (
            "g.csv",
            "192.0.2.0/24,a\n  300.0.0.0/8,b\n",
            ":2:3: ",
            &["`300.0.0.0/8` is not a prefix", "192.0.2.0/24"][..],
        ),
        ("g.csv", "192.0.2.0/33,a\n", ":1:1: ", &["from 0 to 32"]),
        ("g.csv", "#\n\n2001:db8::/129,a\n", ":3:1: ", &["from 0 to 128"]),
        ("g.csv", "192.0.2.5/24,a\n", ":1:1: ", &["write 192.0.2.0/24", "192.0.2.5 for that host"]),
        ("g.csv", "network,label\n", ":1:1: ", &["begins with the word `prefix`"]),
        ("g.csv", "192.0.2.0/24\n", ":1:1: ", &["no label"]),
        ("g.csv", "prefix,group,le\n192.0.2.0/24,a,b\n", ":1:14: ", &["`le`", "rename"]),
        ("g.csv", "prefix,group,site,quantile\n", ":1:19: ", &["`quantile`", "rename"]),
        (
            "g.toml",
            "[[group]]\nlabel = \"a\"\nle = \"b\"\nprefixes = [\"192.0.2.0/24\"]\n",
            ":3:1: ",
            &["`le`", "rename"],
        ),
        ("g.csv", "192.0.2.0/24, \n", ":1:15: ", &["label is empty"]),
        ("g.csv", "prefix,group,site\n192.0.2.0/24,a,\"st\n192.0.3.0/24,b,x\n", ":2:16: ", &["not closed"]),
        ("g.csv", "192.0.2.0/24,\"a\n192.0.3.0/24,b\"\n", ":1:14: ", &["not closed"]),
        ("g.csv", "192.0.2.0/24,\"a\"b\"c\n", ":1:17: ", &["text after the closing quotation mark"]),
        ("g.csv", "prefix,group,\"site\n192.0.2.0/24,a,b\n", ":1:14: ", &["not closed"]),
        ("g.csv", "192.0.2.0/24,a\u{1b}[31m\n", ":1:14: ", &["the label has a control character"]),
        ("g.csv", "192.0.2.\u{7}/24,a\n", ":1:1: ", &["the prefix has a control character"]),
        ("g.csv", "prefix,group,site\n192.0.2.0/24,a,b\tc\n", ":2:16: ", &["the site has a control"]),
        ("g.csv", "prefix,group,si\tte\n", ":1:14: ", &["the name of the column has a control"]),
        (
            "g.toml",
            "[[group]]\nlabel = \"a\"\nsite = \"b\\nc\"\nprefixes = []\n",
            ":3:8: ",
            &["the site has a control character or a line break"],
        ),
        ("g.csv", "prefix,group,expected rtt\n", ":1:14: ", &["most likely meant as `expected_rtt`"]),
        ("g.csv", "prefix,group,Expected_RTT\n", ":1:14: ", &["meant as `expected_rtt`"]),
        ("g.csv", "prefix,group,expected-rt\n", ":1:14: ", &["meant as `expected_rtt`"]),
        ("g.csv", "010.0.0.0/8,a\n", ":1:1: ", &["leading zero", "write 10.0.0.0/8"]),
        ("g.csv", "10.0.0.0/08,a\n", ":1:1: ", &["leading zero", "write 10.0.0.0/8"]),
        ("g.csv", "192.0.2.0/24,all\n", ":1:14: ", &["`all`", "another label"]),
        ("g.csv", "192.0.2.0/24,other\n", ":1:14: ", &["`other`"]),
        ("g.csv", "192.0.2.0/24,\"unlisted\"\n", ":1:15: ", &["`unlisted`"]),
        (
            "g.csv",
            "prefix,group,site\n192.0.2.0/24,a,(none)\n",
            ":2:16: ",
            &["`(none)`", "leave the site empty"],
        ),
        ("g.csv", "192.0.2.0/24,ä,berlin\n", ":1:16: ", &["header", "prefix,group,site"]),
        ("g.csv", "prefix,group,site\n192.0.2.0/24,a,b,c\n", ":2:18: ", &["no such column"]),
        ("g.csv", "", ":1:1: ", &["no prefix", "`unlisted`", "192.0.2.0/24,office"]),
        ("g.csv", "\n# none yet\n", ":1:1: ", &["no prefix"]),
        ("g.csv", "prefix,group,site\n", ":1:1: ", &["no prefix"]),
        ("g.toml", "", ":1:1: ", &["no prefix"]),
        ("g.toml", "[[group]]\nlabel = \"a\"\nprefixes = []\n", ":1:1: ", &["no prefix"]),
        ("g.csv", "prefix,group,site,site\n", ":1:19: ", &["`site` already"]),
        ("g.csv", "prefix\n", ":1:1: ", &["prefix,group"]),
        ("g.csv", "prefix,g,s\n192.0.2.0/25,a,x\n192.0.3.0/25,a,y\n", ":3:16: ", &["the s of `a` is `x`"]),
        (
            "g.csv",
            "192.0.2.0/24,a\n192.0.2.0/24,a\n192.0.2.0/24,b\n",
            ":3:1: ",
            &["in the group `a` already", "line 2"],
        ),
        (
            "g.toml",
            "[[group]]\nlabel = \"a\"\nprefixes = [\"192.0.2.0/24\", \"192.0.2.1/24\"]\n",
            ":3:29: ",
            &["write 192.0.2.0/24"],
        ),
        ("g.toml", "[[group]]\nlabel = \"all\"\nprefixes = []\n", ":2:9: ", &["`all`"]),
        ("g.toml", "[[group]]\nprefixes = []\n", ":1:1: ", &["no label"]),
        ("g.toml", "[[group]]\nlabel = \"a\"\n", ":1:1: ", &["no prefixes"]),
        ("g.toml", "[[group]]\nlabel = 7\nprefixes = [\"192.0.2.0/24\"]\n", ":2:9: ", &["quotation marks"]),
        ("g.toml", "[[groups]]\n", ":1:1: ", &["`groups` is not known", "[[group]]"]),
        ("g.toml", "[[group]]\nlabel = \n", ":2:9: ", &["must be quoted"]),
    ] {
        let message = read(name, text).expect_err(text);
        assert!(message.starts_with(position), "{text:?}: {message}");
        for part in parts {
            assert!(message.contains(part), "{text:?}: no `{part}` in {message}");
        }
    }
    let (_directory, path) = file("g.csv", b"192.0.2.0/24,a\n192.0.3.0/24,\xff\n");
    let message = load(&path, PrefixRule::AtLeastOne, &mut Labels::default()).unwrap_err().to_string();
    assert!(message.contains(":2:14: ") && message.contains("UTF-8"), "{message}");
}

#[test]
fn a_check_finds_all_errors() {
    let positions = |name: &str, text: &str| -> Vec<(usize, usize)> {
        let (_directory, path) = file(name, text);
        let position = |error: &FileError| match *error {
            FileError::Invalid { line, column, .. } => (line, column),
            FileError::Open { .. } => panic!("{error}"),
        };
        check(&path, PrefixRule::AtLeastOne).iter().map(position).collect()
    };
    let text = "prefix,group,site\n300.0.0.0/8,,x\n192.0.2.0/24,a,b,c\n192.0.2.0/24,b\nnonsense,c\n\
                192.0.3.0/24,c,here\n192.0.4.0/24,c,there\n";
    assert_eq!(positions("g.csv", text), [(2, 1), (2, 13), (3, 18), (4, 1), (5, 1), (7, 16)]);
    assert_eq!(positions("g.csv", "prefix,group,,a,a,le\nnonsense\n"), [(1, 14), (1, 17), (1, 19)]);
    // A quotation mark that is not closed hides nothing of the lines after it.
    let text =
        "prefix,group,site\n192.0.2.0/24,a,\"x\n300.0.0.0/8,a,\"y\"\n192.0.3.0/24,b\"\n192.0.4.0/24,\"c\"d\n";
    assert_eq!(positions("g.csv", text), [(2, 16), (3, 1), (5, 17)]);
    let text = "[[group]]\nlabel = \"all\"\nprefixes = [7, \"x\"]\n[[group]]\nlabel = \"a\"\nle = \"x\"\n\
                [[groups]]\n";
    assert_eq!(positions("g.toml", text), [(2, 9), (3, 13), (3, 16), (6, 1), (7, 1)]);
    assert_eq!(positions("g.toml", "a = \nb = ]\n").len(), 2);
    assert_eq!(positions("g.csv", &"x,a\n".repeat(500)).len(), 100);
    let (_directory, path) = file("g.csv", "1,a\n2,b\n".repeat(200));
    let all = check(&path, PrefixRule::AtLeastOne);
    assert!(all.last().unwrap().to_string().ends_with("(and there are 300 more errors)"), "{all:?}");
    let first = load(&path, PrefixRule::AtLeastOne, &mut Labels::default()).unwrap_err().to_string();
    assert!(first.contains(":1:1: ") && first.ends_with("(and many more errors)"), "{first}");
    let (_directory, path) = file("g.csv", "192.0.2.0/24,a\n");
    assert!(check(&path, PrefixRule::AtLeastOne).is_empty());
    assert_eq!(check(Path::new("/nowhere/g.csv"), PrefixRule::AtLeastOne).len(), 1);
}

#[test]
fn a_bad_file_changes_no_labels_and_a_good_one_keeps_numbers() {
    let mut labels = Labels::default();
    let (_directory, path) = file("g.csv", "192.0.2.0/24,a\n192.0.3.0/24,b\n");
    let before = load(&path, PrefixRule::AtLeastOne, &mut labels).unwrap();
    fs::write(&path, "192.0.2.0/24,new\nnonsense,b\n").unwrap();
    load(&path, PrefixRule::AtLeastOne, &mut labels).unwrap_err();
    fs::write(&path, "192.0.3.0/24,b\n192.0.4.0/24,c\n").unwrap();
    let after = load(&path, PrefixRule::AtLeastOne, &mut labels).unwrap();
    assert_eq!(after.prefixes[0], before.prefixes[1]);
    let (_, c) = after.prefixes[1];
    assert_eq!((&*labels.get(c).0, &*labels.get(0).0, &*labels.get(c ^ 1).0), ("c", "unlisted", "other"));
    labels.add_labels_of("a+gone dscp 46");
    let gone = Labels::default().number("gone", Vec::new());
    assert_eq!((&*labels.get(gone).0, labels.number("c", Vec::new())), ("gone", c));
    // An agent that restarts, without the old file, gives it the same number.
    assert_eq!(load(&path, PrefixRule::AtLeastOne, &mut Labels::default()).unwrap().prefixes, after.prefixes);
}

#[test]
fn a_million_prefixes_are_read_and_found() {
    let host = |number: u32| 10 << 24 | number << 2;
    let mut text = String::from("prefix,group,site\n10.0.0.0/8,all-of-ten,hq\n");
    for number in 0..1_000_000 {
        let [a, b, c, d] = host(number).to_be_bytes();
        let customer = number / 4;
        writeln!(text, "{a}.{b}.{c}.{d}/31,customer-{customer},site-{}", customer % 7).unwrap();
    }
    let (_directory, path) = file("g.csv", text);
    let mut labels = Labels::default();
    let lookup = Lookup::new(load(&path, PrefixRule::AtLeastOne, &mut labels).unwrap().prefixes);
    for number in [0, 1, 77_777, 999_999] {
        let find =
            |low: u32| labels.get(lookup.label(IpAddress([0, 0xffff << 32 | u64::from(host(number) + low)])));
        let (label, columns) = find(1);
        assert_eq!(*label, *format!("customer-{}", number / 4));
        assert_eq!(*columns[0].1, *format!("site-{}", number / 4 % 7));
        assert_eq!(&*find(2).0, "all-of-ten");
    }
}
