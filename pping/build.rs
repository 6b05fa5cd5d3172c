//! Compiles the kernel programs, which the agent embeds, and looks for uPlot, which the web page needs for its charts.

use std::{env, error::Error, path::Path, process::Command};

/// The variable with the commit that is built.
const REVISION: &str = "PPING_REVISION";

/// The files of uPlot, as `cargo xtask setup` leaves them.
const UPLOT: [&str; 3] = ["uPlot.iife.min.js", "uPlot.min.css", "LICENSE-uPlot"];

#[cfg_attr(
    not(feature = "live"),
    expect(clippy::unnecessary_wraps, reason = "with kernel programs there is something that can fail")
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../pping-common/src");
    if let Some(head) = git(&["rev-parse", "--git-path", "HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    // A release names its commit. HEAD's file does not change with every commit, and an archive of sources has none.
    println!("cargo::rerun-if-env-changed={REVISION}");
    let revision = env::var(REVISION).ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env={REVISION}={}", revision.unwrap_or_else(|| "unknown".into()));
    find_uplot();
    // A build that only reads captures has no kernel programs, and needs no compiler for them.
    #[cfg(feature = "live")]
    pping_ebpf_build::compile(&pping_ebpf_build::Programs::PPING)?;
    Ok(())
}

/// Enables the charts of the web page if uPlot is there. A build without it works too, and its page says what is
/// missing.
fn find_uplot() {
    println!("cargo::rustc-check-cfg=cfg(has_uplot)");
    println!("cargo::rerun-if-changed=page/vendor");
    if UPLOT.iter().all(|file| Path::new("page/vendor").join(file).is_file()) {
        println!("cargo::rustc-cfg=has_uplot");
    } else if cfg!(feature = "page") {
        println!(
            "cargo::warning=the page of --listen will have no lines: `cargo xtask setup` fetches uPlot from npm, which they need"
        );
    }
}

/// Returns what git prints about the checkout that is being built; `None` outside of a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
