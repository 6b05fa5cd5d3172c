//! `cargo xtask dist`: makes the files of a release, in `target/dist`.

mod check;
mod machine;
mod package;
mod release;
mod root;
mod service;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use pping_ebpf_build::{remap, source_folders};

use self::package::Package;
use crate::{command, environment, everything, setup};

/// Makes a Debian package, an archive with a static program, bills of materials and checksums. With `check`, tries the
/// package in a separate Debian system.
pub(crate) fn run(check: bool) -> Result<()> {
    ensure!(
        !check || environment::is_root(),
        "checking a package needs root; run `sudo env \"PATH=$PATH\" cargo xtask dist --check`"
    );
    setup::for_packaging(check)?;
    let dist = environment::target_directory().join("dist");
    clear(&dist)?;
    fs::create_dir_all(&dist)?;
    let release = Release::current(dist)?;
    let program = compile()?;
    let package = Package::prepare(&program, &release)?;
    let debian = package.debian(&release.directory, &format!("{}-1", release.version))?;
    release::archive(&release, &package)?;
    release::bills_of_materials(&release)?;
    release::checksums(&release)?;
    if check {
        let directory = environment::target_directory().join("dist-check");
        fs::create_dir_all(&directory)?;
        let newer = package.debian(&directory, &format!("{}-2", release.version))?;
        check::lintian(&debian)?;
        check::lifecycle(&debian, &newer)?;
        service::try_out(&debian, &newer)?;
    }
    eprintln!("{}", everything::last_passed());
    eprintln!("{} has", release.directory.display());
    command::run(Command::new("ls").arg("-l").arg(&release.directory))
}

/// Compiles the program of the package.
fn compile() -> Result<PathBuf> {
    let mut cargo = environment::cargo();
    cargo.args(["build", "--release", "--package", "pping"]).env("RUSTFLAGS", remapped());
    command::run(cargo.env("CFLAGS", remapped_c()))?;
    let program = environment::target_directory().join("release/pping");
    names_no_folder(&program)?;
    Ok(program)
}

/// Returns compiler flags that keep the folders of this machine out of the names of sources.
fn remapped() -> String {
    let flags: Vec<_> = source_folders().map(|(folder, name)| remap(&folder, name)).collect();
    flags.join(" ")
}

/// The same for crates that are written in C and assembly.
fn remapped_c() -> String {
    let flags =
        source_folders().map(|(folder, name)| format!("-ffile-prefix-map={}={name}", folder.display()));
    flags.collect::<Vec<_>>().join(" ")
}

/// Fails if a program names a folder of this machine from which it was compiled.
fn names_no_folder(program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    for (folder, _) in source_folders() {
        let folder = folder.display().to_string();
        let is_named = bytes.windows(folder.len()).any(|window| window == folder.as_bytes());
        ensure!(!is_named, "{} names {folder}, where its sources were compiled", program.display());
    }
    Ok(())
}

/// The release.
struct Release {
    version: String,
    /// Time of the commit in seconds since the Unix epoch, so that the same sources make the same files.
    epoch: String,
    /// The same time in the format of mail headers.
    date: String,
    /// The directory for its files.
    directory: PathBuf,
}

impl Release {
    fn current(directory: PathBuf) -> Result<Self> {
        let date = |format| {
            let mut git = Command::new("git");
            git.args(["log", "-1", format]).current_dir(environment::repository());
            Ok::<_, anyhow::Error>(pping_lab::run(&mut git)?.trim().to_owned())
        };
        // All crates of the workspace have the same version.
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { version, epoch: date("--format=%ct")?, date: date("--format=%cD")?, directory })
    }

    /// Returns cargo with the time of the commit for what it writes.
    fn cargo(&self) -> Command {
        let mut cargo = environment::cargo();
        cargo.env("SOURCE_DATE_EPOCH", &self.epoch);
        cargo
    }
}

/// Removes a directory, if it exists.
fn clear(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("clearing {}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Copies files into a directory, and creates the directory if needed.
fn copy_into(directory: &Path, files: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    fs::create_dir_all(directory)?;
    for file in files {
        let name = file.file_name().context("a file has a name")?;
        fs::copy(&file, directory.join(name)).with_context(|| format!("copying {}", file.display()))?;
    }
    Ok(())
}
