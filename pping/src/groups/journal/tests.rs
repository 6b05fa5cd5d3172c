use std::{fs, io::Write as _, path::Path};

use ipnet::IpNet;

use super::{
    super::protocol::Request,
    beside::beside,
    numbered::{HEADER, MAX_NUMBERED},
    read::parse,
    thread::{JournalFile, Task},
    *,
};
use crate::groups::Columns;

fn add(prefix: &str, label: &str, source: &str) -> Request {
    let line = format!(r#"{{"op":"add","prefix":"{prefix}","label":"{label}","source":"{source}"}}"#);
    Request::parse(line.as_bytes()).unwrap()
}

/// A file with three changes.
fn text() -> Vec<u8> {
    let mut text = HEADER.to_vec();
    for (number, request) in (1..).zip([
        add("10.0.0.1", "one", "cli"),
        add("10.0.0.1", "two", "radius"),
        Request::Remove { prefix: "10.0.0.1/32".parse().unwrap(), source: "cli".into() },
    ]) {
        write!(text, "{number} ").unwrap();
        request.write(&mut text);
    }
    text
}

fn parsed(text: &[u8]) -> (usize, Option<Damage>) {
    let (requests, damage) = parse(text).unwrap();
    (requests.len(), damage)
}

#[test]
fn a_cut_file_has_all_that_is_whole() {
    let text = text();
    assert_eq!(parsed(&text), (3, None));
    let ends: Vec<usize> =
        text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(index, _)| index + 1).collect();
    for length in 0..text.len() {
        // A line that lacks only its line break is whole.
        let whole = ends.iter().filter(|&&end| end <= length + 1).count();
        let is_whole =
            length == 0 || ends.iter().any(|&end| end == length || end == length + 1 && end > HEADER.len());
        let (requests, damage) = parsed(&text[..length]);
        assert_eq!(requests, whole.saturating_sub(1), "{length}");
        assert_eq!(damage, (!is_whole).then_some(Damage::CutOff), "{length}");
    }
}

#[test]
fn a_zeroed_end_is_left_out() {
    let mut zeroed = text();
    zeroed.extend([0; 5_000]);
    let (requests, damage) = parsed(&zeroed);
    assert_eq!(requests, 3);
    assert!(matches!(damage, Some(Damage::End { line: 5, .. })), "{damage:?}");
    zeroed.extend(vec![0; 3 * MAX_NUMBERED]);
    assert!(matches!(parsed(&zeroed), (3, Some(Damage::End { line: 5, .. }))));
}

#[test]
fn nothing_of_a_file_with_a_gap_is_used() {
    let mut text = text();
    let second = text.iter().position(|&byte| byte == b'\n').unwrap() + 5;
    text[second..second + 4].fill(0);
    let (requests, damage) = parsed(&text);
    assert_eq!(requests, 0);
    assert!(matches!(damage, Some(Damage::Middle { line: 2, .. })), "{damage:?}");
}

#[test]
fn a_line_that_is_missing_is_a_gap() {
    let text = text();
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    for (order, damaged) in [(&[0, 1, 3][..], 3), (&[0, 2, 3], 2), (&[0, 1, 2, 2, 3], 4), (&[0, 2], 2)] {
        let (requests, damage) = parsed(&order.iter().map(|&line| lines[line]).collect::<Vec<_>>().concat());
        assert_eq!(requests, 0, "{order:?}");
        assert!(matches!(damage, Some(Damage::Middle { line, .. }) if line == damaged), "{damage:?}");
    }
    // What is missing at the end cannot be known.
    assert_eq!(parsed(&lines[..2].concat()), (1, None));
    let (requests, damage) = parsed(&[&text[..], b"{\"op\":\"hello\"}\n"].concat());
    assert!(requests == 3 && matches!(damage, Some(Damage::End { line: 5, .. })), "{damage:?}");
}

#[test]
fn two_processes_do_not_keep_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let held = lock(&path).unwrap();
    assert!(held.is_some());
    assert!(lock(&path).is_err());
    drop(held);
    assert!(lock(&path).unwrap().is_some());
    assert!(lock(Path::new("/nonexistent/journal")).unwrap().is_none());
}

#[test]
fn a_foreign_file_is_told_from_one_of_groups() {
    for foreign in [&b"prefix,group\n10.0.0.0/8,x\n"[..], b"\0\0\0\0", b"{\"pping_groups\":1}\n", b"\n"] {
        assert_eq!(parsed(foreign), (0, Some(Damage::Foreign)), "{foreign:?}");
    }
    assert_eq!(parsed(b""), (0, None));
    assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular file"));
    assert_eq!(read(Path::new("/nonexistent")).unwrap().0.len(), 0);
}

#[test]
fn what_is_appended_and_written_again_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups.journal");
    let (mut overlay, mut labels) = (Overlay::default(), Labels::default());
    let [cli, radius] = ["cli", "radius"].map(|name| overlay.source(&name.into()).unwrap());
    let prefix: IpNet = "10.0.0.1/32".parse().unwrap();
    // The order of addresses is not that of changes: the source that comes first spoke last.
    let [one, two] = ["one", "two"].map(|label| labels.number(label, Vec::new()));
    overlay.set(prefix, radius, two);
    overlay.set(prefix, cli, one);
    let journal = Journal::start(path.clone(), None, &overlay, &labels).unwrap();
    drop(journal);
    let both = [add("10.0.0.1", "two", "radius"), add("10.0.0.1", "one", "cli")];
    assert_eq!(read(&path).unwrap(), (both.to_vec(), None));

    let mut journal = Journal::start(path.clone(), None, &overlay, &labels).unwrap();
    let (mut lines, more) = (Vec::new(), add("10.0.0.2", "two", "cli"));
    more.write(&mut lines);
    journal.append(lines, 1);
    drop(journal);
    assert_eq!(read(&path).unwrap(), ([&both[..], &[more]].concat(), None));
    assert!(!beside(&path, ".new").exists());
}

#[test]
fn the_source_whose_columns_count_is_the_same_when_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups.journal");
    let columns = |value: &str| -> Columns { vec![("site".into(), value.into())] };
    for order in [["cli", "radius"], ["radius", "cli"]] {
        let (mut overlay, mut labels) = (Overlay::default(), Labels::default());
        let label = labels.number("one", Vec::new());
        // The order of addresses is not that of columns.
        for (prefix, source) in [("10.0.0.1/32", "cli"), ("10.0.0.2/32", "radius")] {
            let source = overlay.source(&source.into()).unwrap();
            overlay.set(prefix.parse().unwrap(), source, label);
        }
        for name in order {
            let source = overlay.source(&name.into()).unwrap();
            overlay.set_columns(label, source, &columns(name));
        }
        drop(Journal::start(path.clone(), None, &overlay, &labels).unwrap());
        let (requests, damage) = read(&path).unwrap();
        let given = |name: &str| Request::Columns {
            label: "one".into(),
            columns: columns(name),
            source: name.into(),
        };
        let both = [add("10.0.0.1", "one", "cli"), add("10.0.0.2", "one", "radius")];
        assert_eq!((requests, damage), ([&both[..], &order.map(given)].concat(), None));
    }
}

#[test]
fn what_comes_while_the_file_is_written_again_is_in_both() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("groups.journal");
    let mut lines = text();
    fs::write(&path, &lines).unwrap();
    let before = File::open(&path).unwrap();
    let is_behind = Arc::new(AtomicBool::new(false));
    let mut file = JournalFile::new(path.clone(), is_behind);
    let (tasks, inbox) = sync_channel(2);
    let (more, mut line) = (add("10.0.0.2", "three", "cli"), Vec::new());
    more.write(&mut line);
    tasks.send(Task::Append(line.clone())).unwrap();
    file.rewrite(&Default::default(), &inbox).unwrap();
    // A kill before the new file has its name would have left this one.
    lines.extend(b"4 ");
    lines.extend(&line);
    assert_eq!(io::read_to_string(before).unwrap().as_bytes(), lines);
    assert_eq!(read(&path).unwrap(), (vec![more], None));
}
