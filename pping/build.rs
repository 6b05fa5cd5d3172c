//! Compiles the kernel programs, which the agent carries inside itself.

use std::process::Command;

fn main() -> Result<(), pping_ebpf_build::Error> {
    println!("cargo::rerun-if-changed=../pping-common/src");
    println!("cargo::rerun-if-changed=../.git/HEAD");
    println!("cargo::rustc-env=PPING_REVISION={}", revision().unwrap_or_else(|| "unknown".into()));
    pping_ebpf_build::compile("../pping-ebpf")
}

/// The commit that is being built, if it is being built from a checkout.
fn revision() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
