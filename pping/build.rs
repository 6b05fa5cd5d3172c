//! Compiles the kernel programs, which the agent carries inside itself.

use std::{error::Error, process::Command};

#[cfg_attr(
    not(feature = "live"),
    expect(clippy::unnecessary_wraps, reason = "with kernel programs there is something that can fail")
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../pping-common/src");
    if let Some(head) = git(&["rev-parse", "--git-path", "HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    let revision = git(&["rev-parse", "--short=12", "HEAD"]);
    println!("cargo::rustc-env=PPING_REVISION={}", revision.unwrap_or_else(|| "unknown".into()));
    // What only reads captures has no kernel programs, and needs no compiler for them.
    #[cfg(feature = "live")]
    pping_ebpf_build::compile(&pping_ebpf_build::Programs::PPING)?;
    Ok(())
}

/// What git says about the checkout that is being built, if it is one.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
