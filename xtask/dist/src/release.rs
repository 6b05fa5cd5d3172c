//! The files that are released beside the package: the archive, bills of materials and checksums.

use std::{fs, process::Command};

use anyhow::{Context as _, Result};
use pping_chores::{arch::Arch, command, environment};

use super::{Release, build::Build, copy_into};

/// The files that the archive takes from the repository, by directory.
const CONTENTS: [(&str, &[&str]); 11] = [
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
        &[
            "deploy/systemd/pping.service",
            "deploy/systemd/pping@.service",
            "deploy/systemd/pping-groups-dhcp.service",
            "deploy/systemd/pping-groups-radius.service",
            "deploy/systemd/pping-groups-shaped-devices.service",
            "deploy/systemd/run-pping.mount",
        ],
    ),
    ("deploy/sysusers.d", &["deploy/sysusers.d/pping.conf"]),
    ("deploy/logrotate", &["deploy/logrotate/pping"]),
    (
        "deploy/grafana",
        &[
            "deploy/grafana/pping.history.json",
            "deploy/grafana/pping.json",
            "deploy/grafana/pping.native.json",
        ],
    ),
    ("deploy/syslog-ng", &["deploy/syslog-ng/pping.conf"]),
    (
        "deploy/clickhouse",
        &["deploy/clickhouse/README.md", "deploy/clickhouse/queries.sql", "deploy/clickhouse/schema.sql"],
    ),
    (
        "deploy/history",
        &[
            "deploy/history/README.md",
            "deploy/history/clickhouse-files.sql",
            "deploy/history/clickhouse-s3.sql",
            "deploy/history/clickhouse.sql",
            "deploy/history/duckdb.sql",
            "deploy/history/history_polars.py",
        ],
    ),
    (
        "deploy/container",
        &["deploy/container/Containerfile", "deploy/container/README.md", "deploy/container/seccomp.json"],
    ),
    ("deploy/kubernetes", &["deploy/kubernetes/daemonset.yml"]),
];

/// Packs the program and what goes with it. The program is static, so it needs no library of the machine it runs on.
pub(super) fn archive(release: &Release, build: &Build) -> Result<()> {
    let name = format!("pping-{}-{}-linux", release.version, build.arch.name());
    let directory = release.directory.join(&name);
    copy_into(&directory, [build.program.clone()])?;
    for (folder, files) in CONTENTS {
        let files = files.iter().map(|file| environment::repository().join(file));
        copy_into(&directory.join(folder), files)?;
    }
    for (folder, ending) in [("docs", "md"), ("docs/schema", "json"), ("deploy/prometheus", "yml")] {
        let entries = fs::read_dir(environment::repository().join(folder))?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        copy_into(&directory.join(folder), files.filter(|it| it.extension().is_some_and(|it| it == ending)))?;
    }
    copy_into(&directory.join("share"), build.files().filter(|it| it.extension() != Some("gz".as_ref())))?;

    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+w,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.epoch)).arg("--directory").arg(&release.directory);
    command::run(tar.args(["-czf", &format!("{name}.tar.gz"), &name]).current_dir(&release.directory))?;
    fs::remove_dir_all(directory).context("clearing what was packed")
}

/// Lists every crate that is in the program or its kernel programs, or that built them, in `CycloneDX` 1.5.
pub(super) fn bills_of_materials(release: &Release) -> Result<()> {
    for arch in Arch::ALL {
        let name = format!("{}-{}.cdx", release.version, arch.name());
        let mut cargo = release.cargo();
        cargo.args(["cyclonedx", "--manifest-path", "pping/Cargo.toml", "--format", "json"]);
        cargo.args(["--spec-version", "1.5", "--target", arch.triple(), "--override-filename", &name]);
        command::run(&mut cargo)?;
        // cargo-cyclonedx has written a file beside each manifest of the workspace.
        let repository = environment::repository();
        let mut git = Command::new("git");
        git.args(["ls-files", "--others", "--", &format!("*{name}.json")]).current_dir(repository);
        for file in pping_lab::run(&mut git)?.lines() {
            let path = repository.join(file);
            let to = match file.strip_suffix(&format!("/{name}.json")) {
                Some("pping") => Some(format!("pping-{name}.json")),
                // The kernel programs have the same crates on each architecture.
                Some("pping-ebpf") if arch == Arch::ALL[0] => {
                    Some(format!("pping-ebpf-{}.cdx.json", release.version))
                }
                _ => None,
            };
            if let Some(to) = to {
                // The folders of the build are private, and differ between machines.
                let text = fs::read_to_string(&path)?
                    .replace(&format!("file://{}", repository.display()), "file://.");
                fs::write(release.directory.join(to), text)?;
            }
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The file with the checksums of the others.
pub(super) const CHECKSUMS: &str = "SHA256SUMS";

/// Writes the checksums of the release's files, for `sha256sum --check`.
pub(super) fn checksums(release: &Release) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(&release.directory)? {
        names.push(entry?.file_name());
    }
    names.sort();
    let sums = pping_lab::run(Command::new("sha256sum").args(names).current_dir(&release.directory))?;
    fs::write(release.directory.join(CHECKSUMS), sums).with_context(|| format!("writing {CHECKSUMS}"))
}
