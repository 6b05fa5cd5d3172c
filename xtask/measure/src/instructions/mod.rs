//! `cargo xtask instructions`: counts the instructions of the work for each packet, and compares them with
//! docs/lab/performance.md.
//!
//! Unlike times, the counts do not depend on what else the machine does, so CI can detect a few percent.

mod callgrind;
mod counts;

use std::{env::consts::ARCH, process::Command};

use anyhow::{Result, ensure};
use pping_chores::{command, document, environment, setup};

use self::counts::Counts;

const DOCUMENT: &str = "docs/lab/performance.md";
const MARKER: &str = "instructions";

/// Its program does each case a thousand times.
const PACKAGE: &str = "pping-micro-benches";
const PROGRAM: &str = "pping-once-each";

/// Counts the instructions, and compares them with the document or, with `write`, writes them into it.
pub(super) fn run(write: bool) -> Result<()> {
    setup::for_counting()?;
    let mut build = environment::cargo();
    build.args(["build", "--release", "--package", PACKAGE, "--no-default-features", "--bin", PROGRAM]);
    // Flags from the environment would change the counts: the processor to compile for, for example.
    build.env("CARGO_ENCODED_RUSTFLAGS", "");
    command::run(&mut build)?;
    let compiler =
        command::output(Command::new("rustc").arg("--version").current_dir(environment::repository()))?;
    let program = environment::target_directory().join("release").join(PROGRAM);
    let counts = Counts::new(format!("{}, {ARCH}", compiler.trim()), callgrind::count(&program)?);
    let before = Counts::read(&document::read_section(DOCUMENT, MARKER)?);
    eprintln!("\n{}", counts.beside(&before));
    if write {
        return document::replace(DOCUMENT, MARKER, &counts.table());
    }
    if let Some(warning) = counts.warning(&before) {
        eprintln!("{warning}\n");
    }
    let complaints = counts.complaints(&before);
    ensure!(
        complaints.is_empty(),
        "{}\n(a packet would cost more on every machine; if that is intended, run `cargo xtask instructions \
         --write`, and give the reason in the commit that changes {DOCUMENT})",
        complaints.join("\n")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_counts() {
        let counts = Counts::read(&document::read_section(DOCUMENT, MARKER).expect("it has markers"));
        assert!(!counts.is_empty());
    }
}
