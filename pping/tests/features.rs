//! What a build says about the Cargo features that it lacks. `cargo xtask test` runs this with all features and with
//! none, `cargo xtask everything` also with those in between.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use std::process::Command;

const PPING: &str = env!("CARGO_BIN_EXE_pping");

const HISTORY: bool = cfg!(feature = "history");
const LIVE: bool = cfg!(feature = "live");
const OTLP: bool = cfg!(feature = "otlp");
const PAGE: bool = cfg!(feature = "page");
const TOP: bool = cfg!(feature = "top");

/// Runs pping with a line of arguments, and returns its exit status, what it wrote, and what it said.
fn pping(arguments: &str) -> (Option<i32>, String, String) {
    let output = Command::new(PPING).args(arguments.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn version_names_missing_features() {
    let missing: Vec<_> =
        [("history", HISTORY), ("live", LIVE), ("otlp", OTLP), ("page", PAGE), ("top", TOP)]
            .into_iter()
            .filter_map(|(feature, is_built)| (!is_built).then_some(feature))
            .collect();
    let version = format!("pping {} ({})\n", env!("CARGO_PKG_VERSION"), env!("PPING_REVISION"));
    assert_eq!(pping("-V").1, version);
    let expected = match &missing[..] {
        [] => version,
        missing => format!("{version}built without: {}\n", missing.join(", ")),
    };
    assert_eq!(pping("--version").1, expected);
}

#[test]
fn what_needs_a_missing_feature_names_it() {
    // Nothing here can work, so nothing is left behind where a feature is there.
    for (arguments, asked, feature, is_built) in [
        ("-i no-such-interface", "-i", "live", LIVE),
        ("check -r none.pcap", "pping check", "live", LIVE),
        ("unpin /nowhere/pping", "pping unpin", "live", LIVE),
        ("cleanup -i no-such-interface", "pping cleanup", "live", LIVE),
        ("history --worst 3 --history /nowhere", "pping history", "history", HISTORY),
        ("-i no-such-interface --history /nowhere", "--history", "history", HISTORY || !LIVE),
        ("top --once --connect http://127.0.0.1:9", "pping top", "top", TOP),
        ("top --once -r none.pcap", "pping top", "top", TOP),
        ("-i no-such-interface --otlp http://127.0.0.1:9", "--otlp", "otlp", OTLP || !LIVE),
    ] {
        let (status, _, said) = pping(arguments);
        let message = format!(
            "this build has no `{asked}`: it was built without the feature `{feature}`; `cargo xtask"
        );
        assert_eq!(said.contains(&message), !is_built, "pping {arguments}: {said}");
        assert!(is_built || status == Some(2), "pping {arguments}: {status:?}");
    }
}

#[test]
fn a_missing_feature_is_blamed_on_the_line_that_needs_it() {
    let (variable, value) = if LIVE { ("PPING_OTLP", "http://127.0.0.1:9") } else { ("PPING_WAIT", "true") };
    let mut command = Command::new(PPING);
    let output = command.env("PPING_INTERFACE", "no-such-interface").env(variable, value).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let blamed = if LIVE { "PPING_OTLP" } else { "PPING_INTERFACE" };
    if !(LIVE && OTLP) {
        assert!(said.contains("built without the feature") && said.contains(blamed), "{said}");
    }
}

#[test]
fn every_build_generates_all_pages() {
    for page in ["man", "man-toml", "complete-bash", "complete-zsh", "complete-fish", "config"] {
        let (status, written, said) = pping(&format!("generate {page}"));
        assert_eq!(status, Some(0), "{said}");
        assert!(written.contains("otlp") && written.len() > 5_000, "{page}: {written}");
    }
}

/// Needs root, as all tests that watch interfaces.
#[cfg(feature = "live")]
#[test]
fn the_address_without_the_page_says_so() {
    use std::{
        io::{Read as _, Write as _},
        net::TcpStream,
        time::Duration,
    };

    use pping_lab::{Namespace, Process, Signal};

    const PATIENCE: Duration = Duration::from_mins(1);
    let host = Namespace::new("host").unwrap();
    let mut command = host.command(PPING);
    command.args(["-v", "-i", "lo", "--format", "none", "--listen", "127.0.0.1:9464"]);
    let mut process = Process::spawn(command).unwrap();
    process.wait_for_output("measuring round-trip times", PATIENCE).unwrap();
    let get = |path: &str| {
        let mut stream = host.enter(|| TcpStream::connect("127.0.0.1:9464")).unwrap().unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let (page, script, metrics) = (get("/"), get("/assets/page.js"), get("/metrics"));
    process.stop(Signal::SIGINT, PATIENCE).unwrap();
    assert!(metrics.contains("pping_packets_total"), "{metrics}");
    if PAGE {
        assert!(page.contains("text/html") && script.starts_with("HTTP/1.0 200"), "{page}{script}");
    } else {
        assert!(page.starts_with("HTTP/1.0 200") && page.contains("content-type: text/plain"), "{page}");
        assert!(page.contains("built without the feature `page`") && page.contains("/metrics"), "{page}");
        assert!(script.starts_with("HTTP/1.0 404"), "{script}");
    }
}
