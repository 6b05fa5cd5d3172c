//! Foreign captures, in the folder that `PPING_CAPTURES` names.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use super::samples::{Sample, agree, expected, measured};

/// The page with a line for each capture: the number of its samples, and why it is not higher.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/lab/captures.md");

/// The heading over the table.
const HEADING: &str = "\n## Captures that the tests read\n";

/// The values of `--decap`.
const READINGS: [&str; 2] = ["", "ipip,gre,vxlan,geneve,gtp-u,erspan,tzsp"];

/// The methods, in the order of the table's columns.
const METHODS: [&str; 7] =
    ["tcp-ts", "tcp-seq", "tcp-handshake", "icmp-echo", "dns", "quic-spin", "quic-handshake"];

/// The number of samples of each method.
type Counts = [usize; METHODS.len()];

fn counts(samples: &[Sample]) -> Counts {
    METHODS.map(|method| samples.iter().filter(|sample| sample.method == method).count())
}

/// Returns the table's numbers for each file, without and with tunnels parsed.
fn table() -> BTreeMap<String, [Counts; 2]> {
    let text = fs::read_to_string(TABLE).unwrap();
    let (_, section) = text.split_once(HEADING).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let mut both = [Counts::default(); 2];
        for (method, cell) in cells[1..].iter().take(METHODS.len()).enumerate() {
            let (without, with) = cell.split_once(" / ").unwrap_or((cell, cell));
            for (counts, number) in both.iter_mut().zip([without, with]) {
                counts[method] = number.parse().unwrap_or_else(|error| panic!("{error}: {row}"));
            }
        }
        (cells[0].trim_end_matches('`').to_owned(), both)
    })
    .collect()
}

/// Returns the captures, if this machine has any.
pub(super) fn captures() -> Vec<PathBuf> {
    let Some(folder) = env::var_os("PPING_CAPTURES").map(PathBuf::from).filter(|folder| folder.is_dir())
    else {
        eprintln!("NOT TESTED: PPING_CAPTURES names no folder, so no captures of others have been read");
        return Vec::new();
    };
    let is_capture = |path: &PathBuf| {
        let name = path.to_string_lossy();
        [".pcap", ".pcapng", ".gz", ".zst"].iter().any(|ending| name.ends_with(ending))
    };
    let mut captures: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_capture).collect();
    captures.sort();
    captures
}

/// The samples that the reference finds in each capture, without and with tunnels parsed.
static EXPECTED: LazyLock<Vec<(PathBuf, [Vec<Sample>; 2])>> = LazyLock::new(|| {
    let read = |capture: PathBuf| {
        let samples = READINGS.map(|decap| expected(&capture, &["--decap", decap]));
        (capture, samples)
    };
    captures().into_iter().map(read).collect()
});

fn name(capture: &Path) -> String {
    capture.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn foreign_captures_contain_what_the_table_says() {
    let table = table();
    for (capture, samples) in EXPECTED.iter() {
        let counts = [0, 1].map(|reading| counts(&samples[reading]));
        assert_eq!(Some(&counts), table.get(&name(capture)), "{}", name(capture));
    }
}

#[test]
fn pping_finds_what_the_reference_finds_in_foreign_captures() {
    let mut differences = Vec::new();
    for (capture, samples) in EXPECTED.iter() {
        for (decap, expected) in READINGS.iter().zip(samples) {
            if let Err(difference) =
                measured(capture, &["--decap", decap]).and_then(|found| agree(&found, expected))
            {
                differences.push(format!("{} with --decap '{decap}': {difference}", name(capture)));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Two more choices: sequence numbers for flows with timestamps, and both methods side by side.
#[test]
fn pping_finds_what_the_reference_finds_by_every_method() {
    let mut differences = Vec::new();
    let mut samples = 0;
    for capture in captures() {
        for choice in ["seq", "both"] {
            let arguments = ["--decap", READINGS[1], "--tcp-method", choice];
            let expected = expected(&capture, &arguments);
            samples += expected.iter().filter(|sample| sample.method == "tcp-seq").count();
            if let Err(difference) = measured(&capture, &arguments).and_then(|found| agree(&found, &expected))
            {
                differences.push(format!("{} with --tcp-method {choice}: {difference}", name(&capture)));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(captures().is_empty() || samples > 10_000, "{samples} samples are too few to tell");
}

/// The samples of a flow direction by timestamps and by sequence numbers, in ns.
type Pair = [Vec<u64>; 2];

fn median(rtts: &mut [u64]) -> u64 {
    rtts.sort_unstable();
    rtts[rtts.len() / 2]
}

/// docs/lab/accuracy.md promises this.
#[test]
fn timestamps_and_sequence_numbers_agree_within_a_tick() {
    let mut directions = 0;
    for capture in captures() {
        let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
        for sample in measured(&capture, &["--tcp-method", "both"]).unwrap() {
            if let Some(method) = METHODS[..2].iter().position(|&method| method == sample.method) {
                pairs.entry(sample.direction()).or_default()[method].push(sample.rtt());
            }
        }
        for (direction, [mut by_timestamps, mut by_numbers]) in pairs {
            if by_timestamps.len() < 20 || by_numbers.len() < 20 {
                continue;
            }
            let apart = median(&mut by_timestamps).abs_diff(median(&mut by_numbers));
            assert!(apart <= 1_000_000, "{}: {direction}: medians are {apart} ns apart", name(&capture));
            directions += 1;
        }
    }
    assert!(captures().is_empty() || directions >= 6, "{directions} directions are too few to tell");
}
