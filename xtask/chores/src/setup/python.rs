//! Python packages for the tests and lints, in virtual environments under the target directory.

use std::{io, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

use super::Missing;
use crate::{command, environment};

/// Another reader of the logs that pping writes for `HdrHistogram`, the schemas of Kubernetes, hosts that speak QUIC,
/// a receiver and a collector of OTLP, and two engines that read the history (240 MB). The tests' script for QUIC sets
/// private fields of aioquic, so another version may need another script.
const PACKAGES: [&str; 7] = [
    "hdrhistogram==0.10.8",
    "kubernetes-validate==1.37.0",
    "aioquic==1.7.2",
    "opentelemetry-proto==1.45.2",
    "rotel==0.0.1a15",
    "duckdb==2.0.1",
    "polars==2.1.0",
];
/// `ClickHouse`'s engine, 560 MB. It is installed without its dependencies pandas and pyarrow, which take as much
/// again: only its interface for data frames needs them.
const ALONE: [&str; 1] = ["chdb-core==26.9.0"];
const MODULES: &str = "import hdrh, kubernetes_validate, aioquic, opentelemetry.proto.metrics.v1.metrics_pb2, rotel, \
                       duckdb, polars, chdb";

const VENV: Missing = Missing {
    what: "Python's venv",
    packages: &["python3-venv"],
    elsewhere: "the package your distribution has it in",
};

/// Returns the Python that has all packages, once [`complete`] has run.
pub fn interpreter() -> PathBuf {
    environment_for("python").join("bin/python3")
}

/// Returns the missing tools, with their packages.
pub(super) fn missing() -> Vec<Missing> {
    // The module `venv` is always there; `ensurepip`, which it needs, may not be.
    let has_venv = command::succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if has_venv { Vec::new() } else { vec![VENV] }
}

/// Makes the environment, unless it is there already.
pub(super) fn complete() -> Result<()> {
    if is_complete() {
        return Ok(());
    }
    install("python", &PACKAGES)?;
    add("python", &["--no-deps"], &ALONE)
}

/// Returns the directory of a virtual environment.
pub(super) fn environment_for(name: &str) -> PathBuf {
    environment::target_directory().join(name)
}

/// Makes a virtual environment with these packages.
pub(super) fn install(name: &str, packages: &[&str]) -> Result<()> {
    let directory = environment_for(name);
    command::run(Command::new("python3").args(["-m", "venv"]).arg(&directory).stdout(io::stderr()))?;
    add(name, &[], packages)
}

/// Adds packages to a virtual environment, with these options of pip.
fn add(name: &str, options: &[&str], packages: &[&str]) -> Result<()> {
    let mut python = Command::new(environment_for(name).join("bin/python3"));
    python.args(["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]);
    command::run(python.args(options).args(packages).stdout(io::stderr()))
        .with_context(|| format!("could not install {}", packages.join(" ")))
}

/// Returns a line about the packages, if they are there.
pub(super) fn found() -> Vec<String> {
    let line = || format!("{} {}: {}", PACKAGES.join(" "), ALONE.join(" "), interpreter().display());
    is_complete().then(line).into_iter().collect()
}

fn is_complete() -> bool {
    command::succeeds(Command::new(interpreter()).args(["-c", MODULES]))
}
