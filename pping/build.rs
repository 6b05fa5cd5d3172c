//! Compiles the kernel programs, which the agent carries inside itself.

use std::{error::Error, process::Command};

#[cfg_attr(
    not(feature = "live"),
    expect(clippy::unnecessary_wraps, reason = "with kernel programs there is something that can fail")
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../pping-common/src");
    println!("cargo::rerun-if-changed=../.git/HEAD");
    println!("cargo::rustc-env=PPING_REVISION={}", revision().unwrap_or_else(|| "unknown".into()));
    // What only reads captures has no kernel programs, and needs no compiler for them.
    #[cfg(feature = "live")]
    pping_ebpf_build::compile("../pping-ebpf")?;
    Ok(())
}

/// The commit that is being built, if it is being built from a checkout.
fn revision() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
