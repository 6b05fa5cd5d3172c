//! Invalid input ends pping with exit code 2 and a message that names the error and a fix.

use std::{fs, net::TcpListener, process::Output};

use super::{
    host::Host,
    monitor::{PPING, ok, pping},
};

/// Returns the error of pping with these arguments, which must be refused.
#[track_caller]
fn refusal(host: &Host, arguments: &str) -> String {
    let output = pping(&host.namespace, arguments).output().unwrap();
    refusal_of(&output, arguments)
}

#[track_caller]
fn refusal_of(output: &Output, arguments: &str) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "pping {arguments}: {message}");
    assert!(output.stdout.is_empty(), "pping {arguments}: errors belong on standard error");
    assert!(!message.contains("panicked"), "pping {arguments}: {message}");
    message
}

#[track_caller]
fn assert_contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
}

#[test]
fn an_unknown_interface_gets_the_nearest_names() {
    let host = Host::new();
    assert_contains(&refusal(&host, "-i eht0"), &["--interface eht0", "did you mean eth0?"]);
    assert_contains(&refusal(&host, "-i wlp0s20f3"), &["--interface wlp0s20f3", "eth0", "lo"]);
    assert_contains(&refusal(&host, "-i eth0 -i eth7"), &["--interface eth7", "eth0"]);
}

#[test]
fn a_missing_interface_names_the_option() {
    let host = Host::new();
    assert_contains(&refusal(&host, ""), &["--interface"]);
    assert_contains(&refusal(&host, "-i eth0 -r trace.pcap"), &["--interface", "--read"]);
    assert_contains(&refusal(&host, "-i"), &["--interface"]);
}

#[test]
fn a_wrong_value_names_its_option_and_what_would_be_right() {
    let host = Host::new();
    for (arguments, parts) in [
        ("--rate-limit 100", &["--rate-limit", "100", "100ms"][..]),
        ("--rate-limit soon", &["--rate-limit", "soon", "100ms"]),
        ("--rate-limit=-5ms", &["--rate-limit", "-5ms", "100ms"]),
        ("--rate-limit 99999999999999years", &["--rate-limit", "100ms"]),
        ("--rtt-rate many", &["--rtt-rate", "many", "from 0 to 255"]),
        ("--rtt-rate 256", &["--rtt-rate", "256", "from 0 to 255"]),
        ("--rtt-rate NaN", &["--rtt-rate", "from 0 to 255"]),
        ("--rtt-type longest", &["--rtt-type", "longest", "smoothed", "min"]),
        ("--methods tcp", &["--methods", "tcp", "tcp-ts", "quic-handshake"]),
        ("--methods=", &["--methods", "tcp-ts"]),
        ("--methods icmp-echo --tcp-method seq", &["--tcp-method seq", "tcp-seq", "--methods"]),
        ("--tcp-method fast", &["--tcp-method", "fast", "auto", "ts", "seq", "both"]),
        ("--dns-ports domain", &["--dns-ports", "domain", "from 1 to 65535"]),
        ("--dns-ports 1,2,3,4,5,6,7,8", &["--dns-ports", "seven"]),
        ("--methods tcp-ts --dns-ports 5353", &["--dns-ports 5353", "dns", "--methods"]),
        ("--max-flows 0", &["--max-flows", "from 1 to"]),
        ("--max-flows 4294967296", &["--max-flows", "4294967296", "from 1 to"]),
        ("--max-flows few", &["--max-flows", "few", "from 1 to"]),
        ("--profile tiny", &["--profile", "tiny", "default", "small"]),
        ("--format xml", &["--format", "xml", "standard", "jsonl", "json", "ppviz", "none"]),
        ("--ingress nfqueue", &["--ingress", "nfqueue", "tc", "xdp", "auto"]),
        ("--listen 9464", &["--listen", "9464", "like 127.0.0.1:9464"]),
        ("--listen localhost", &["--listen", "localhost", "like 127.0.0.1:9464"]),
        ("-i eth0/1", &["--interface", "eth0/1", "15 characters"]),
        ("--no-such-option", &["--no-such-option"]),
        ("--ratelimit 1s", &["--ratelimit", "--rate-limit"]),
        ("--listen :9464", &["--listen", "127.0.0.1:9464 for this host alone", "[::]:9464 for all hosts"]),
        ("-i any", &["--interface", "any", "'*'"]),
        ("--exclude 10.0.0.1/8", &["--exclude", "10.0.0.0/8", "10.0.0.1 for that host alone"]),
        ("--otlp-interval 5s", &["--otlp-interval 5s", "no effect without --otlp"]),
        ("eth1", &["eth1", "`pping -i eth1`"]),
    ] {
        assert_contains(&refusal(&host, &format!("-i eth0 {arguments}")), parts);
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let host = Host::new();
    let taken = ok(host.namespace.enter(|| TcpListener::bind("127.0.0.1:0"))).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message = refusal(&host, &format!("-i eth0 --listen {address}"));
    assert_contains(&message, &["--listen", &address, "in use", "another port"]);
}

#[test]
fn listening_at_an_address_of_another_host_is_refused() {
    let host = Host::new();
    let message = refusal(&host, "-i eth0 --listen 192.0.2.1:9464");
    assert_contains(&message, &["--listen", "192.0.2.1:9464", "address of this host"]);
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_its_option() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing").join("records.jsonl");
    let missing = missing.to_str().unwrap();
    assert_contains(&refusal(&host, &format!("-i eth0 -w {missing}")), &["--write", missing, "No such file"]);
    let directory = directory.path().to_str().unwrap();
    assert_contains(&refusal(&host, &format!("-i eth0 -w {directory}")), &["--write", directory]);
}

#[test]
fn refused_options_leave_nothing_half_done() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("records.jsonl");
    let file = file.to_str().unwrap();
    refusal(&host, &format!("-i eht0 -w {file}"));
    refusal(&host, &format!("-i eth0 -w {file} --rate-limit soon"));
    refusal(&host, &format!("-i eth0 -w {file} --listen 192.0.2.1:9464"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "an empty file was left behind");
}

#[test]
fn names_that_are_not_unicode_are_refused_without_a_panic() {
    use std::os::unix::ffi::OsStrExt as _;
    let output = std::process::Command::new(PPING)
        .args(["-i".as_ref(), std::ffi::OsStr::from_bytes(b"eth\xff")])
        .output()
        .unwrap();
    refusal_of(&output, "-i eth\\xff");
}
