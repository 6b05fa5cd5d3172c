//! Captures of others, which `PPING_CAPTURES` names the folder of.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use super::samples::{Sample, agree, expected, measured};

/// A table with a line for each capture: how many samples it holds, and why not more.
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/captures.md");

/// What `--decap` is given.
const READINGS: [&str; 2] = ["", "ipip,gre,vxlan,geneve,gtp-u"];

/// How many samples there are of each method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    tcp_ts: usize,
    icmp_echo: usize,
}

impl Counts {
    fn of(samples: &[Sample]) -> Self {
        let count = |method| samples.iter().filter(|sample| sample.method == method).count();
        Self { tcp_ts: count("tcp-ts"), icmp_echo: count("icmp-echo") }
    }
}

/// What the table says of each file: without and with a look into tunnels.
fn table() -> BTreeMap<String, [Counts; 2]> {
    let text = fs::read_to_string(TABLE).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let number = |cell: usize| cells[cell].parse().unwrap_or_else(|error| panic!("{error}: {row}"));
        let counts = |cell| Counts { tcp_ts: number(cell), icmp_echo: number(cell + 1) };
        (cells[0].trim_end_matches('`').to_owned(), [counts(1), counts(3)])
    })
    .collect()
}

/// The captures, or nothing where there are none on this machine.
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

/// What the witness expects of each capture, without and with a look into tunnels.
static EXPECTED: LazyLock<Vec<(PathBuf, [Vec<Sample>; 2])>> = LazyLock::new(|| {
    let read = |capture: PathBuf| {
        let samples = READINGS.map(|decap| expected(&capture, decap));
        (capture, samples)
    };
    captures().into_iter().map(read).collect()
});

fn name(capture: &Path) -> String {
    capture.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn captures_of_others_hold_what_the_table_says() {
    let table = table();
    for (capture, samples) in EXPECTED.iter() {
        let counts = [0, 1].map(|reading| Counts::of(&samples[reading]));
        assert_eq!(Some(&counts), table.get(&name(capture)), "{}", name(capture));
    }
}

#[test]
fn pping_finds_what_the_witness_finds_in_captures_of_others() {
    let mut differences = Vec::new();
    for (capture, samples) in EXPECTED.iter() {
        for (decap, expected) in READINGS.iter().zip(samples) {
            if let Err(difference) = measured(capture, decap).and_then(|found| agree(&found, expected)) {
                differences.push(format!("{} with --decap '{decap}': {difference}", name(capture)));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
