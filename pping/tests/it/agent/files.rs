//! `-w FILE` writes all records to the file, and SIGHUP rotates it.

use std::{fs, path::Path};

use pping_lab::{Signal, Topology};

use super::{
    formats::{array, records, samples},
    monitor::{ENDING, endless_ping, interrupt, ok, ping, topology, wait_until, watch},
};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn records_go_to_the_file_and_nowhere_else() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    let pping = watch(topology.router(), Topology::WAN, &format!("-w {} --rate-limit 0", file.display()));
    ping(topology.client(), Topology::SERVER_IPV4, "-c3 -i0.2");
    assert_eq!(interrupt(pping), "");
    assert_eq!(samples(&records(&read(&file))), 3);
}

#[test]
fn write_is_the_long_form_of_w_and_takes_a_format() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.txt");
    let options = format!("--write {} --format standard", file.display());
    let pping = watch(topology.router(), Topology::WAN, &options);
    ping(topology.client(), Topology::SERVER_IPV4, "-c1");
    interrupt(pping);
    assert!(read(&file).contains(" ms ICMP "), "{}", read(&file));
}

#[test]
fn sighup_reopens_the_file_and_no_line_is_lost_or_torn() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let current = directory.path().join("records.jsonl");
    let rotated = |number: u32| directory.path().join(format!("records.jsonl.{number}"));
    let options = format!("-w {} --rate-limit 0", current.display());
    let mut pping = watch(topology.router(), Topology::WAN, &options);
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    for number in 1..=3 {
        wait_until("records in the file", || read(&current).lines().count() >= 20);
        fs::rename(&current, rotated(number)).unwrap();
        ok(pping.signal(Signal::SIGHUP));
        wait_until("a file of the old name", || current.exists());
        let finished = read(&rotated(number));
        wait_until("records in the new file", || !read(&current).is_empty());
        assert_eq!(read(&rotated(number)), finished, "records go on into the old file");
    }
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let all: Vec<_> = (1..=3).map(rotated).chain([current]).flat_map(|path| records(&read(&path))).collect();
    let stderr = ok(pping.stderr());
    assert!(
        stderr.contains(&format!(" {} samples\n", samples(&all))),
        "{} in the files, {stderr}",
        samples(&all)
    );
    let ordered = all.windows(2).all(|pair| pair[0]["timestamp"].as_u64() <= pair[1]["timestamp"].as_u64());
    assert!(ordered, "the files, one after the other, are out of order");
}

#[test]
fn sighup_ends_one_array_and_begins_another() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let [current, rotated] = ["records.json", "records.json.1"].map(|name| directory.path().join(name));
    let options = format!("-w {} --format json --rate-limit 0", current.display());
    let mut pping = watch(topology.router(), Topology::WAN, &options);
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    wait_until("records in the file", || read(&current).lines().count() >= 20);
    fs::rename(&current, &rotated).unwrap();
    ok(pping.signal(Signal::SIGHUP));
    wait_until("records in the new file", || read(&current).lines().count() >= 20);
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let all = [&rotated, &current].map(|file| samples(&array(&read(file))));
    let stderr = ok(pping.stderr());
    assert!(stderr.contains(&format!(" {} samples\n", all[0] + all[1])), "{all:?} in the files, {stderr}");
}
