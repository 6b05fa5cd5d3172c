//! What a test tells `cargo xtask vm` (`xtask/src/vm/console.rs` reads it).

/// Says that this kernel cannot do what is tested; the test has to return then.
pub(super) fn skip(reason: &str) {
    println!("\nPPING-SKIPPED {reason}");
}

/// Tells something about the kernel, for the table of kernels.
pub(super) fn feature(name: &str, value: &str) {
    println!("\nPPING-FEATURE {name} {value}");
}
