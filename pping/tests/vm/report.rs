//! Lines with which a test reports to `cargo xtask vm` (read by `xtask/vm/src/console.rs`).

use aya::programs::ProgramInfo;

/// Reports that this kernel cannot do what is tested. The test must return after this.
pub(super) fn skip(reason: &str) {
    println!("\nPPING-SKIPPED {reason}");
}

/// Reports a fact about the kernel, for the table of kernels.
pub(super) fn feature(name: &str, value: &str) {
    println!("\nPPING-FEATURE {name} {value}");
}

/// Reports the verifier's result for a program loaded with `features`, which contains no space.
pub(super) fn verified(program: &str, features: &str, info: &ProgramInfo) {
    // The kernel reports this count since Linux 5.16.
    let instructions = info.verified_instruction_count().map_or("-".to_owned(), |count| count.to_string());
    let bytes = info.size_translated().unwrap_or_default();
    println!("\nPPING-VERIFIED {program} {features} {instructions} {bytes}");
}
