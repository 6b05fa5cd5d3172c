//! Segments sent again and copied, ports that are reused, and timestamps that cannot be used: replay finds what the reference
//! finds.

use std::collections::BTreeMap;

use super::{
    generate::again,
    program::Temporary,
    samples::{agree, expected, measured},
};

/// The options to read each capture with. The first one is empty.
const READINGS: [[&str; 2]; 5] = [
    ["--decap", ""],
    ["--tcp-method", "ts"],
    ["--tcp-method", "seq"],
    ["--tcp-method", "both"],
    ["--methods", "tcp-ts,tcp-seq"],
];

#[test]
fn repeats_and_bad_timestamps_match_the_reference() {
    let mut counts = BTreeMap::new();
    for capture in again::captures() {
        let file = Temporary::new(&capture.name, &capture.bytes);
        for reading in READINGS {
            let expected = expected(&file.path, &reading);
            let found = measured(&file.path, &reading).unwrap();
            assert_eq!(agree(&found, &expected), Ok(()), "{} with {reading:?}", capture.name);
            for sample in found {
                *counts.entry((capture.samples.clone(), sample.method)).or_insert(0) += 1;
            }
        }
    }
    for (capture, method, least) in [
        ("sent-again", "tcp-ts", 10),
        ("copies", "tcp-ts", 30),
        ("copies", "tcp-handshake", 30),
        ("ports-reused", "tcp-ts", 5),
        ("unusable-timestamps", "tcp-ts", 100),
        ("unusable-timestamps", "tcp-seq", 200),
    ] {
        let found = counts.get(&(capture.to_owned(), method.to_owned())).copied().unwrap_or(0);
        assert!(found >= least, "{found} samples of {method} in {capture} are too few to tell");
    }
}
