//! Having the kernel delete idle flows.

use aya::programs::{RawTracePointRunOptions, TestRun as _};

use super::load::{self, Kernel};
use crate::Error;

/// Runs the sweep program once: to the kernel that is a test run, and it needs no packet.
///
/// # Errors
/// When the kernel does not run it.
pub fn sweep(kernel: &mut Kernel) -> Result<(), Error> {
    load::sweep(&mut kernel.programs)?
        .test_run(RawTracePointRunOptions::new())
        .map(|_| ())
        .map_err(|error| Error::Load { what: "a run of pping_sweep".to_owned(), source: error.into() })
}
