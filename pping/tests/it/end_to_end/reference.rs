//! The samples in a capture, as `reference/expected_samples.py` finds them.

use std::path::Path;

use serde::Deserialize;

use super::{ok, records::Tuple};
use crate::python::reference;

const SCRIPT: &str = "expected_samples.py";

/// A sample that the capture justifies; times are in ns since the epoch.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Expected {
    pub(crate) method: String,
    #[serde(flatten)]
    pub(crate) tuple: Tuple,
    pub(crate) rtt: u64,
    pub(crate) recorded_at: u64,
    pub(crate) matched_at: u64,
}

/// Returns the samples of a capture if `pending` recordings of a direction can be pending and these tunnels are parsed.
pub(crate) fn expected_samples(capture: &Path, pending: u32, decap: &str) -> Vec<Expected> {
    let arguments = [format!("--pending={pending}"), format!("--decap={decap}")];
    let lines = ok(pping_lab::run(reference(SCRIPT).args(arguments).arg(capture)));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_reference_knows_the_rules() {
    ok(pping_lab::run(reference(SCRIPT).arg("--self-test")));
}
