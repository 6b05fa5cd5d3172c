//! Prometheus and `VictoriaMetrics`, configured with the files in `deploy/`.

use std::{fmt::Write as _, fs, path::Path};

use pping_lab::{Namespace, Process};
use serde_json::Value;
use tempfile::TempDir;

use crate::agent::{
    http::get,
    monitor::{ok, repository},
};

const PROMETHEUS: u16 = 9090;
const VICTORIA: u16 = 8428;

/// Replaces text that must be present.
#[track_caller]
pub(in crate::agent) fn replace(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "no `{from}` in:\n{text}");
    text.replace(from, to)
}

/// A running metrics database, stopped when dropped.
pub(in crate::agent) struct Store<'a> {
    host: &'a Namespace,
    port: u16,
    process: Process,
    _directory: TempDir,
}

/// Starts Prometheus with the configuration and the rules in `deploy/`, but scraping these loopback ports and
/// evaluating once a second. With `remote`, it forwards its samples to `VictoriaMetrics`.
pub(in crate::agent) fn prometheus<'a>(host: &'a Namespace, agents: &[u16], remote: bool) -> Store<'a> {
    prometheus_configured(host, agents, |configuration| {
        if remote {
            replace(&configuration, "\n# remote_write:\n#   - url:", "\nremote_write:\n  - url:")
        } else {
            configuration
        }
    })
}

/// Like [`prometheus`], but scrapes native histograms and uses their rules.
pub(in crate::agent) fn prometheus_native<'a>(host: &'a Namespace, agents: &[u16]) -> Store<'a> {
    let rules =
        |configuration: String| replace(&configuration, "- pping.rules.yml", "- pping.native.rules.yml");
    prometheus_started(host, agents, rules, &["--enable-feature=native-histograms"])
}

/// Like [`prometheus`], with a configuration edited by `change`.
pub(in crate::agent) fn prometheus_configured<'a>(
    host: &'a Namespace,
    agents: &[u16],
    change: impl FnOnce(String) -> String,
) -> Store<'a> {
    prometheus_started(host, agents, change, &[])
}

fn prometheus_started<'a>(
    host: &'a Namespace,
    agents: &[u16],
    change: impl FnOnce(String) -> String,
    options: &[&str],
) -> Store<'a> {
    let directory = tempfile::tempdir().unwrap();
    for rules in ["pping.rules.yml", "pping.native.rules.yml", "pping.alerts.yml"] {
        fs::copy(repository("deploy/prometheus").join(rules), directory.path().join(rules)).unwrap();
    }
    let configuration = fs::read_to_string(repository("deploy/prometheus/prometheus.yml")).unwrap();
    let mut configuration = replace(&configuration, "_interval: 15s", "_interval: 1s");
    let targets: Vec<String> = agents.iter().map(|port| format!("- 127.0.0.1:{port}")).collect();
    configuration = replace(&configuration, "- 127.0.0.1:9464", &targets.join("\n          "));
    let file = directory.path().join("prometheus.yml");
    fs::write(&file, change(configuration)).unwrap();
    let mut command = host.command("prometheus");
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{PROMETHEUS}")).args(options);
    Store { host, port: PROMETHEUS, process: start(command, "prometheus"), _directory: directory }
}

/// Starts `VictoriaMetrics`, which receives what Prometheus forwards.
pub(in crate::agent) fn victoria_metrics(host: &Namespace) -> Store<'_> {
    let directory = tempfile::tempdir().unwrap();
    let mut command = host.command("victoria-metrics");
    command.arg(format!("-storageDataPath={}", directory.path().display()));
    command.arg(format!("-httpListenAddr=127.0.0.1:{VICTORIA}"));
    // By default, answers omit the last half minute and may come from a cache.
    command.args(["-search.latencyOffset=1s", "-search.disableCache", "-memory.allowedBytes=64MB"]);
    Store { host, port: VICTORIA, process: start(command, "victoria-metrics"), _directory: directory }
}

fn start(command: std::process::Command, name: &str) -> Process {
    Process::spawn(command)
        .unwrap_or_else(|error| panic!("{name}, which `cargo xtask setup --tests` installs: {error}"))
}

impl Store<'_> {
    /// Returns the results of a query; empty while the program is still starting.
    ///
    /// # Panics
    /// If the program has ended, or does not accept the query.
    #[track_caller]
    pub(in crate::agent) fn query(&mut self, expression: &str) -> Vec<Value> {
        assert!(ok(self.process.status()).is_none(), "it ended: {}", ok(self.process.stderr()));
        let path = format!("/api/v1/query?query={}", percent_encoded(expression));
        let Some(answer) = get(self.host, self.port, &path, "application/json") else { return Vec::new() };
        if answer.status == 503 {
            return Vec::new();
        }
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{}", answer.body));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the value of a query with at most one result, or `None` if the value is not finite.
    #[track_caller]
    pub(in crate::agent) fn value(&mut self, expression: &str) -> Option<f64> {
        let found = self.query(expression);
        assert!(found.len() <= 1, "{expression}: {found:?}");
        let value = found.first()?["value"][1].as_str()?.parse::<f64>().unwrap();
        value.is_finite().then_some(value)
    }

    /// Returns what the program has printed so far.
    pub(in crate::agent) fn log(&self) -> String {
        ok(self.process.stderr())
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02x}").unwrap();
        encoded
    })
}

/// The files in a folder of the repository whose names end in `ending`.
pub(in crate::agent) fn files(folder: &str, ending: &str) -> Vec<String> {
    let names = fs::read_dir(repository(folder)).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().path())
        .filter(|path: &std::path::PathBuf| Path::new(path).to_string_lossy().ends_with(ending))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no {ending} in {folder}");
    names
}
