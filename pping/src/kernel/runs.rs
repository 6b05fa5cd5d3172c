//! The cost of the kernel programs, if the kernel keeps statistics (`sysctl kernel.bpf_stats_enabled=1`).

use aya::Ebpf;

use crate::snapshot::ProgramRuns;

/// The cost of each program so far; those that never ran while statistics were on are left out.
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
