//! What the kernel programs cost, where the kernel keeps statistics of that (`sysctl kernel.bpf_stats_enabled=1`).

use std::time::Duration;

use aya::Ebpf;

/// What a kernel program cost so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Its name.
    pub program: String,
    /// How often it ran.
    pub runs: u64,
    /// How long that took.
    pub time: Duration,
}

/// What each program cost so far; those that never ran while statistics were on are left out.
pub fn runs(programs: &Ebpf) -> Vec<ProgramRuns> {
    programs
        .programs()
        .filter_map(|(name, program)| {
            let info = program.info().ok()?;
            let runs = info.run_count();
            (runs > 0).then(|| ProgramRuns { program: name.to_owned(), runs, time: info.run_time() })
        })
        .collect()
}
