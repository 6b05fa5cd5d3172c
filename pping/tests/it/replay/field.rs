//! The captures of what others reported, in the folder `field` of `PPING_CAPTURES`: each gives what the column "right" of its
//! INDEX.tsv says.

use std::{collections::BTreeMap, env, fs, path::PathBuf, process::Command};

use super::samples::{Sample, agree, expected, parse};

/// What pping makes of a capture.
struct Found {
    samples: Vec<Sample>,
    /// All that it prints for humans.
    summary: String,
}

impl Found {
    /// The RTTs by a method, in ns, in the order in which they were measured.
    fn rtts(&self, method: &str) -> Vec<u64> {
        self.samples.iter().filter(|sample| sample.method == method).map(Sample::rtt).collect()
    }

    /// The RTTs by a method of what this host answered.
    fn rtts_from(&self, method: &str, host: &str) -> Vec<u64> {
        let of_host = |sample: &&Sample| sample.method == method && sample.source() == host;
        self.samples.iter().filter(of_host).map(Sample::rtt).collect()
    }

    /// Asserts that what pping prints for humans contains `part`.
    #[track_caller]
    fn assert_says(&self, part: &str) {
        assert!(self.summary.contains(part), "no `{part}` in: {}", self.summary);
    }

    /// Asserts that there are exactly this many samples by a method, each within 2 % of `us`.
    #[track_caller]
    fn assert_all(&self, method: &str, number: usize, us: u64) {
        let rtts = self.rtts(method);
        assert_eq!(rtts.len(), number, "{method}");
        assert_about(&rtts, us);
    }
}

#[track_caller]
fn assert_about(rtts: &[u64], us: u64) {
    let ns = us * 1000;
    for rtt in rtts {
        assert!(rtt.abs_diff(ns) <= ns / 50, "{rtt} ns instead of {us} us");
    }
}

/// A capture, and a function that panics if the result is not right.
type Right = (&'static str, fn(&Found));

const RIGHT: [Right; 15] = [
    ("icmp-outage-slots.pcap", |found| {
        assert_eq!(found.rtts("icmp-echo").len(), 190);
        found.assert_says("not answered: 10 of 200 echo requests");
    }),
    ("icmp-half-loss.pcap", |found| {
        assert_eq!(found.rtts("icmp-echo").len(), 151);
        found.assert_says("not answered: 145 of 300 echo requests (4 more ");
    }),
    ("mtr-12-hops.pcap", |found| {
        assert_eq!(found.rtts("icmp-echo").len(), 60);
        found.assert_says("not answered: 649 of 720 echo requests (11 more ");
        found.assert_says("(unsupported): what no method measures, such as ICMP other than pings, and UDP");
    }),
    ("ts-then-none.pcap", |found| {
        assert_eq!(found.rtts("tcp-handshake").len(), 2);
        assert!(found.rtts("tcp-seq").len() >= 58, "{}", found.rtts("tcp-seq").len());
    }),
    ("ts-all-zero.pcap", |found| {
        for host in ["10.1.0.1", "10.2.0.1"] {
            assert!(found.rtts_from("tcp-seq", host).len() >= 20, "{host}");
        }
        found.assert_says("switched to tcp-seq: 1 of 1 TCP flows, whose timestamps stood still");
    }),
    ("ts-fast-retransmit-same-tick.pcap", |found| {
        assert!(found.rtts("tcp-ts").iter().all(|&rtt| rtt <= 1_500_000), "{:?}", found.rtts("tcp-ts"));
    }),
    ("syn-unanswered-then-reuse-lower-ts.pcap", |found| {
        for host in ["10.1.0.1", "10.2.0.1"] {
            assert_eq!(found.rtts_from("tcp-ts", host).len(), 30, "{host}");
        }
    }),
    ("syn-copies-late.pcap", |found| {
        // The index counts the legs of the handshake with the rest.
        let rtts = [found.rtts("tcp-ts"), found.rtts("tcp-handshake")].concat();
        let within = |from, to| rtts.iter().filter(|&&rtt| rtt >= from && rtt < to).count();
        assert_eq!((within(2_900_000, 3_100_000), within(290_000, 310_000)), (21, 20), "{rtts:?}");
        assert_eq!((within(310_000, 330_000), rtts.len()), (1, 42), "{rtts:?}");
        // The other leg is to the client.
        assert_about(&found.rtts_from("tcp-handshake", "10.2.0.1"), 3_000);
        assert!(found.rtts("tcp-handshake").iter().all(|&rtt| rtt >= 290_000), "{:?}", found.samples);
    }),
    ("quic-spin-plain-pingpong.pcap", |found| found.assert_all("quic-spin", 492, 120_000)),
    ("quic-spin-greased-pingpong.pcap", |found| {
        found.assert_all("quic-spin", 492, 120_000);
        assert!(!found.summary.contains("unsupported"), "{}", found.summary);
    }),
    // That both directions can be joined is for the issue on taps.
    ("tap-two-interfaces-tcp.pcapng", |found| {
        assert!(found.samples.is_empty(), "{:?}", found.samples);
        let lines: Vec<&str> = found.summary.lines().collect();
        assert!(lines[1].starts_with("split over two interfaces: 1 of 1 flows "), "{lines:?}");
        assert!(lines[2..].iter().all(|line| line.contains(": follows from that")), "{lines:?}");
    }),
    // Copies within a millisecond change nothing.
    ("span-doubled.pcap", |found| {
        found.assert_all("icmp-echo", 20, 10_000);
        found.assert_all("dns", 20, 10_000);
        found.assert_says("pings and DNS give samples only if copies come within 1 ms");
        found.assert_says("--mirror leaves them out");
    }),
    ("dns-id-reused.pcap", |found| found.assert_all("dns", 10, 10_000)),
    ("dns-lost-then-retry.pcap", |found| {
        assert!(found.rtts("dns").iter().all(|&rtt| rtt < 100_000_000), "{:?}", found.rtts("dns"));
    }),
    ("ts-usec-wrap.pcap", |found| assert_eq!(found.rtts("tcp-ts").len(), 60)),
];

/// Returns the captures that the index names, if this machine has the folder.
fn indexed() -> BTreeMap<String, PathBuf> {
    let folder = env::var_os("PPING_CAPTURES").map(|folder| PathBuf::from(folder).join("field"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        eprintln!(
            "NOT TESTED: PPING_CAPTURES names no folder with a folder `field`, so its captures were not read"
        );
        return BTreeMap::new();
    };
    let index = fs::read_to_string(folder.join("INDEX.tsv")).unwrap();
    let names = index.lines().skip(1).filter_map(|line| line.split('\t').next());
    names.filter(|name| !name.is_empty()).map(|name| (name.to_owned(), folder.join(name))).collect()
}

/// Runs pping on a capture.
fn read(capture: &PathBuf) -> Found {
    let mut pping = Command::new(env!("CARGO_BIN_EXE_pping"));
    let output = pping.args(["--format", "jsonl", "--rate-limit", "0", "-r"]).arg(capture).output().unwrap();
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{}: {summary}", capture.display());
    Found { samples: parse(&String::from_utf8(output.stdout).unwrap()), summary }
}

#[test]
fn field_captures_give_what_their_index_says() {
    let right: BTreeMap<&str, fn(&Found)> = RIGHT.into();
    for (name, capture) in indexed() {
        let Some(assert_right) = right.get(name.as_str()) else {
            panic!("{name} is in the index of field captures, but has no expectation here");
        };
        eprintln!("{name}");
        assert_right(&read(&capture));
    }
}

#[test]
fn field_captures_give_what_the_reference_finds() {
    let mut differences = Vec::new();
    for (name, capture) in indexed() {
        if let Err(difference) = agree(&read(&capture).samples, &expected(&capture, &[])) {
            differences.push(format!("{name}: {difference}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
