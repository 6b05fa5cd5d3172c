//! pping survives files that cannot be written to, for a while or for good.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Process, Signal, Topology, on_small_disk};

use super::{
    formats::{records, samples},
    http::{LISTEN, is_ready, scrape},
    monitor::{ENDING, PATIENCE, PPING, endless_ping, ok, topology, wait_until, watch},
};

fn lost(topology: &Topology, kind: &str) -> f64 {
    scrape(topology.router()).sum("pping_events_lost_total", &[("kind", kind)]).unwrap()
}

fn counted(topology: &Topology) -> f64 {
    scrape(topology.router()).sum("pping_samples_total", &[]).unwrap()
}

/// Returns the number of records in a file, whose last line must be complete.
fn count_complete_records(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "torn: {text}");
    records(&text).len()
}

/// Fills the disk while `command` writes to `file`, then frees the space again.
fn assert_survives(file: &Path, ballast: &Path, topology: &Topology, command: Command) {
    fs::write(ballast, vec![0; 1_000_000]).unwrap();
    let mut pping = ok(Process::spawn(command));
    wait_until("pping is ready", || is_ready(topology.router()));
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    wait_until("records are lost", || lost(topology, "output") > 50.0);
    assert!(ok(pping.status()).is_none(), "{}", ok(pping.stderr()));
    let (before, so_far) = (count_complete_records(file), counted(topology));
    assert!(before > 20, "only {before} records were written");
    wait_until("the metrics go on counting", || counted(topology) > so_far + 50.0);
    fs::remove_file(ballast).unwrap();
    let room = Instant::now();
    wait_until("records in the file again", || count_complete_records(file) > before + 50);
    // The second warning says that pping writes again. It comes once the disk has stayed free for a moment.
    while ok(pping.stderr()).matches("WARN").count() < 2 {
        assert!(room.elapsed() < PATIENCE, "no second warning: {}", ok(pping.stderr()));
        thread::sleep(Duration::from_millis(100));
    }
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let said = ok(pping.stderr());
    let warnings: Vec<_> = said.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 2, "{said}");
    assert!(
        warnings[0].contains("No space left on device") && warnings[1].contains("can be written to again")
    );

    // Every sample in the summary is in the file or counted as lost.
    let in_file = samples(&records(&fs::read_to_string(file).unwrap())) as u64;
    let summed = number_before(&said, " samples\n");
    let dropped = lost_lines(&said);
    // A few of the dropped lines may be flow events.
    assert!(
        dropped > 50 && in_file <= summed && in_file + dropped >= summed,
        "{in_file} in the file; {said}"
    );
}

/// The number of lost lines in the summary.
fn lost_lines(said: &str) -> u64 {
    number_before(said, " lines; the reader or the disk was too slow\n")
}

fn number_before(text: &str, word: &str) -> u64 {
    let (before, _) = text.split_once(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_full_disk_stops_neither_metrics_nor_later_records() {
    let topology = topology();
    let tried = on_small_disk(1_024, |disk| {
        let (file, ballast) = (disk.join("records.jsonl"), disk.join("ballast"));
        let arguments = format!("-i {} --rate-limit 0 {LISTEN} -w {}", Topology::WAN, file.display());
        let command = super::monitor::pping(topology.router(), &arguments);
        assert_survives(&file, &ballast, &topology, command);
    });
    ok(tried);
}

#[test]
fn standard_output_redirected_to_a_full_disk_is_survived_too() {
    let topology = topology();
    let tried = on_small_disk(1_024, |disk| {
        let (file, ballast) = (disk.join("records.jsonl"), disk.join("ballast"));
        let line = format!("exec {PPING} -i {} --rate-limit 0 {LISTEN} > {}", Topology::WAN, file.display());
        let mut command = topology.router().command("sh");
        command.args(["-c", &line]);
        assert_survives(&file, &ballast, &topology, command);
    });
    ok(tried);
}

#[test]
fn stuck_hdr_log_blocks_nothing_else() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let (fifo, file) = (directory.path().join("log"), directory.path().join("records"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // A reader that reads nothing, of a FIFO that is full already.
    let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
    fs::write(&fifo, vec![b'\n'; 64 << 10]).unwrap();
    let options = format!(
        "{LISTEN} --aggregate 10ms --rate-limit 0 --hdr-log {} -w {}",
        fifo.display(),
        file.display()
    );
    let mut pping = watch(topology.router(), Topology::WAN, &options);
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    wait_until("lines of the log are lost", || lost(&topology, "hdr_log") > 0.0);
    ok(pping.signal(Signal::SIGHUP));
    let (before, so_far) = (count_complete_records(&file), counted(&topology));
    wait_until("the metrics go on counting", || counted(&topology) > so_far + 50.0);
    wait_until("records go on", || count_complete_records(&file) > before + 20);
    assert!(lost(&topology, "output") < 1.0);
    ok(pping.stop(Signal::SIGTERM, ENDING));
    let said = ok(pping.stderr());
    assert!(said.contains("lines of --hdr-log were lost"), "{said}");
    // Beside those that found the queue full, the lines in it are lost, and the one that is being written.
    assert!(lost_lines(&said) > 256, "{said}");
    drop(reader);
}

#[test]
fn sighup_after_the_directory_is_gone_keeps_the_open_file() {
    let topology = topology();
    let directory = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|name| directory.path().join(name));
    fs::create_dir(&before).unwrap();
    let options = format!("-w {}/records.jsonl --rate-limit 0", before.display());
    let mut pping = watch(topology.router(), Topology::WAN, &options);
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    fs::rename(&before, &after).unwrap();
    let file = after.join("records.jsonl");
    wait_until("records in the file", || !fs::read_to_string(&file).unwrap().is_empty());
    ok(pping.signal(Signal::SIGHUP));
    ok(pping.wait_for_output("still writing to the file that was open", PATIENCE));
    let so_far = count_complete_records(&file);
    wait_until("records in the file", || count_complete_records(&file) > so_far + 20);
    ok(pping.stop(Signal::SIGTERM, ENDING));
}
