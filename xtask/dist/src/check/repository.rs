//! Checks the repositories: apt and dnf install from them what they have verified, and nothing else.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, command, environment};
use pping_lab::Process;
use tempfile::TempDir;

use super::{dnf, root::Root, server};
use crate::{
    clear,
    repository::{self, APT, DNF, Key, POOL, PUBLIC_KEY, SUITE, files},
};

/// The files that tell apt and dnf about the repositories.
const KEYRING: &str = "/usr/share/keyrings/pping.asc";
const RPM_KEY: &str = "/etc/pki/rpm-gpg/pping.asc";
const SOURCES: &str = "/etc/apt/sources.list.d/pping.sources";

/// Lays out repositories of a release with a new key, and installs from them. Leaves nothing of either.
pub(super) fn check(packages: &Path) -> Result<()> {
    let home = KeyDirectory::new()?;
    let key = home.make_key()?;
    let directory = environment::target_directory().join("dist-check/repository");
    clear(&directory)?;
    repository::lay_out(packages, &directory, &key)?;
    let repositories = Repositories::serve(directory.clone())?;
    with_apt(&repositories, packages)?;
    with_dnf(&repositories, packages)?;
    // A release that is published once more changes no package.
    repository::lay_out(packages, &directory, &key)?;
    drop(repositories);
    let before = listing(&directory)?;
    drop(home);
    ensure!(repository::lay_out(packages, &directory, &key).is_err(), "lists are not signed, without a key");
    ensure!(listing(&directory)? == before, "a failure changed the repositories");
    clear(&directory)
}

/// Lists the files of a directory with their checksums.
fn listing(directory: &Path) -> Result<String> {
    let mut find = Command::new("find");
    let unsorted = pping_lab::run(find.arg(directory).args(["-type", "f", "-exec", "sha256sum", "{}", "+"]))?;
    let mut lines: Vec<_> = unsorted.lines().collect();
    lines.sort_unstable();
    Ok(lines.join("\n"))
}

/// A directory for gpg. Dropping it ends gpg's agent.
struct KeyDirectory(TempDir);

impl KeyDirectory {
    fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700))?;
        Ok(Self(directory))
    }

    /// Makes a key without a passphrase, which is valid for a day.
    fn make_key(&self) -> Result<Key> {
        let mut gpg = Command::new("gpg");
        gpg.arg("--homedir").arg(self.0.path()).args(["--batch", "--quiet", "--passphrase", ""]);
        gpg.args(["--quick-generate-key", "pping's test <pping@localhost>", "rsa3072", "sign", "1d"]);
        pping_lab::run(&mut gpg)?;
        Key::find(None, Some(self.0.path().to_owned()))
    }
}

impl Drop for KeyDirectory {
    fn drop(&mut self) {
        let mut gpgconf = Command::new("gpgconf");
        command::succeeds(gpgconf.arg("--homedir").arg(self.0.path()).args(["--kill", "gpg-agent"]));
    }
}

/// Repositories that are served on loopback.
struct Repositories {
    directory: PathBuf,
    _server: Process,
    address: String,
}

impl Repositories {
    fn serve(directory: PathBuf) -> Result<Self> {
        let (server, address) = server::serve(&directory)?;
        Ok(Self { directory, address, _server: server })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Installs as deploy/README.md says.
fn with_apt(repositories: &Repositories, packages: &Path) -> Result<()> {
    let root = Root::new()?;
    // The system has all dependencies, and other repositories may be out of reach.
    fs::remove_file(root.path("/etc/apt/sources.list"))?;
    let sources = format!(
        "Types: deb\nURIs: {}{APT}\nSuites: stable\nComponents: main\nSigned-By: {KEYRING}\n",
        repositories.address
    );
    fs::write(root.path(SOURCES), sources)?;
    refuses(&root, "apt-get update", "is not signed")?;
    refuses(&root, "apt-get install --yes pping", "Unable to locate package")?;

    root.copy_in(&repositories.path(PUBLIC_KEY), KEYRING)?;
    let list = |arch: Arch| {
        repositories.path(APT).join(SUITE).join(format!("main/binary-{}/Packages", arch.debian()))
    };
    let host = Arch::of_host()?;
    {
        let _changed = [Changed::new(&list(host))?, Changed::new(&list(host).with_extension("gz"))?];
        refuses(&root, "apt-get update", "Hash Sum mismatch")?;
        refuses(&root, "apt-get install --yes pping", "Unable to locate package")?;
    }
    // apt keeps what it has not verified, for the next time.
    root.run("rm -r /var/lib/apt/lists && apt-get update")?;
    let deb = |arch: Arch| package(packages, &format!("_{}.deb", arch.debian()));
    let name = deb(host)?.file_name().context("a file has a name")?.to_owned();
    {
        let _changed = Changed::new(&repositories.path(APT).join(POOL).join(&name))?;
        refuses(&root, "apt-get install --yes pping", "Hash Sum mismatch")?;
    }
    root.run("apt-get install --yes pping")?;
    root.run("pping --version && pping config check")?;

    // The lists of other architectures lead to their packages.
    for arch in Arch::ALL.into_iter().filter(|arch| *arch != host) {
        let name = arch.debian();
        root.run(&format!("dpkg --add-architecture {name} && apt-get update"))?;
        root.run(&format!("mkdir /srv/{name} && cd /srv/{name} && apt-get download pping:{name}"))?;
        let mut downloaded = fs::read_dir(root.path(&format!("/srv/{name}")))?;
        let downloaded = downloaded.next().context("apt downloaded nothing")??.path();
        ensure!(fs::read(downloaded)? == fs::read(deb(arch)?)?, "apt downloaded another package for {name}");
    }
    Ok(())
}

/// Installs as deploy/README.md says, and checks that rpm knows the signature.
fn with_dnf(repositories: &Repositories, packages: &Path) -> Result<()> {
    let host = Arch::of_host()?;
    let file = package(packages, &format!(".{}.rpm", host.name()))?;
    let root = dnf::root(host, &file, &file)?;
    let text = format!(
        "[pping]\nname=pping\nbaseurl={}{DNF}\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://{RPM_KEY}\n",
        repositories.address
    );
    fs::create_dir_all(root.path("/etc/yum.repos.d"))?;
    fs::write(root.path("/etc/yum.repos.d/pping.repo"), text)?;
    let install = "dnf --assumeyes --refresh install pping";
    refuses(&root, install, "GPG key")?;
    root.run("mkdir --parents /etc/pki/rpm-gpg")?;
    root.copy_in(&repositories.path(PUBLIC_KEY), RPM_KEY)?;
    {
        let _changed = Changed::new(&repositories.path(DNF).join("repodata/repomd.xml"))?;
        refuses(&root, install, "GPG signature")?;
    }
    {
        let name = file.file_name().context("a file has a name")?;
        let _changed = Changed::new(&repositories.path(DNF).join(name))?;
        refuses(&root, install, "checksum")?;
    }
    root.run(install)?;
    root.run("pping --version && pping config check")?;
    let signature = root.run("rpm --query --queryformat '%{RSAHEADER:pgpsig}' pping")?;
    ensure!(signature.contains("Key ID"), "the installed package is not signed: {signature}");
    Ok(())
}

/// Returns the package whose name has this end.
fn package(packages: &Path, end: &str) -> Result<PathBuf> {
    let (_, extension) = end.rsplit_once('.').context("a package's name has an extension")?;
    let mut files = files(packages, extension)?.into_iter();
    files
        .find(|file| file.to_string_lossy().ends_with(end))
        .with_context(|| format!("there is no package *{end} in {}", packages.display()))
}

/// Checks that a command line fails for a reason.
fn refuses(root: &Root, line: &str, reason: &str) -> Result<()> {
    // dnf writes some reasons to standard output.
    let error = root
        .run(&format!("{line} >&2"))
        .err()
        .with_context(|| format!("`{line}` is not refused: {reason}"))?;
    let said = format!("{error:#}");
    ensure!(said.contains(reason), "`{line}` is refused, but not because {reason}: {said}");
    Ok(())
}

/// A file of which one byte is changed, until this is dropped.
struct Changed {
    file: PathBuf,
    content: Vec<u8>,
}

impl Changed {
    fn new(file: &Path) -> Result<Self> {
        let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let mut changed = content.clone();
        *changed.last_mut().context("a file has a last byte")? ^= 1;
        fs::write(file, changed)?;
        Ok(Self { file: file.to_owned(), content })
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // A guard can print a failure, but not return it.
        if let Err(error) = fs::write(&self.file, &self.content) {
            eprintln!("{} stays changed: {error}", self.file.display());
        }
    }
}
