//! The files that are released beside the package: the archive, bills of materials and checksums.

use std::{env::consts::ARCH, fs, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{Release, copy_into, package::Package};
use crate::{command, environment};

/// The files that the archive takes from the repository, by directory.
const CONTENTS: [(&str, &[&str]); 10] = [
    (
        "",
        &[
            "README.md",
            "CHANGELOG.md",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "LICENSE-GPL-2.0",
            "pping/page/vendor/LICENSE-uPlot",
        ],
    ),
    (
        "deploy",
        &["deploy/README.md", "deploy/pping.toml", "deploy/quality.toml", "deploy/web-config.example.yml"],
    ),
    (
        "deploy/systemd",
        &["deploy/systemd/pping.service", "deploy/systemd/pping@.service", "deploy/systemd/run-pping.mount"],
    ),
    ("deploy/sysusers.d", &["deploy/sysusers.d/pping.conf"]),
    ("deploy/logrotate", &["deploy/logrotate/pping"]),
    ("deploy/grafana", &["deploy/grafana/pping.json", "deploy/grafana/pping.native.json"]),
    ("deploy/syslog-ng", &["deploy/syslog-ng/pping.conf"]),
    (
        "deploy/clickhouse",
        &["deploy/clickhouse/README.md", "deploy/clickhouse/queries.sql", "deploy/clickhouse/schema.sql"],
    ),
    (
        "deploy/container",
        &["deploy/container/Containerfile", "deploy/container/README.md", "deploy/container/seccomp.json"],
    ),
    ("deploy/kubernetes", &["deploy/kubernetes/daemonset.yml"]),
];

/// Packs the program and what goes with it. The program is static, so it needs no library of the machine it runs on.
pub(super) fn archive(release: &Release, package: &Package<'_>) -> Result<()> {
    let triple = format!("{ARCH}-unknown-linux-gnu");
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
    let mut cargo = release.cargo();
    cargo.args(["build", "--release", "--package", "pping", "--target", &triple]);
    // With `--target`, the flags do not reach build scripts and macros, which have to be dynamic.
    cargo.env(variable, format!("-C target-feature=+crt-static {}", super::remapped()));
    command::run(cargo.env("CFLAGS", super::remapped_c()))?;
    let program = environment::target_directory().join(&triple).join("release/pping");

    let name = format!("pping-{}-{ARCH}-linux", release.version);
    let directory = release.directory.join(&name);
    fs::create_dir_all(&directory)?;
    command::run(Command::new("strip").arg("-o").arg(directory.join("pping")).arg(&program))?;
    // A dynamic program would name an interpreter.
    let headers =
        pping_lab::run(Command::new("readelf").args(["--program-headers", "--wide"]).arg(&program))?;
    ensure!(!headers.contains("INTERP"), "{} is not static", program.display());
    super::names_no_folder(&program)?;
    for (folder, files) in CONTENTS {
        let files = files.iter().map(|file| environment::repository().join(file));
        copy_into(&directory.join(folder), files)?;
    }
    for (folder, ending) in [("docs", "md"), ("docs/schema", "json"), ("deploy/prometheus", "yml")] {
        let entries = fs::read_dir(environment::repository().join(folder))?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        copy_into(&directory.join(folder), files.filter(|it| it.extension().is_some_and(|it| it == ending)))?;
    }
    copy_into(&directory.join("share"), package.pages())?;

    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+w,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.epoch)).arg("--directory").arg(&release.directory);
    command::run(tar.args(["-czf", &format!("{name}.tar.gz"), &name]).current_dir(&release.directory))?;
    fs::remove_dir_all(directory).context("clearing what was packed")
}

/// Lists every crate that is in the program or its kernel programs, or that built them, in `CycloneDX` 1.5.
pub(super) fn bills_of_materials(release: &Release) -> Result<()> {
    let name = format!("{}.cdx", release.version);
    let mut cargo = release.cargo();
    cargo.args(["cyclonedx", "--manifest-path", "pping/Cargo.toml", "--format", "json"]);
    command::run(cargo.args(["--spec-version", "1.5", "--override-filename", &name]))?;
    // cargo-cyclonedx has written a file beside each manifest of the workspace.
    let repository = environment::repository();
    let mut git = Command::new("git");
    git.args(["ls-files", "--others", "--", &format!("*{name}.json")]).current_dir(repository);
    for file in pping_lab::run(&mut git)?.lines() {
        let path = repository.join(file);
        let folder = file.strip_suffix(&format!("/{name}.json")).unwrap_or_default();
        if ["pping", "pping-ebpf"].contains(&folder) {
            // The folders of the build are private, and differ between machines.
            let text =
                fs::read_to_string(&path)?.replace(&format!("file://{}", repository.display()), "file://.");
            fs::write(release.directory.join(format!("{folder}-{name}.json")), text)?;
        }
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Writes the checksums of the release's files, for `sha256sum --check`.
pub(super) fn checksums(release: &Release) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&release.directory)? {
        names.push(entry?.file_name());
    }
    names.sort();
    let sums = pping_lab::run(Command::new("sha256sum").args(names).current_dir(&release.directory))?;
    fs::write(release.directory.join("SHA256SUMS"), sums).context("writing SHA256SUMS")
}
