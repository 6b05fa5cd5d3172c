//! The output formats with a capture, and the files that they go to.

use std::{fs, process::Command};

use serde_json::Value;

use super::{
    made::{MILLISECOND, START, connection, pcap, pcap_header},
    program::{Reader, Temporary, assert_fails, pping, read, stderr, wait_until},
};

const RTT: u64 = 20 * MILLISECOND;

fn array(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn json_is_an_array_of_the_lines_of_jsonl() {
    let capture = pcap(&connection(40_000, START, 5, RTT));
    let json = String::from_utf8(read(&capture, "--format json").stdout).unwrap();
    let lines = String::from_utf8(read(&capture, "--format jsonl").stdout).unwrap();
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(array(&json), records);
    assert!(records.len() > 6);
}

#[test]
fn json_is_an_array_whatever_happens() {
    let output = |capture: &[u8]| String::from_utf8(read(capture, "--format json").stdout).unwrap();
    let capture = pcap(&connection(40_000, START, 5, RTT));
    assert_eq!(array(&output(&pcap_header(1))), [] as [Value; 0]);
    assert_eq!(array(&output(b"no capture")), [] as [Value; 0]);
    assert!(!array(&output(&capture[..capture.len() - 1])).is_empty());

    let mut reader = Reader::start("--format json");
    reader.write(&capture);
    wait_until("records", || reader.written().contains("rtt"));
    reader.signal("-INT");
    assert_eq!(reader.wait().0, Some(0));
    assert!(!array(&reader.written()).is_empty());
}

#[test]
fn sighup_ends_one_array_and_begins_another() {
    let file = Temporary::new("unused", b"");
    let (current, rotated) = (file.path.with_file_name("now.json"), file.path.with_file_name("then.json"));
    let mut reader = Reader::start(&format!("--format json -w {}", current.display()));
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let capture = pcap(&connection(40_000, START, 5, RTT));
    reader.write(&capture);
    wait_until("records", || read(&current).contains("rtt"));
    // The file has not been moved, so SIGHUP does not reopen it: nothing can be appended to a JSON array.
    reader.signal("-HUP");
    fs::rename(&current, &rotated).unwrap();
    reader.signal("-HUP");
    wait_until("a file of the old name", || current.exists());
    reader.write(&pcap(&connection(40_001, START, 3, RTT))[24..]);
    assert_eq!(reader.finish().0, Some(0));
    let samples = |path| array(&read(path)).iter().filter(|record| record.get("rtt").is_some()).count();
    assert_eq!((samples(&rotated), samples(&current)), (6, 4));
}

#[test]
fn an_array_is_not_appended_to_a_file() {
    let records = Temporary::new("records.json", b"[]\n");
    let capture = pcap(&connection(40_000, START, 5, RTT));
    let output = read(&capture, &format!("--format json -w {}", records.path.display()));
    assert_fails(&output, 2, &["--write", "records.json", "not empty"]);
    assert_eq!(fs::read(&records.path).unwrap(), b"[]\n");
    // JSON lines are appended.
    let output = read(&capture, &format!("--format jsonl -w {}", records.path.display()));
    assert!(output.status.success() && fs::read_to_string(&records.path).unwrap().lines().count() > 6);
}

#[test]
fn ppviz_is_a_line_per_sample_in_seconds() {
    let output = read(&pcap(&connection(40_000, START, 3, RTT)), "--format ppviz");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "1700000007.143456789 0.020000000 0.020000000 198.51.100.2:443+192.0.2.1:40000\n\
         1700000008.123456789 0.980000000 0.980000000 192.0.2.1:40000+198.51.100.2:443\n\
         1700000008.143456789 0.020000000 0.020000000 198.51.100.2:443+192.0.2.1:40000\n\
         1700000009.143456789 0.020000000 0.020000000 198.51.100.2:443+192.0.2.1:40000\n"
    );
}

#[test]
fn a_slow_reader_gets_the_whole_array() {
    let mut packets: Vec<_> =
        (0..400).flat_map(|port| connection(port, START + u64::from(port), 3, RTT)).collect();
    packets.sort_by_key(|packet| packet.at);
    let file = Temporary::new("capture", &pcap(&packets));
    let mut shell = Command::new("bash");
    // The output exceeds a pipe's buffer, and the reader pauses for longer than a live run would wait.
    shell.args(["-c", "\"$@\" | { sleep 2; cat; }", "bash"]);
    let command = pping(&format!("-r {} --format json", file.path.display()));
    let output = shell.arg(command.get_program()).args(command.get_args()).output().unwrap();
    let records = array(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(records.iter().filter(|record| record.get("rtt").is_some()).count(), 400 * 4);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let mut packets = Vec::new();
    for port in 0..3000 {
        packets.extend(connection(port, START + u64::from(port) * MILLISECOND, 3, RTT));
    }
    packets.sort_by_key(|packet| packet.at);
    let file = Temporary::new("capture", &pcap(&packets));
    let command = pping(&format!("-r {} --rate-limit 0", file.path.display()));
    let mut shell = Command::new("bash");
    shell.args(["-c", "set -o pipefail; \"$@\" | head -n 1", "bash"]);
    let output = shell.arg(command.get_program()).args(command.get_args()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert!(!said.contains("roken pipe") && !said.contains("pping:"), "{said}");
}

#[test]
fn times_are_in_the_zone_that_tz_names() {
    let capture = Temporary::new("capture", &pcap(&connection(40_000, START, 5, RTT)));
    let of = |zone: &str| {
        let mut command = pping(&format!("-r {} --format standard", capture.path.display()));
        let output = command.env("TZ", zone).output().unwrap();
        let records = String::from_utf8_lossy(&output.stdout);
        (records.split(' ').next().unwrap().to_owned(), stderr(&output))
    };
    for (zone, offset) in [
        ("UTC", "+00:00"),
        ("CET-1", "+01:00"),
        ("Asia/Kolkata", "+05:30"),
        (":Asia/Kolkata", "+05:30"),
        ("/usr/share/zoneinfo/Asia/Kolkata", "+05:30"),
    ] {
        let (time, said) = of(zone);
        assert!(time.ends_with(offset) && !said.contains("WARN"), "TZ={zone}: {time} {said}");
    }
    let (time, said) = of("Europe/Nowhere");
    assert!(time.ends_with("+00:00"), "{time}");
    assert!(
        said.contains("WARN TZ=Europe/Nowhere: this is no time zone") && said.contains("in UTC"),
        "{said}"
    );
}
