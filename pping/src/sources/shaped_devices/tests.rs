use std::path::Path;

use csv::ReaderBuilder;

use super::{file::Lines, *};

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
    let expected = ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.3/32"].map(|prefix| (prefix, "A", "parent=AP_1"));
    expect(LabelBy::CircuitName, &text, &expected, ", 1 left out");
    expect(LabelBy::CircuitId, &text, &expected.map(|(prefix, _, it)| (prefix, "1", it)), ", 1 left out");
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
        parse(text.as_bytes(), Path::new("s.csv"), LabelBy::CircuitId, &mut Complaints::default()).unwrap()
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
        let mut lines = Lines::new(text.as_bytes());
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
    expect(LabelBy::CircuitName, &text, &[("10.0.0.1/32", "A", "")], ", 6 left out");
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
