//! Threads that talk to clients have no capabilities.

use std::{fs, path::Path};

use pping_lab::{Process, Signal};

use super::{Served, curl_from};
use crate::agent::{
    host::Host,
    http::{PORT, is_ready},
    monitor::{LOADING, ok, pping, wait_until},
};

/// Returns the name of each thread and its capability sets, without the bounding set.
pub(in crate::agent) fn threads(tasks: &Path) -> Vec<(String, Vec<String>)> {
    let of = |task: &Path| {
        let status = fs::read_to_string(task.join("status")).ok()?;
        let value = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(|it| it.trim().to_owned())
        };
        let sets = ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(|set| value(set).unwrap());
        Some((value("Name:").unwrap(), sets.to_vec()))
    };
    fs::read_dir(tasks).unwrap().filter_map(|task| of(&task.unwrap().path())).collect()
}

#[test]
fn web_threads_that_serve_http_have_no_capabilities() {
    let host = Host::new();
    let arguments = format!("-i {} --listen 127.0.0.1:{PORT}", Host::ETH);
    let pping = ok(Process::spawn(pping(&host.namespace, &arguments)));
    wait_until("it is ready", || is_ready(&host.namespace));
    curl_from(&host.namespace, "", &format!("http://127.0.0.1:{PORT}/metrics"));
    let threads = threads(Path::new(&format!("/proc/{}/task", pping.id())));
    let none = vec!["0000000000000000".to_owned(); 4];
    for name in ["pping-http", "pping-http-work"] {
        let (_, sets) = threads.iter().find(|(thread, _)| thread == name).unwrap_or_else(|| {
            panic!("no {name} in {threads:?}");
        });
        assert_eq!(*sets, none, "{name}");
    }
    // The other threads keep their capabilities.
    assert!(threads.iter().any(|(name, sets)| name == "pping" && *sets != none), "{threads:?}");
}

#[test]
fn web_a_key_file_that_others_can_read_is_warned_of_once() {
    let host = Host::new();
    let said = |options: &str| {
        let mut pping = ok(Process::spawn(pping(&host.namespace, &format!("-i {} {options}", Host::ETH))));
        wait_until("it is ready", || {
            assert!(ok(pping.status()).is_none(), "{}", ok(pping.stderr()));
            is_ready(&host.namespace) || curl_from(&host.namespace, "", &readyz()).status == 401
        });
        // All but the lines about the start.
        let said = ok(pping.stderr());
        let is_of_start = |line: &&str| line.contains("measuring") || line.ends_with(LOADING);
        said.lines().filter(|line| !is_of_start(line)).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(said(&format!("--listen 127.0.0.1:{PORT}")), "");
    let warned = said(&format!("--listen 0.0.0.0:{PORT}"));
    assert!(warned.contains("which hosts talk") && warned.lines().count() == 1, "{warned}");
    let served = Served::new(super::passwords::USERS, |_| ());
    let web_config = served.file("web.yml").display().to_string();
    let warned = said(&format!("--listen 0.0.0.0:{PORT} --web-config {web_config}"));
    assert!(warned.contains("plain text") && warned.lines().count() == 1, "{warned}");
}

#[test]
fn web_a_reload_that_opens_the_server_is_warned_of_once() {
    let host = Host::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("web.yml");
    fs::write(&file, super::passwords::USERS).unwrap();
    let options = format!("-v -i {} --listen 0.0.0.0:{PORT} --web-config {}", Host::ETH, file.display());
    let mut pping = ok(Process::spawn(pping(&host.namespace, &options)));
    wait_until("it asks for a password", || curl_from(&host.namespace, "", &readyz()).status == 401);
    assert!(!ok(pping.stderr()).contains("which hosts talk"));
    fs::write(&file, "").unwrap();
    ok(pping.signal(Signal::SIGHUP));
    wait_until("it warns", || ok(pping.stderr()).contains("which hosts talk"));
    let reloads = |stderr: &str| stderr.matches("web.yml: read again").count();
    let before = reloads(&ok(pping.stderr()));
    ok(pping.signal(Signal::SIGHUP));
    wait_until("it has read the file again", || reloads(&ok(pping.stderr())) > before);
    let stderr = ok(pping.stderr());
    assert_eq!(stderr.matches("which hosts talk").count(), 1, "{stderr}");
    assert!(is_ready(&host.namespace));
}

fn readyz() -> String {
    format!("http://127.0.0.1:{PORT}/readyz")
}
