//! What a test tells `cargo xtask vm` (`xtask/src/vm/console.rs` reads it).

use aya::programs::ProgramInfo;

/// Says that this kernel cannot do what is tested; the test has to return then.
pub(super) fn skip(reason: &str) {
    println!("\nPPING-SKIPPED {reason}");
}

/// Tells something about the kernel, for the table of kernels.
pub(super) fn feature(name: &str, value: &str) {
    println!("\nPPING-FEATURE {name} {value}");
}

/// Tells what the kernel made of a program that was loaded with `features`, which contains no blank.
pub(super) fn verified(program: &str, features: &str, info: &ProgramInfo) {
    // Linux 5.16 and newer count.
    let instructions = info.verified_instruction_count().map_or("-".to_owned(), |count| count.to_string());
    let bytes = info.size_translated().unwrap_or_default();
    println!("\nPPING-VERIFIED {program} {features} {instructions} {bytes}");
}
