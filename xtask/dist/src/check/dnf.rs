//! Checks the RPM package through its life on a machine: a Debian system with dnf, because systems that consist of RPM
//! packages cannot be made from Debian's archive.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, command};

use super::{
    deb::{EDIT, measures},
    emulation::Emulation,
    root::{Root, only_in},
    server,
    service::Commands,
};

/// A package without files. It tells rpm what Debian's packages provide, which rpm does not know.
const PROVIDED: &str = "\
Name: debian
Version: 12
Release: 1
Summary: Names that packages of pping require
License: MIT
BuildArch: noarch
Provides: /bin/sh systemd util-linux
%description
%files
";

/// Debian's rpm would keep its records in a home directory.
const MACROS: &str = "%_dbpath /var/lib/rpm\n";

/// The directory that is served as a repository.
const REPOSITORY: &str = "/tmp/repository";

/// What a removal leaves: what belongs to the administrator, and directories that packages share.
const KEPT: [&str; 8] = [
    "/etc/pping",
    "/etc/pping/pping.toml.rpmsave",
    "/usr/share/fish",
    "/usr/share/fish/vendor_completions.d",
    "/usr/share/licenses",
    "/usr/share/zsh/site-functions",
    "/var/log/pping",
    "/var/log/pping/records.jsonl",
];

/// How dnf manages the packages in [`root`].
pub(super) const DNF: Commands = Commands {
    install: "dnf --assumeyes install /srv/pping.rpm",
    upgrade: "dnf --assumeyes upgrade /srv/newer.rpm",
    remove: "dnf --assumeyes remove pping",
};

/// Returns a system with a package, and a newer one for the upgrade, to install.
pub(super) fn root(arch: Arch, package: &Path, newer: &Path) -> Result<Root> {
    let root = Root::with_rpm(arch)?;
    root.copy_in(package, "/srv/pping.rpm")?;
    root.copy_in(newer, "/srv/newer.rpm")?;
    for (file, content) in [("/etc/rpm/macros", MACROS), ("/srv/debian.spec", PROVIDED)] {
        let path = root.path(file);
        fs::create_dir_all(path.parent().context("it has a parent")?)?;
        fs::write(path, content)?;
    }
    root.run("rpmbuild -bb --quiet --define '_topdir /srv/rpmbuild' /srv/debian.spec")?;
    root.run("dnf --assumeyes install /srv/rpmbuild/RPMS/noarch/debian-12-1.noarch.rpm")?;
    Ok(root)
}

/// Installs from a repository, measures a capture, configures, upgrades and removes. Another architecture's programs run
/// in QEMU.
pub(super) fn lifecycle(arch: Arch, package: &Path, newer: &Path) -> Result<()> {
    let _emulation = Emulation::of(arch)?;
    let root = root(arch, package, newer)?;
    fs::create_dir_all(root.path(REPOSITORY))?;
    publish(&root, package)?;
    // The system shares the network.
    let (_server, address) = server::serve(&root.path(REPOSITORY))?;
    let repository = format!("[pping]\nname=pping\nbaseurl={address}\ngpgcheck=0\n");
    fs::create_dir_all(root.path("/etc/yum.repos.d"))?;
    fs::write(root.path("/etc/yum.repos.d/pping.repo"), repository)?;
    let before = root.listing()?;

    root.run("dnf --assumeyes install pping")?;
    let version = installed(&root)?;
    root.run("bash -n /usr/share/bash-completion/completions/pping")?;
    root.run("systemd-analyze verify /usr/lib/systemd/system/pping.service")?;
    root.run("logrotate --debug /etc/logrotate.d/pping")?;
    measures(&root)?;
    let links = "/etc/systemd/system/multi-user.target.wants";
    ensure!(!root.path(links).join("pping.service").exists(), "the installation enabled the service");
    root.run("systemctl enable pping.service pping@wan.service")?;
    let configuration = root.path("/etc/pping/pping.toml");
    let edited = fs::read_to_string(&configuration)? + EDIT;
    fs::write(&configuration, &edited)?;
    root.run("mkdir /var/log/pping && touch /var/log/pping/records.jsonl && chown -R pping: /var/log/pping")?;

    publish(&root, newer)?;
    root.run("dnf --assumeyes --refresh upgrade pping")?;
    ensure!(installed(&root)? != version, "the package was not upgraded");
    ensure!(fs::read_to_string(&configuration)? == edited, "an upgrade changed the configuration");
    root.run("systemctl is-enabled pping.service pping@wan.service")?;

    root.run(DNF.remove)?;
    let saved = fs::read_to_string(configuration.with_extension("toml.rpmsave"))?;
    ensure!(saved == edited, "removing changed the configuration");
    let after = root.listing()?;
    let left = only_in(&after, &before);
    // Most lines begin with a checksum or a mode.
    let paths = left.iter().filter_map(|line| line.split(' ').find(|word| word.starts_with('/')));
    let paths: BTreeSet<_> = paths.collect();
    ensure!(paths == BTreeSet::from(KEPT), "removing keeps or changes:\n{}", left.join("\n"));
    let missing = only_in(&before, &after);
    ensure!(missing.is_empty(), "removing takes or changes:\n{}", missing.join("\n"));
    Ok(())
}

/// Adds a package to the repository.
fn publish(root: &Root, package: &Path) -> Result<()> {
    let name = package.file_name().context("a file has a name")?;
    let repository = root.path(REPOSITORY);
    fs::copy(package, repository.join(name))?;
    command::run(Command::new("createrepo_c").arg("--quiet").arg(repository))
}

/// Returns the installed version. Checks that pping runs, and that rpm finds no changed file except the edited
/// configuration.
fn installed(root: &Root) -> Result<String> {
    root.run("pping --version")?;
    root.run("pping config check")?;
    root.run("man --where pping && man --where 5 pping.toml")?;
    root.run("getent passwd pping")?;
    let changed = root.run("rpm --verify pping || true")?;
    let strange: Vec<_> =
        changed.lines().filter(|line| !line.ends_with(" c /etc/pping/pping.toml")).collect();
    ensure!(strange.is_empty(), "rpm finds that files differ:\n{}", strange.join("\n"));
    root.run("rpm --query pping")
}
