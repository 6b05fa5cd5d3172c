use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Mutex, PoisonError},
    thread,
};

use tempfile::TempDir;

use super::*;
use crate::groups::{Columns, protocol};

type Listed = Arc<Mutex<BTreeMap<IpNet, (Arc<str>, Option<Columns>)>>>;

/// What answers as pping does, but measures nothing.
struct Pping {
    directory: TempDir,
    listed: Listed,
}

impl Pping {
    fn new() -> Self {
        let (directory, listed) = (tempfile::tempdir().unwrap(), Listed::default());
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let shared = Arc::clone(&listed);
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &shared);
            }
        });
        Self { directory, listed }
    }

    fn feed(&self) -> Feed {
        Feed::new(self.directory.path().join("socket"), "test".into(), false)
    }

    /// The prefixes, labels and columns that it lists.
    fn rows(&self) -> Vec<String> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = |columns: &Option<Columns>| match columns {
            Some(columns) => {
                let columns = columns.iter().map(|(name, value)| format!(" {name}={value}"));
                columns.collect::<Vec<_>>().concat()
            }
            None => " unknown".to_owned(),
        };
        listed
            .iter()
            .map(|(prefix, (label, theirs))| format!("{prefix} {label}{}", columns(theirs)))
            .collect()
    }
}

fn answer(stream: UnixStream, listed: &Listed) {
    let mut replacement = None;
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if line.len() >= MAX_LINE {
            return;
        }
        let mut listed = listed.lock().unwrap();
        let answer = match Request::parse(line.as_bytes()) {
            Err(reason) => Answer::refused(reason),
            Ok(request) => {
                match request {
                    Request::Replace { .. } => replacement = Some(BTreeMap::new()),
                    Request::Add(Addition { prefix, label, columns, .. }) => {
                        let into = replacement.as_mut().unwrap_or(&mut *listed);
                        into.insert(prefix, (label, columns));
                    }
                    Request::Commit => *listed = replacement.take().unwrap(),
                    Request::Remove { prefix, .. } => drop(listed.remove(&prefix)),
                    _ => {}
                }
                Answer::ok()
            }
        };
        let mut bytes = Vec::new();
        protocol::write(&answer, &mut bytes);
        writer.write_all(&bytes).unwrap();
    }
}

fn set(prefix: &str, label: &str, columns: Option<Columns>) -> Change {
    Change::Set(prefix.parse().unwrap(), Name { label: label.into(), columns })
}

#[test]
fn a_refused_name_takes_the_one_before_away() {
    let (pping, mut complaints) = (Pping::new(), Complaints::default());
    let mut feed = pping.feed();
    for (address, label) in [("10.0.0.1", "alice"), ("10.0.0.2", "bob"), ("10.0.0.3", "all")] {
        feed.apply(set(&format!("{address}/32"), label, None), &mut complaints);
    }
    feed.complete();
    feed.flush(&mut complaints).unwrap();
    assert_eq!(pping.rows(), ["10.0.0.1/32 alice unknown", "10.0.0.2/32 bob unknown"]);
    assert_eq!((feed.len(), &*complaints.summary()), (2, ", 1 refused by pping"));
    for label in ["other", "unlisted", &"x".repeat(300), &"x".repeat(MAX_LINE)] {
        feed.apply(set("10.0.0.1/32", "alice", None), &mut complaints);
        feed.flush(&mut complaints).unwrap();
        assert_eq!((pping.rows().len(), feed.len()), (2, 2));
        feed.apply(set("10.0.0.1/32", label, None), &mut complaints);
        feed.flush(&mut complaints).unwrap();
        assert_eq!(pping.rows(), ["10.0.0.2/32 bob unknown"]);
        assert_eq!(feed.len(), 1);
    }
    assert_eq!(complaints.summary(), ", 5 refused by pping");
    // A name that pping takes makes up for it, and an end leaves nothing behind.
    feed.apply(set("10.0.0.3/32", "carol", None), &mut complaints);
    feed.apply(Change::Unset("10.0.0.1/32".parse().unwrap()), &mut complaints);
    feed.flush(&mut complaints).unwrap();
    assert_eq!((pping.rows().len(), feed.len()), (2, 2));
}

#[test]
fn columns_that_a_source_has_no_more_go() {
    let (pping, mut complaints) = (Pping::new(), Complaints::default());
    let mut feed = pping.feed();
    feed.complete();
    for columns in [vec![("parent".into(), "ap".into())], vec![]] {
        feed.apply(set("10.0.0.1/32", "alice", Some(columns.clone())), &mut complaints);
        feed.flush(&mut complaints).unwrap();
        let expected = if columns.is_empty() { "10.0.0.1/32 alice" } else { "10.0.0.1/32 alice parent=ap" };
        assert_eq!(pping.rows(), [expected]);
    }
}
