//! `cargo xtask setup`: installs what a fresh machine lacks or, where that cannot be done, says what is missing.
//!
//! On Debian, tools come from its packages, except the linker for BPF and subcommands of cargo, which cargo builds, the
//! page's files from npm, and Python packages by pip. A machine that can compile for BPF already, with rustup's nightly
//! for instance, is left as it is.

mod apt;
mod compiler;
mod cross;
mod fuzzing;
mod lints;
mod machines;
mod packaging;
mod page;
mod python;
mod syslog_ng;
mod tools;

use anyhow::Result;
pub use lints::program as lint_program;
pub use packaging::CONTEXTS;
pub use python::interpreter;
pub use syslog_ng::program as syslog_ng_program;

use crate::arch::Arch;

/// What the machine is needed for, beside building.
#[derive(Clone, Copy, Default)]
pub struct Scope {
    /// Running the tests.
    pub tests: bool,
    /// Running the lints.
    pub lints: bool,
}

/// How much to say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// What is there as well.
    All,
    /// Only what is missing, and what is done about it.
    Changes,
}

/// Something that a chore needs and that is not there.
struct Missing {
    what: &'static str,
    /// Debian's packages that bring it.
    packages: &'static [&'static str],
    /// How to get it where there are no such packages.
    elsewhere: &'static str,
}

/// Looks for everything the scope needs and installs what is missing.
pub fn run(scope: Scope, report: Report) -> Result<()> {
    let mut missing = compiler::missing();
    if scope.lints {
        missing.extend(lints::missing());
    }
    if scope.tests {
        missing.extend(tools::missing());
        missing.extend(python::missing());
    }
    // A plain build can do without the lines of the page.
    let has_lines = scope.tests || report == Report::All;
    if has_lines {
        missing.extend(page::missing());
    }
    apt::install(&missing)?;

    compiler::complete()?;
    if has_lines {
        page::complete()?;
    } else {
        page::complete_if_possible();
    }
    if scope.lints {
        lints::complete()?;
    }
    if scope.tests {
        python::complete()?;
        syslog_ng::complete()?;
    }
    if report == Report::All {
        let mut found = compiler::found();
        found.extend(page::found());
        if scope.lints {
            found.extend(lints::found());
        }
        if scope.tests {
            found.extend(tools::found());
            found.extend(python::found());
            found.extend(syslog_ng::found());
        }
        for line in found {
            eprintln!("found {line}");
        }
    }
    Ok(())
}

/// Looks for what fuzzing needs, which includes no compiler for BPF, and installs what is missing.
pub fn for_fuzzing() -> Result<()> {
    apt::install(&fuzzing::missing())?;
    fuzzing::complete()
}

/// Looks for what counting instructions needs, and installs it if it is missing.
pub fn for_counting() -> Result<()> {
    let mut missing = tools::missing();
    missing.retain(|tool| tool.what == "valgrind");
    apt::install(&missing)
}

/// Looks for what building and virtual machines of an architecture need, and installs what is missing.
pub fn for_machines(arch: Arch) -> Result<()> {
    run(Scope::default(), Report::Changes)?;
    apt::install(&machines::missing(arch))
}

/// Looks for what static programs for an architecture need beside a compiler for BPF, and installs what is missing.
pub fn for_cross_building(arch: Arch) -> Result<()> {
    apt::install(&cross::missing(arch))
}

/// Looks for what building and packaging for all architectures need and, if `tries`, what trying packages needs. Installs
/// what is missing.
///
/// All of Debian's packages are asked for at once and first, because what is here may exclude one of them: GNU's compiler
/// for 64-bit ARM and gcc-multilib exclude each other. The linker for BPF and subcommands of cargo are compiled after.
pub fn for_packaging(tries: bool) -> Result<()> {
    let mut missing = compiler::missing();
    missing.extend(packaging::missing(tries));
    missing.extend(page::missing());
    let host = Arch::of_host()?;
    for arch in Arch::ALL.into_iter().filter(|arch| *arch != host) {
        missing.extend(cross::missing(arch));
        if tries {
            missing.extend(machines::missing(arch));
        }
    }
    apt::install(&missing)?;
    compiler::complete()?;
    page::complete()?;
    packaging::complete()
}

/// Looks for what making repositories needs, and installs what is missing.
pub fn for_repositories() -> Result<()> {
    apt::install(&packaging::missing_for_repositories())
}
