//! What the tests' Python needs beside its own library, in an environment of its own under the target directory.

use std::{io, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

use super::Missing;
use crate::{command, environment};

/// Another reader of the logs that pping writes for `HdrHistogram`, the schemas of Kubernetes, hosts that speak QUIC, and a receiver
/// and a collector of OTLP.
/// The tests' script for those sets what is private in aioquic, so another version of it may need another script.
const PACKAGES: [&str; 5] = [
    "hdrhistogram==0.10.8",
    "kubernetes-validate==1.37.0",
    "aioquic==1.7.2",
    "opentelemetry-proto==1.45.2",
    "rotel==0.0.1a15",
];
/// `ClickHouse`'s engine, 560 MB. It is installed without what it depends on, pandas and pyarrow, which take as much again and which
/// only its interface for data frames needs.
const ALONE: [&str; 1] = ["chdb-core==26.9.0"];
const MODULES: &str =
    "import hdrh, kubernetes_validate, aioquic, opentelemetry.proto.metrics.v1.metrics_pb2, rotel, chdb";

const VENV: Missing = Missing {
    what: "Python's venv",
    packages: &["python3-venv"],
    elsewhere: "the package your distribution has it in",
};

/// The Python that has it all, once [`complete`] has run.
pub(crate) fn interpreter() -> PathBuf {
    environment_for("python").join("bin/python3")
}

/// The missing tools, with their packages.
pub(super) fn missing() -> Vec<Missing> {
    // The module `venv` is always there; what it copies is not.
    let has_venv = command::succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"]));
    if has_venv { Vec::new() } else { vec![VENV] }
}

/// Makes the environment, if it is not here.
pub(super) fn complete() -> Result<()> {
    if is_complete() {
        return Ok(());
    }
    install("python", &PACKAGES)?;
    add("python", &["--no-deps"], &ALONE)
}

/// Where an environment of Python is.
pub(super) fn environment_for(name: &str) -> PathBuf {
    environment::target_directory().join(name)
}

/// Makes an environment with these packages.
pub(super) fn install(name: &str, packages: &[&str]) -> Result<()> {
    let directory = environment_for(name);
    command::run(Command::new("python3").args(["-m", "venv"]).arg(&directory).stdout(io::stderr()))?;
    add(name, &[], packages)
}

/// Adds packages to an environment, by pip with these options.
fn add(name: &str, options: &[&str], packages: &[&str]) -> Result<()> {
    let mut python = Command::new(environment_for(name).join("bin/python3"));
    python.args(["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]);
    command::run(python.args(options).args(packages).stdout(io::stderr()))
        .with_context(|| format!("could not install {}", packages.join(" ")))
}

/// The tools that are there, a line each.
pub(super) fn found() -> Vec<String> {
    let line = || format!("{} {}: {}", PACKAGES.join(" "), ALONE.join(" "), interpreter().display());
    is_complete().then(line).into_iter().collect()
}

fn is_complete() -> bool {
    command::succeeds(Command::new(interpreter()).args(["-c", MODULES]))
}
