//! Compiles the programs of a release, and has pping write its man pages and completions.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, command, environment};
use pping_cross::Cross;
use pping_ebpf_build::{remap, source_folders};

use super::{Release, copy_into};

/// The folder, beside what cargo compiles, with the files that packages take from a build.
const FOLDER: &str = "package";

/// The pages that `pping generate` writes, and the file for each.
const PAGES: [(&str, &str); 5] = [
    ("man", "pping.1"),
    ("man-toml", "pping.toml.5"),
    ("complete-bash", "pping.bash"),
    ("complete-zsh", "_pping"),
    ("complete-fish", "pping.fish"),
];

/// The man pages, which are packaged compressed.
const MANUAL: [&str; 2] = ["pping.1", "pping.toml.5"];

/// The program of one architecture and what goes with it.
pub(super) struct Build {
    pub(super) arch: Arch,
    /// The program: static, stripped.
    pub(super) program: PathBuf,
    /// The directory with the man pages (gz) and completions that the host's own program generated.
    pub(super) pages: PathBuf,
}

impl Build {
    /// Compiles static programs with all compilers, the host's first.
    pub(super) fn make_all(compilers: &[Cross], release: &Release) -> Result<Vec<Self>> {
        let host = Arch::of_host()?;
        let is_own = |cross: &&Cross| cross.arch() == host;
        let own = compilers.iter().find(is_own).context("there is a compiler for this machine")?;
        let own = Self::compile(own, release)?;
        generate(&own)?;
        let mut builds = vec![own];
        for cross in compilers.iter().filter(|cross| !is_own(cross)) {
            let build = Self::compile(cross, release)?;
            // The host cannot run this program, and its pages are the same.
            copy_into(&build.pages, builds[0].files())?;
            builds.push(build);
        }
        Ok(builds)
    }

    /// Returns the files of the man pages and completions.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let manual = MANUAL.map(|file| self.pages.join(format!("{file}.gz")));
        PAGES.map(|(_, file)| self.pages.join(file)).into_iter().chain(manual)
    }

    fn compile(cross: &Cross, release: &Release) -> Result<Self> {
        let mut cargo = cross.cargo(&remapped());
        cargo.args(["build", "--release", "--package", "pping"]).args(cross.target());
        compile(&mut cargo, release)?;
        let directory = cross.built("release");
        let compiled = directory.join("pping");
        cross.ensure_static(&compiled)?;
        names_no_folder(&compiled, cross.sysroot())?;
        let pages = directory.join(FOLDER);
        fs::create_dir_all(&pages)?;
        let program = pages.join("pping");
        command::run(cross.gnu("strip").arg("-o").arg(&program).arg(&compiled))?;
        Ok(Self { arch: cross.arch(), program, pages })
    }
}

/// Compiles the program of the host's own Debian package, which uses the libraries of its machine. Puts it, and copies
/// of the build's pages, where cargo-deb takes them from, and returns this directory.
pub(super) fn dynamic(build: &Build, release: &Release) -> Result<PathBuf> {
    let mut cargo = pping_cross::compiler();
    cargo.args(["build", "--release", "--package", "pping"]).env("RUSTFLAGS", remapped());
    compile(&mut cargo, release)?;
    let directory = environment::target_directory().join("release");
    let compiled = directory.join("pping");
    names_no_folder(&compiled, None)?;
    let pages = directory.join(FOLDER);
    copy_into(&pages, build.files())?;
    command::run(Command::new("strip").arg("-o").arg(pages.join("pping")).arg(&compiled))?;
    Ok(pages)
}

fn compile(cargo: &mut Command, release: &Release) -> Result<()> {
    command::run(cargo.env("CFLAGS", remapped_c()).env("PPING_REVISION", &release.revision))
}

/// Has the program write its man pages and completions.
fn generate(build: &Build) -> Result<()> {
    for (page, file) in PAGES {
        let text = pping_lab::run(Command::new(&build.program).args(["generate", page]))?;
        fs::write(build.pages.join(file), text)?;
    }
    for page in MANUAL {
        compress(&build.pages.join(page))?;
    }
    Ok(())
}

/// Writes a compressed copy beside a file.
pub(super) fn compress(file: &Path) -> Result<()> {
    command::run(Command::new("gzip").args(["--force", "--keep", "--best", "--no-name"]).arg(file))
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

/// Fails if a program names a folder of this machine from which it was compiled: of its sources, or of the standard
/// library.
fn names_no_folder(program: &Path, sysroot: Option<&Path>) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let sources = source_folders().map(|(folder, _)| folder);
    for folder in sources.chain(sysroot.map(Path::to_owned)) {
        let folder = folder.display().to_string();
        let is_named = bytes.windows(folder.len()).any(|window| window == folder.as_bytes());
        ensure!(!is_named, "{} names {folder}, where its sources were compiled", program.display());
    }
    Ok(())
}
