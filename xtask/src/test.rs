//! `cargo xtask test`: runs every test.

use std::{
    env,
    ffi::{OsStr, OsString},
    process::Command,
    thread,
};

use anyhow::{Result, ensure};
use pping_chores::{
    build, command, environment,
    setup::{self, Report, Scope},
};

/// The script that works out which samples a capture justifies, independently of pping.
const REFERENCE: &str = "pping/tests/reference/expected_samples.py";

/// Where the tests find captures that are too large for the repository.
const CAPTURES_VARIABLE: &str = "PPING_CAPTURES";
const CAPTURES_BESIDE_REPOSITORY: &str = "shared/captures";

/// Tells the test programs how many tests run at a time. Many tests wait more than they work.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";
const TESTS_PER_CPU: usize = 2;

/// Names the Python for test scripts that need more than its own library.
const PYTHON_VARIABLE: &str = "PPING_PYTHON";

/// Names the program that carries records to a database in a test.
const SYSLOG_NG_VARIABLE: &str = "PPING_SYSLOG_NG";

/// Makes the tests do what takes long as well: the verifier sees all combinations of settings, not just some.
const EXHAUSTIVE_VARIABLE: &str = "PPING_EXHAUSTIVE";

/// How much the tests do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What a change has to pass.
    Ci,
    /// What a release has to pass.
    Exhaustive,
}

/// The tests of pping as a whole, by module.
const INTEGRATION_TESTS: &str = "pping/tests/it";

/// The test of builds that lack features, and the features that these builds have. Each compiles many dependencies again,
/// because it needs less of them, so CI has the smallest alone.
const FEATURES: &str = "features";
const SMALL_BUILDS: [&str; 5] = ["", "live", "otlp,page", "otlp,top", "page,top"];

/// Installs what is missing, and runs the tests of all crates. With a filter, those of `pping-common` come first: they
/// show most errors before the kernel programs are compiled. If the filter begins with a module of the integration
/// tests, these come next, before all other tests are compiled; see [`rounds`].
pub(crate) fn run(filter: Option<&OsStr>, arguments: &[OsString], extent: Extent) -> Result<()> {
    ensure!(
        environment::is_root(),
        "the tests make network namespaces and load kernel programs, which needs root; run \
         `sudo env \"PATH=$PATH\" cargo xtask test`"
    );
    setup::run(Scope { tests: true, ..Scope::default() }, Report::Changes)?;
    test_reference()?;
    if let Some(filter) = filter {
        let mut cargo = environment::cargo();
        command::run(
            cargo.args(["test", "--package", "pping-common"]).arg(filter).arg("--").args(arguments),
        )?;
    }
    if filter.is_none_or(|filter| filter == FEATURES) {
        test_small_builds(extent, arguments)?;
    }
    for targets in rounds(filter) {
        command::run(&mut tests(extent, targets, filter, arguments)?)?;
    }
    Ok(())
}

/// Returns the targets to test, one after the other. No target is in two of them. An empty list stands for all.
fn rounds(filter: Option<&OsStr>) -> &'static [&'static [&'static str]] {
    if filter.is_some_and(names_integration_tests) {
        &[&["--test", "it"], &["--lib", "--bins"], &["--doc"]]
    } else {
        &[&[]]
    }
}

/// Whether a filter begins with a module of the integration tests: `kernel::sweep`.
fn names_integration_tests(filter: &OsStr) -> bool {
    let module = filter.to_str().and_then(|filter| filter.split("::").next());
    let file = |module| environment::repository().join(INTEGRATION_TESTS).join(format!("{module}.rs"));
    module.is_some_and(|module| file(module).is_file())
}

/// Returns the command that runs tests, of all targets or of these.
fn tests(
    extent: Extent,
    targets: &[&str],
    filter: Option<&OsStr>,
    arguments: &[OsString],
) -> Result<Command> {
    let mut cargo = environment::cargo();
    if extent == Extent::Exhaustive {
        cargo.env(EXHAUSTIVE_VARIABLE, "1");
    }
    cargo.arg("test").args(build::TESTED).args(targets).arg("--no-fail-fast");
    cargo.args(filter).arg("--").args(arguments);
    cargo.env(PYTHON_VARIABLE, setup::interpreter()).env(SYSLOG_NG_VARIABLE, setup::syslog_ng_program());
    if env::var_os(THREADS_VARIABLE).is_none() {
        let cpus = thread::available_parallelism()?.get();
        cargo.env(THREADS_VARIABLE, (cpus * TESTS_PER_CPU).to_string());
    }
    if env::var_os(CAPTURES_VARIABLE).is_none()
        && let Some(parent) = environment::repository().parent()
    {
        cargo.env(CAPTURES_VARIABLE, parent.join(CAPTURES_BESIDE_REPOSITORY));
    }
    Ok(cargo)
}

/// Tests builds of pping that lack features. They come before the others, which put the build with all features back where
/// cargo puts programs.
fn test_small_builds(extent: Extent, arguments: &[OsString]) -> Result<()> {
    let builds = if extent == Extent::Exhaustive { &SMALL_BUILDS[..] } else { &SMALL_BUILDS[..1] };
    for features in builds {
        let mut cargo = environment::cargo();
        cargo.args(["test", "--package", "pping", "--no-default-features", "--features", features]);
        command::run(cargo.args(["--test", FEATURES, "--"]).args(arguments))?;
    }
    Ok(())
}

/// Tests the reference. It comes first, because a reference that errs makes every comparison with it worthless.
fn test_reference() -> Result<()> {
    if !environment::repository().join(REFERENCE).is_file() {
        return Ok(());
    }
    command::run(
        Command::new("python3").args([REFERENCE, "--self-test"]).current_dir(environment::repository()),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tests_each_target_once() {
        for filter in [None, Some("hist"), Some("kernel::sweep"), Some("agent::top"), Some("replay")] {
            let rounds = rounds(filter.map(OsStr::new));
            let targets: Vec<_> = rounds.iter().map(|targets| targets.join(" ")).collect();
            assert_eq!(
                targets.len(),
                targets.iter().collect::<BTreeSet<_>>().len(),
                "{filter:?}: {targets:?}"
            );
            // All targets include the others.
            assert!(targets.len() == 1 || !targets.contains(&String::new()), "{filter:?}: {targets:?}");
        }
        assert_eq!(rounds(Some(OsStr::new("kernel::sweep")))[0], ["--test", "it"]);
    }
}
