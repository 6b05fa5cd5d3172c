//! Invalid input ends pping with an exit code and a message that names the error and a fix.

use std::fs::{self, File};

use super::{
    made::{START, connection, pcap},
    program::{Temporary, assert_fails, pping, read},
};

#[test]
fn options_useless_with_a_capture_are_refused_with_a_reason() {
    for (option, reason) in [
        ("--ingress tc", "attach point"),
        ("--include-local", "all its packets are timed"),
        ("--listen 127.0.0.1:9464", "summary"),
        ("--bpf-log", "no kernel program"),
        ("--prometheus-groups 5", "no metrics"),
        ("--baseline 5m", "no metrics"),
        ("--history-memory 5", "pping top -r"),
        ("--web-config web.yml", "no metrics"),
        ("--pin /sys/fs/bpf/pping", "no kernel program"),
        ("--wait", "does not wait"),
    ] {
        let output = pping(&format!("-r /dev/null {option}")).output().unwrap();
        let name = option.split(' ').next().unwrap();
        assert_fails(&output, 2, &[name, "--read", reason]);
    }
}

#[test]
fn nothing_that_is_read_is_written_over() {
    let bytes = pcap(&connection(40_000, START, 2, 1));
    let capture = Temporary::new("capture", &bytes);
    let config = Temporary::new("pping.toml", b"");
    let (read, path) = (format!("-r {}", capture.path.display()), capture.path.display());
    let appended = || File::options().append(true).open(&capture.path).unwrap();
    let from_stdin = || File::open(&capture.path).unwrap();
    let would = "which this would overwrite";
    for (mut command, parts) in [
        (pping(&format!("{read} -w {path}")), ["--write", "--read"]),
        (pping(&read), ["--write /dev/stdout", "--read"]),
        (pping(&format!("-r - -w {path}")), ["--write", "--read"]),
        (pping(&format!("{read} --config {0} -w {0}", config.path.display())), ["--write", "--config"]),
    ] {
        let output = command.stdin(from_stdin()).stdout(appended()).output().unwrap();
        assert_fails(&output, 2, &[parts[0], parts[1], would]);
        assert_eq!(fs::read(&capture.path).unwrap(), bytes, "{command:?}");
    }
    let output = pping(&format!("{read} --format none")).stdout(appended()).output().unwrap();
    assert!(output.status.success(), "nothing is written: {output:?}");
}

#[test]
fn capture_ignores_configured_interfaces() {
    let text = "interface = [\"eth0\"]\nwait = true\nlisten = \"127.0.0.1:1\"\nformat = \"ppviz\"\n";
    let file = Temporary::new("pping.toml", text.as_bytes());
    let capture = Temporary::new("capture", &pcap(&connection(40_000, START, 2, 1)));
    let mut command = pping(&format!("-r {} --config {}", capture.path.display(), file.path.display()));
    command.env("PPING_INGRESS", "xdp").env("PPING_INTERFACE", "eth1");
    let ppviz = command.output().unwrap();
    assert!(ppviz.status.success(), "{ppviz:?}");
    assert!(!ppviz.stdout.is_empty() && !ppviz.stdout.starts_with(b"{"), "{ppviz:?}");
    let jsonl = command.env("PPING_FORMAT", "jsonl").output().unwrap();
    assert!(jsonl.stdout.starts_with(b"{"), "{jsonl:?}");
}

#[test]
fn a_groups_file_is_refused_with_line_and_column() {
    for (name, text, position, parts) in [
        ("groups.csv", "192.0.2.0/24,a\n192.0.2.1/24,b\n", ":2:1: ", &["write 192.0.2.0/24"][..]),
        ("groups.csv", "prefix,group\n192.0.2.0/24,other\n", ":2:14: ", &["`other`", "another label"]),
        (
            "groups.toml",
            "[[group]]\nlabel = \"a\"\nprefixes = [\"nonsense\"]\n",
            ":3:13: ",
            &["`nonsense`", "like"],
        ),
    ] {
        let file = Temporary::new(name, text.as_bytes());
        let path = file.path.display();
        let output = pping(&format!("-r /dev/null --groups {path}")).output().unwrap();
        assert_fails(&output, 2, &[&format!("--groups {path}{position}")]);
        assert_fails(&output, 2, parts);
    }
    let output = pping("-r /dev/null --groups /nowhere/groups.csv").output().unwrap();
    assert_fails(&output, 2, &["--groups /nowhere/groups.csv", "No such file"]);
}

#[test]
fn invalid_groups_are_refused() {
    for (arguments, parts) in [
        ("--aggregate 10", &["--aggregate", "10s"][..]),
        ("--aggregate 0", &["--aggregate", "10s"]),
        ("--aggregate 9ms", &["--aggregate", "9ms", "10ms or more"]),
        ("--aggregate 1s --format ppviz", &["--format ppviz", "--with-samples"]),
        ("--group-by /33,/48", &["--group-by", "/24,/48"]),
        ("--group-by both", &["--group-by", "how long"]),
        ("--group-by customers", &["--group-by", "dscp"]),
        ("--max-groups 0", &["--max-groups", "from 1 to"]),
        ("--exclude 192.0.2.0/33", &["--exclude", "192.0.2.0/24"]),
    ] {
        assert_fails(&pping(&format!("-r /dev/null {arguments}")).output().unwrap(), 2, parts);
    }
}

#[test]
fn either_an_interface_or_a_capture_is_needed_and_not_both() {
    assert_fails(&pping("").output().unwrap(), 2, &["--interface"]);
    assert_fails(&pping("-i lo -r trace.pcap").output().unwrap(), 2, &["--interface", "--read"]);
    assert_fails(&pping("-r").output().unwrap(), 2, &["--read"]);
}

#[test]
fn a_capture_that_cannot_be_opened_is_named() {
    let output = |arguments| pping(arguments).output().unwrap();
    assert_fails(&output("-r /nowhere/trace.pcap"), 2, &["--read /nowhere/trace.pcap", "No such file"]);
    assert_fails(&output("-r /"), 2, &["--read /:", "directory"]);
    // In another pping, `-r` is the rate limit.
    assert_fails(&output("-r 250"), 2, &["--read 250", "--rate-limit 250ms"]);
}

#[test]
fn a_file_that_is_not_a_capture_is_rejected_as_such() {
    assert_fails(&read(b"", ""), 1, &["--read", "empty"]);
    assert_fails(&read(b"{}", ""), 1, &["not a capture file", "7b 7d"]);
    assert_fails(&read(b"#!/bin/sh\n", ""), 1, &["not a capture file", "23 21 2f 62"]);
    let capture = pcap(&connection(40_000, START, 2, 1));
    assert_fails(&read(&capture[..20], ""), 1, &["truncated"]);
}

#[test]
fn an_unsupported_compression_is_named() {
    for (start, name) in
        [(&b"\xfd7zXZ\0\0\x04"[..], "xz"), (b"BZh91AY&SY", "bzip2"), (b"\x04\x22\x4d\x18\x64\x40", "lz4")]
    {
        assert_fails(&read(start, ""), 1, &[&format!("{name} -dc FILE | pping -r -")]);
    }
}

#[test]
fn output_is_not_opened_when_the_capture_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.json");
    let output = pping(&format!("-r /nowhere/trace.pcap -w {}", file.display())).output().unwrap();
    assert_fails(&output, 2, &["/nowhere/trace.pcap"]);
    assert!(!file.exists());
}
