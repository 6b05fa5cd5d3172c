//! What the kernel programs cost, where the kernel keeps statistics of that (`sysctl kernel.bpf_stats_enabled=1`).

use aya::Ebpf;

use crate::snapshot::ProgramRuns;

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
