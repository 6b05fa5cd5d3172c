//! `cargo xtask dist`: makes the files of a release, in `target/dist`.

mod build;
mod check;
mod containerfile;
mod image;
mod package;
mod release;
mod repository;
mod rpm;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{
    arch::Arch,
    chore::{self, DIST},
    command, environment, passed, setup,
};
use pping_cross::Cross;

use self::{
    build::Build,
    check::{Packages, reproduce},
    package::Package,
    repository::Key,
    rpm::Rpm,
};

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = DIST.help)]
    Dist(Arguments),
}

fn main() -> ExitCode {
    chore::main(|Chore::Dist(arguments)| run(arguments))
}

/// What to do beside making the files, or instead.
#[derive(clap::Args)]
struct Arguments {
    /// Also try packages, container image and repositories, and upgrade from the last release (as root)
    #[arg(long)]
    check: bool,
    /// Also make the files again, from a clone in another folder, and compare (without uncommitted changes)
    #[arg(long)]
    reproduce: bool,
    /// Make nothing, and add the packages of target/dist to the repositories for apt and dnf in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "reproduce"])]
    repository: Option<PathBuf>,
    /// Sign the repositories with this key of gpg [default: its first secret key]
    #[arg(long, value_name = "ID", requires = "repository")]
    key: Option<String>,
}

/// Makes Debian and RPM packages, archives with static programs, a container image, bills of materials and checksums.
fn run(arguments: Arguments) -> Result<()> {
    let Arguments { check, reproduce, repository, key } = arguments;
    let dist = environment::target_directory().join("dist");
    if let Some(repository) = repository {
        setup::for_repositories()?;
        return repository::lay_out(&dist, &repository, &Key::find(key.as_deref(), None)?);
    }
    ensure!(
        !check || environment::is_root(),
        "checking a package needs root; run `sudo env \"PATH=$PATH\" cargo xtask dist --check`"
    );
    if reproduce {
        passed::clean_commit()?;
    }
    // What follows compiles for a quarter of an hour and longer. Whatever is missing has to be found before.
    let release = Release::current(dist)?;
    setup::for_packaging(check)?;
    if check {
        check::ensure_possible()?;
    }
    let compilers = Arch::ALL.into_iter().map(Cross::prepare).collect::<Result<Vec<_>>>()?;
    clear(&release.directory)?;
    fs::create_dir_all(&release.directory)?;
    let mut packages = Vec::new();
    let builds = Build::make_all(&compilers, &release)?;
    for build in &builds {
        let debian = Package::prepare(build, &release)?;
        let debian_file = debian.debian(&release.directory, &format!("{}-1", release.version))?;
        let rpm = Rpm { build, release: &release };
        let rpm_file = rpm.make(&release.directory, 1)?;
        release::archive(&release, build)?;
        packages.push(Packages { debian, debian_file, rpm, rpm_file });
    }
    let image = image::make(&release.version, &release.epoch, &builds, &release.directory)?;
    release::bills_of_materials(&release)?;
    release::checksums(&release)?;
    if check {
        check::run(&release, &image, &packages)?;
    }
    if reproduce {
        reproduce::again(&release)?;
    }
    eprintln!("{}", passed::last_passed());
    eprintln!("{} has", release.directory.display());
    command::run(Command::new("ls").arg("-l").arg(&release.directory))
}

/// The release.
struct Release {
    version: String,
    /// The commit.
    revision: String,
    /// Time of the commit in seconds since the Unix epoch, so that the same sources make the same files.
    epoch: String,
    /// The same time in the format of mail headers.
    date: String,
    /// The directory for its files.
    directory: PathBuf,
}

impl Release {
    fn current(directory: PathBuf) -> Result<Self> {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(arguments).current_dir(environment::repository());
            Ok::<_, anyhow::Error>(pping_lab::run(&mut git)?.trim().to_owned())
        };
        // All crates of the workspace have the same version.
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self {
            version,
            revision: git(&["rev-parse", "--short=12", "HEAD"])?,
            epoch: git(&["log", "-1", "--format=%ct"])?,
            date: git(&["log", "-1", "--format=%cD"])?,
            directory,
        })
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
