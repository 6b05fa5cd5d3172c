//! The captures in `tests/golden`, and their samples.
//!
//! `PPING_BLESS=1 cargo test -p pping --test it golden` rewrites both. The new samples are then the reference's results:
//! read the difference before committing it.

use std::{env, fs, path::PathBuf, sync::Once};

use super::{
    generate::{self, Golden},
    samples::{Sample, agree, expected, measured, parse},
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// The largest size of the folder, in bytes.
const SIZE: u64 = 170_000;

fn path(name: &str) -> PathBuf {
    PathBuf::from(FOLDER).join(name)
}

/// Rewrites the folder on request, before the first test reads it.
fn bless() {
    static BLESSING: Once = Once::new();
    if env::var_os("PPING_BLESS").is_none() {
        return;
    }
    BLESSING.call_once(|| {
        for golden in generate::all() {
            fs::write(path(&golden.name), &golden.bytes).unwrap();
            for (decap, samples) in readings(&golden) {
                let lines = expected(&path(&golden.name), &["--decap", decap])
                    .iter()
                    .map(Sample::line)
                    .collect::<String>();
                fs::write(samples, lines).unwrap();
            }
        }
    });
}

/// Returns each way to read a capture: the value of `--decap`, and the file with the expected samples.
fn readings(golden: &Golden) -> Vec<(&str, PathBuf)> {
    let mut readings = vec![("", path(&format!("{}.samples.jsonl", golden.samples)))];
    if let Some(decap) = golden.decap {
        readings.push((decap, path(&format!("{}.decap.samples.jsonl", golden.samples))));
    }
    readings
}

#[test]
fn the_captures_are_those_of_the_generator() {
    bless();
    let mut names = Vec::new();
    for golden in generate::all() {
        let committed = fs::read(path(&golden.name)).unwrap_or_default();
        assert!(committed == golden.bytes, "{} is not what the generator makes", golden.name);
        names.extend(readings(&golden).into_iter().map(|(_, samples)| samples));
        names.push(path(&golden.name));
    }
    let mut size = 0;
    for entry in fs::read_dir(FOLDER).unwrap() {
        let entry = entry.unwrap();
        assert!(names.contains(&entry.path()), "nothing makes {:?}", entry.path());
        size += entry.metadata().unwrap().len();
    }
    assert!(size < SIZE, "the golden captures take {size} bytes");
}

#[test]
fn the_reference_finds_the_golden_samples() {
    bless();
    for golden in generate::all() {
        for (decap, samples) in readings(&golden) {
            let found = expected(&path(&golden.name), &["--decap", decap]);
            let committed = parse(&fs::read_to_string(samples).unwrap());
            assert_eq!(agree(&found, &committed), Ok(()), "{} with --decap '{decap}'", golden.name);
        }
    }
}

#[test]
fn pping_finds_the_golden_samples() {
    bless();
    let mut differences = Vec::new();
    for golden in generate::all() {
        for (decap, samples) in readings(&golden) {
            let committed = parse(&fs::read_to_string(samples).unwrap());
            if let Err(difference) =
                measured(&path(&golden.name), &["--decap", decap]).and_then(|found| agree(&found, &committed))
            {
                differences.push(format!("{} with --decap '{decap}': {difference}", golden.name));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
