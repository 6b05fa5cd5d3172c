//! `cargo xtask dist --repository`: signed repositories for apt and dnf, from the packages of a release.
//!
//! Packages of earlier releases stay in the repositories. A published package is never replaced by another of its name.
//! The lists of packages are replaced once the new ones are complete and signed, so a failure changes nothing for users.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, command, environment};
use tempfile::TempDir;

use super::release::CHECKSUMS;

/// The directories of the repositories, and the key that users install, which is the same for both.
pub(super) const APT: &str = "apt";
pub(super) const DNF: &str = "rpm";
pub(super) const PUBLIC_KEY: &str = "pping.asc";

/// Where apt looks for what the repository has, and for packages.
pub(super) const SUITE: &str = "dists/stable";
pub(super) const POOL: &str = "pool/main/p/pping";

/// Where dnf looks for what the repository has.
const LISTS: &str = "repodata";

/// A key that signs.
pub(super) struct Key {
    /// gpg's directory, unless it is the user's own.
    home: Option<PathBuf>,
    fingerprint: String,
}

impl Key {
    /// Finds a secret key by its id, or the first one. `home` is gpg's directory, unless it is the user's own.
    pub(super) fn find(id: Option<&str>, home: Option<PathBuf>) -> Result<Self> {
        let mut key = Self { home, fingerprint: String::new() };
        let keys = pping_lab::run(key.gpg().args(["--with-colons", "--list-secret-keys"]).args(id))
            .with_context(|| format!("no secret key {}", id.unwrap_or_default()))?;
        let fingerprint = keys.lines().find_map(|line| line.strip_prefix("fpr:"));
        let fingerprint =
            fingerprint.context("gpg has no secret key to sign with: make one, or name one with --key")?;
        fingerprint.trim_matches(':').clone_into(&mut key.fingerprint);
        Ok(key)
    }

    /// Returns gpg, for this key.
    fn gpg(&self) -> Command {
        let mut gpg = Command::new("gpg");
        if let Some(home) = &self.home {
            gpg.arg("--homedir").arg(home);
        }
        gpg.args(["--batch", "--yes"]);
        gpg
    }

    /// Signs a file. `kind` says what the signature is like.
    fn sign(&self, file: &Path, kind: &[&str], signature: &Path) -> Result<()> {
        let mut gpg = self.gpg();
        gpg.args(["--local-user", &self.fingerprint, "--armor", "--output"]).arg(signature).args(kind);
        command::run(gpg.arg(file))
    }

    /// Signs a package within its file.
    fn sign_rpm(&self, package: &Path) -> Result<()> {
        let gpg = environment::find_program("gpg").context("there is no gpg")?;
        let mut rpmsign = Command::new("rpmsign");
        // Debian's rpm would look for gpg2.
        rpmsign.args(["--define", &format!("__gpg {}", gpg.display())]);
        rpmsign.args(["--define", &format!("_gpg_name {}", self.fingerprint)]);
        if let Some(home) = &self.home {
            rpmsign.args(["--define", &format!("_gpg_path {}", home.display())]);
        }
        command::run(rpmsign.arg("--addsign").arg(package))
    }
}

/// Adds the packages of a release to the repositories in a directory, which are made if there are none.
pub(super) fn lay_out(packages: &Path, directory: &Path, key: &Key) -> Result<()> {
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--quiet", CHECKSUMS]).current_dir(packages);
    pping_lab::run(&mut sums)
        .with_context(|| format!("{} has no complete release: run `cargo xtask dist`", packages.display()))?;
    fs::create_dir_all(directory)?;
    apt(&files(packages, "deb")?, &directory.join(APT), key)?;
    dnf(&files(packages, "rpm")?, &directory.join(DNF), key)?;
    let public = pping_lab::run(key.gpg().args(["--armor", "--export", &key.fingerprint]))?;
    fs::write(directory.join(PUBLIC_KEY), public).context("exporting the key")
}

fn apt(packages: &[PathBuf], directory: &Path, key: &Key) -> Result<()> {
    let pool = directory.join(POOL);
    fs::create_dir_all(&pool)?;
    for package in packages {
        let published = pool.join(package.file_name().context("a file has a name")?);
        if !published.exists() {
            fs::copy(package, &published)?;
        }
        ensure!(
            fs::read(package)? == fs::read(&published)?,
            "{} is published already, with other content: raise the version",
            published.display()
        );
    }
    let unfinished = tempfile::tempdir_in(directory)?;
    let suite = unfinished.path().join("suite");
    let ftparchive = |arguments: &[&str]| {
        let mut ftparchive = Command::new("apt-ftparchive");
        // Paths in the lists are relative to the repository. apt has not needed MD5 and SHA-1 for long.
        ftparchive.args(["-o", "APT::FTPArchive::MD5=false", "-o", "APT::FTPArchive::SHA1=false"]);
        pping_lab::run(ftparchive.args(arguments).current_dir(directory))
    };
    for arch in Arch::ALL.map(Arch::debian) {
        let list = suite.join(format!("main/binary-{arch}/Packages"));
        fs::create_dir_all(list.parent().context("it has a parent")?)?;
        fs::write(&list, ftparchive(&["--arch", arch, "packages", "pool"])?)?;
        command::run(Command::new("gzip").args(["--force", "--keep", "--best", "--no-name"]).arg(&list))?;
    }
    let fields = [
        ("Origin", "pping".to_owned()),
        ("Label", "pping".to_owned()),
        ("Suite", "stable".to_owned()),
        ("Codename", "stable".to_owned()),
        ("Architectures", Arch::ALL.map(Arch::debian).join(" ")),
        ("Components", "main".to_owned()),
    ];
    let options = fields.map(|(field, value)| format!("-oAPT::FTPArchive::Release::{field}={value}"));
    let mut arguments: Vec<_> = options.iter().map(String::as_str).collect();
    let path = suite.display().to_string();
    arguments.extend(["release", &path]);
    let list = ftparchive(&arguments)?;
    let release = suite.join("Release");
    fs::write(&release, list)?;
    key.sign(&release, &["--clear-sign"], &suite.join("InRelease"))?;
    key.sign(&release, &["--detach-sign"], &suite.join("Release.gpg"))?;
    replace(&directory.join(SUITE), &suite, &unfinished)
}

fn dnf(packages: &[PathBuf], directory: &Path, key: &Key) -> Result<()> {
    fs::create_dir_all(directory)?;
    for package in packages {
        let name = package.file_name().context("a file has a name")?;
        let published = directory.join(name);
        if !published.exists() {
            // A signature says when it was made, so the release's own file has none.
            let unfinished = tempfile::tempdir_in(directory)?;
            let copy = unfinished.path().join(name);
            fs::copy(package, &copy)?;
            key.sign_rpm(&copy)?;
            fs::rename(copy, &published)?;
        }
        ensure!(
            content(package)? == content(&published)?,
            "{} is published already, with other content: raise the version",
            published.display()
        );
    }
    let unfinished = tempfile::tempdir_in(directory)?;
    let mut createrepo = Command::new("createrepo_c");
    command::run(createrepo.args(["--quiet", "--outputdir"]).arg(unfinished.path()).arg(directory))?;
    let lists = unfinished.path().join(LISTS);
    let list = lists.join("repomd.xml");
    key.sign(&list, &["--detach-sign"], &list.with_extension("xml.asc"))?;
    replace(&directory.join(LISTS), &lists, &unfinished)
}

/// Replaces a directory, if there is one, by a complete one. `unfinished` is on the same file system.
fn replace(old: &Path, new: &Path, unfinished: &TempDir) -> Result<()> {
    if old.exists() {
        fs::rename(old, unfinished.path().join("old"))?;
    } else if let Some(parent) = old.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(new, old).with_context(|| format!("replacing {}", old.display()))
}

/// Returns the checksums of a package, without those of its signature.
fn content(package: &Path) -> Result<String> {
    let mut rpm = Command::new("rpm");
    rpm.args(["--query", "--package", "--nosignature", "--queryformat", "%{SHA256HEADER} %{PAYLOADDIGEST}"]);
    Ok(pping_lab::run(rpm.arg(package))?)
}

/// Returns the files of a directory with an extension, of which there has to be one.
pub(super) fn files(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == extension));
    ensure!(!files.is_empty(), "there is no .{extension} in {}: run `cargo xtask dist`", directory.display());
    files.sort();
    Ok(files)
}
