//! Checks RPM packages without installing them.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{command, environment, setup::CONTEXTS};

use crate::rpm::Rpm;

/// The files that only the Debian package has: what its policy asks for, and what Debian has elsewhere.
const ONLY_DEBIAN: [&str; 5] = [
    "/usr/share/doc/pping/changelog.Debian.gz",
    "/usr/share/doc/pping/changelog.gz",
    "/usr/share/doc/pping/copyright",
    "/usr/share/lintian/overrides/pping",
    "/usr/share/zsh/vendor-completions/_pping",
];

/// The files that only the RPM package has.
const ONLY_RPM: [&str; 6] = [
    "/usr/share/doc/pping/CHANGELOG.md",
    "/usr/share/licenses/pping/LICENSE-APACHE",
    "/usr/share/licenses/pping/LICENSE-GPL-2.0",
    "/usr/share/licenses/pping/LICENSE-MIT",
    "/usr/share/licenses/pping/LICENSE-uPlot",
    "/usr/share/zsh/site-functions/_pping",
];

/// The types that the policy gives to packaged files and to those that the service writes, as docs/install.md says.
const TYPES: [(&str, &str); 11] = [
    ("/usr/bin/pping", "bin_t"),
    ("/usr/lib/systemd/system/pping.service", "systemd_unit_t"),
    ("/usr/lib/systemd/system/pping@.service", "systemd_unit_t"),
    ("/usr/lib/systemd/system/run-pping.mount", "systemd_unit_t"),
    ("/etc/pping/pping.toml", "etc_t"),
    ("/etc/logrotate.d/pping", "etc_t"),
    ("/usr/lib/sysusers.d/pping.conf", "lib_t"),
    ("/usr/share/pping/grafana/pping.json", "usr_t"),
    ("/usr/share/doc/pping/README.md", "usr_t"),
    ("/var/log/pping/records.jsonl", "var_log_t"),
    ("/var/lib/pping/rtt.hlog", "var_lib_t"),
];

/// Checks a package that was made from `rpm`, with release number 1, and compares it with the Debian package.
pub(super) fn check(rpm: &Rpm<'_>, package: &Path, debian: &Path) -> Result<()> {
    lint(package)?;
    header(rpm, package)?;
    is_like(debian, package)?;
    let again = tempfile::tempdir()?;
    let second = fs::read(rpm.make(again.path(), 1)?)?;
    ensure!(fs::read(package)? == second, "{} is different when it is made again", package.display());
    Ok(())
}

/// Checks the package with rpmlint. An error or a warning that `deploy/rpm/rpmlint.toml` does not filter fails.
fn lint(package: &Path) -> Result<()> {
    let mut rpmlint = Command::new("rpmlint");
    rpmlint.arg("--strict").arg("--config").arg(environment::repository().join("deploy/rpm/rpmlint.toml"));
    command::run(rpmlint.arg(package))
}

/// Checks architecture, time, program, and the flags of configurations.
fn header(rpm: &Rpm<'_>, package: &Path) -> Result<()> {
    let found = query(package, "%{ARCH} %{OS} %{BUILDTIME} %{BUILDHOST}")?;
    let expected = format!("{} linux {} (none)", rpm.build.arch.name(), rpm.release.epoch);
    ensure!(found == expected, "the header of {} says `{found}` instead of `{expected}`", package.display());
    let sums = query(package, "[%{FILEDIGESTS} %{FILENAMES}\n]")?;
    let sum = pping_lab::run(Command::new("sha256sum").arg(&rpm.build.program))?;
    let sum = sum.split(' ').next().unwrap_or_default();
    ensure!(sums.contains(&format!("{sum} /usr/bin/pping\n")), "{} has another program", package.display());
    // A file of configuration (`c`) that an upgrade does not replace (`n`).
    let flags = query(package, "[%{FILEFLAGS:fflags} %{FILENAMES}\n]")?;
    let configurations: Vec<_> = flags.lines().filter_map(|line| line.strip_prefix("cn ")).collect();
    let expected = ["/etc/logrotate.d/pping", "/etc/pping/pping.toml"];
    ensure!(configurations == expected, "{} has the configurations {configurations:?}", package.display());
    Ok(())
}

/// Checks that the package has the files of the Debian package, with the same modes and owners.
fn is_like(debian: &Path, package: &Path) -> Result<()> {
    let listed = query(package, "[%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES}\n]")?;
    let rpm: BTreeSet<_> = listed.lines().map(ToOwned::to_owned).collect();
    // `-rw-r--r-- 0/0   1234 2026-11-25 12:00 ./usr/bin/pping`. The RPM package has no directories.
    let contents = pping_lab::run(Command::new("dpkg-deb").arg("--contents").arg(debian))?;
    let files = contents.lines().filter(|line| line.starts_with('-')).filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (mode, path) = (fields.first()?, fields.last()?.strip_prefix('.')?);
        Some(format!("{mode} root:root {path}"))
    });
    let debian: BTreeSet<_> = files.collect();
    let (missing, added) = (only_in(&debian, &rpm, &ONLY_DEBIAN), only_in(&rpm, &debian, &ONLY_RPM));
    ensure!(missing.is_empty(), "{} lacks what the Debian package has:\n{missing}", package.display());
    ensure!(added.is_empty(), "the Debian package lacks what {} has:\n{added}", package.display());
    Ok(())
}

/// Returns the lines that only the first list has, except those of the known paths.
fn only_in(list: &BTreeSet<String>, other: &BTreeSet<String>, known: &[&str]) -> String {
    let is_known = |line: &str| line.rsplit(' ').next().is_some_and(|path| known.contains(&path));
    let lines = list.difference(other).filter(|line| !is_known(line)).map(String::as_str);
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks the types that Debian's policy for `SELinux` gives to packaged files, against those in docs/install.md.
pub(super) fn contexts() -> Result<()> {
    for (path, expected) in TYPES {
        let mut matchpathcon = Command::new("matchpathcon");
        matchpathcon.args(["-n", "-f", CONTEXTS, "-m", "file", path]);
        let context = pping_lab::run(&mut matchpathcon)?;
        ensure!(
            context.trim() == format!("system_u:object_r:{expected}:s0"),
            "{path} has the context {}",
            context.trim()
        );
    }
    Ok(())
}

fn query(package: &Path, format: &str) -> Result<String> {
    let mut rpm = Command::new("rpm");
    rpm.args(["--query", "--package", "--queryformat", format]).arg(package);
    pping_lab::run(&mut rpm).with_context(|| format!("querying {}", package.display()))
}
