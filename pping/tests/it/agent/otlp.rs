//! `--otlp`: a receiver gets the values that `/metrics` serves, and no receiver disturbs measuring.
//!
//! The receiver uses OpenTelemetry's own types for Python. In some tests the collector Rotel forwards to it.

mod collected;
mod delta;
mod misbehaving;
mod page;
mod pinned;
mod privileges;
mod received;
mod refused;
mod restarted;
mod stop;
mod tls;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pping_lab::{Namespace, Process, Signal};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    http::{Exposition, PORT, get},
    monitor::{ENDING, PATIENCE, ok, wait_until},
};
use crate::python::python_with;

const RECEIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agent/otlp/receiver.py");

/// The ports of the receiver and of the collector in front of it.
const RECEIVING: u16 = 4318;
const COLLECTING: u16 = 4319;

/// Returns a Python that has this package.
fn python(package: &str) -> PathBuf {
    python_with(package).unwrap_or_else(|| {
        panic!("neither PPING_PYTHON nor python3 is a Python with the package {package}; `cargo xtask setup --tests` gets it")
    })
}

/// A receiver on a loopback address.
struct Receiver<'a> {
    host: &'a Namespace,
    folder: TempDir,
    process: Option<Process>,
    /// The name of its certificate and key files, without extension.
    tls: Option<&'a str>,
}

impl<'a> Receiver<'a> {
    fn start(host: &'a Namespace) -> Self {
        Self::start_in(host, tempfile::tempdir().unwrap(), None)
    }

    /// Starts the receiver with the files in a folder.
    fn start_in(host: &'a Namespace, folder: TempDir, tls: Option<&'a str>) -> Self {
        let mut receiver = Self { host, folder, process: None, tls };
        receiver.set("accept");
        receiver.restart();
        receiver
    }

    /// Starts the receiver, again if it was stopped.
    fn restart(&mut self) {
        let mut command = self.host.command(python("opentelemetry.proto.metrics.v1.metrics_pb2"));
        command.args([RECEIVER, &RECEIVING.to_string()]).arg(self.folder.path());
        if let Some(stem) = self.tls {
            command.args([self.file(&format!("{stem}.pem")), self.file(&format!("{stem}.key"))]);
        }
        let mut process = ok(Process::spawn(command));
        ok(process.wait_for_output("receiving", PATIENCE));
        self.process = Some(process);
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            ok(process.signal(Signal::SIGKILL));
            ok(process.wait_timeout(ENDING));
        }
    }

    /// Sets the mode for all further requests: see receiver.py.
    fn set(&self, mode: &str) {
        // The file changes in one step, as the receiver may read it at this moment.
        let new = self.file("new");
        fs::write(&new, mode).unwrap();
        fs::rename(new, self.file("mode")).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        // The last line may be incomplete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns all data points that the receiver accepted.
    fn points(&self) -> Vec<Value> {
        self.lines("points")
    }

    /// Returns the path, headers and time of every request.
    fn requests(&self) -> Vec<Value> {
        self.lines("requests")
    }
}

/// The URL of a port of the loopback address.
fn url(port: u16) -> String {
    format!("--otlp http://127.0.0.1:{port}")
}

/// Returns the metrics that pping serves.
fn served(host: &Namespace) -> Exposition {
    Exposition(get(host, PORT, "/metrics", "text/plain").expect("pping listens").body)
}

/// Returns the value of one of the exporter's counters.
fn counted(host: &Namespace, name: &str, reason: &str) -> f64 {
    let labels = [("reason", reason)];
    served(host).sum(name, if reason.is_empty() { &[] } else { &labels }).unwrap_or(0.0)
}

/// Counts the warnings about the receiver that contain `part`.
fn warnings(pping: &Process, part: &str) -> usize {
    let log = ok(pping.stderr());
    log.lines().filter(|line| line.contains("WARN") && line.contains("--otlp") && line.contains(part)).count()
}

/// Waits until an export arrives that is later than all so far.
fn wait_for_another(receiver: &Receiver<'_>) {
    let last = |receiver: &Receiver<'_>| receiver.points().iter().filter_map(|it| it["time"].as_u64()).max();
    let before = last(receiver);
    wait_until("another export", || last(receiver) > before);
}

/// Starts a collector that forwards everything to the receiver.
fn collector(host: &Namespace) -> Process {
    let find = "import pathlib, rotel; print(pathlib.Path(rotel.__file__).parent / 'rotel-agent', end='')";
    let found = Command::new(python("rotel")).args(["-c", find]).output().unwrap();
    let mut command = host.command(Path::new(&String::from_utf8(found.stdout).unwrap()));
    command.args([
        "start",
        "--exporter",
        "otlp",
        "--otlp-exporter-protocol",
        "http",
        "--batch-timeout",
        "100ms",
    ]);
    command.args(["--otlp-exporter-endpoint", &format!("http://127.0.0.1:{RECEIVING}")]);
    command.args(["--otlp-http-endpoint", &format!("127.0.0.1:{COLLECTING}")]);
    command.args(["--otlp-grpc-endpoint", "127.0.0.1:0"]);
    let mut process = ok(Process::spawn(command));
    ok(process.wait_for_output("Starting Rotel", PATIENCE));
    process
}
