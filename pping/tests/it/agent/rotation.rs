//! `deploy/logrotate/pping`, run by the real logrotate, loses no line.

use std::{fs, path::Path};

use pping_lab::{Signal, Topology};

use super::{
    formats::{array, records, samples},
    monitor::{ENDING, endless_ping, ok, repository, tool, topology, wait_until, watch},
    monitoring::stack::replace,
};

/// The configuration of logrotate for files in `directory` and a pping that is not a service.
fn snippet(directory: &Path, pid: u32) -> String {
    let snippet = fs::read_to_string(repository("deploy/logrotate/pping")).unwrap();
    let snippet = replace(&snippet, "/var/log/pping", directory.to_str().unwrap());
    let snippet = replace(&snippet, "su pping pping", "su root root");
    let reload = snippet.lines().map(str::trim).find(|line| line.starts_with("systemctl ")).unwrap();
    replace(&snippet, reload, &format!("kill -HUP {pid}"))
}

/// Rotates three times under a running pping. Returns the text of each file, the oldest first, and pping's last output.
fn rotate(format: &str, extension: &str) -> (Vec<String>, String) {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    fs::create_dir(&log).unwrap();
    let current = log.join(format!("records.{extension}"));
    let options = format!("-w {} --format {format} --rate-limit 0", current.display());
    let mut pping = watch(topology.router(), Topology::WAN, &options);
    let [configuration, state] = ["logrotate.conf", "state"].map(|name| directory.path().join(name));
    fs::write(&configuration, snippet(&log, pping.id())).unwrap();

    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    for _ in 0..3 {
        wait_until("records in the file", || read(&current).lines().count() >= 20);
        let arguments = ["--force", "--state", state.to_str().unwrap(), configuration.to_str().unwrap()];
        let (rotated, said) = tool("logrotate", &arguments);
        assert!(rotated && said.is_empty(), "logrotate: {said}");
        wait_until("a file of the old name", || current.exists());
    }
    ok(pping.stop(Signal::SIGTERM, ENDING));

    let rotated = |number: u32| log.join(format!("records.{extension}.{number}"));
    // logrotate compresses a file one rotation later, when pping has long closed it.
    let mut texts: Vec<_> = [3, 2]
        .map(|number| {
            let (unpacked, text) = tool("zcat", &[&format!("{}.gz", rotated(number).display())]);
            assert!(unpacked, "{text}");
            text
        })
        .into();
    texts.extend([rotated(1), current].map(|path| read(&path)));
    (texts, ok(pping.stderr()))
}

#[test]
fn logrotate_loses_and_tears_no_line() {
    let (texts, said) = rotate("jsonl", "jsonl");
    assert!(texts.iter().all(|text| text.ends_with('\n')));
    let all: Vec<_> = texts.iter().flat_map(|text| records(text)).collect();
    assert!(
        said.contains(&format!(" {} samples\n", samples(&all))),
        "{} in the files; {said}",
        samples(&all)
    );
    assert!(said.contains(", 0 lines\n"), "{said}");
}

#[test]
fn logrotate_makes_whole_arrays() {
    let (texts, said) = rotate("json", "json");
    let all: usize = texts.iter().map(|text| samples(&array(text))).sum();
    assert!(said.contains(&format!(" {all} samples\n")), "{all} in the files; {said}");
}
