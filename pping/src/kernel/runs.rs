//! The cost of the kernel programs, if the kernel keeps statistics (`sysctl kernel.bpf_stats_enabled=1`).

use aya::Ebpf;

use crate::snapshot::ProgramRuns;

/// Returns the cost of each program so far, except for programs that never ran while statistics were on.
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
