//! Builds programs that need no library of the machine they run on, for this processor or another.
//!
//! For another processor, Debian has GNU's compiler and C library in packages of this one, and Rust's standard library
//! only in that processor's. The latter is unpacked into cargo's target directory, and `rustc` finds it there by a
//! sysroot of links.

pub mod archive;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, command, environment, setup};
use pping_ebpf_build::{Toolchain, remap};

use self::archive::{Archive, BOOKWORM_SECURITY};

/// Debian's package with Rust's standard library.
const STANDARD_LIBRARY: &str = "libstd-rust-web-dev";
/// Debian's package with the compiler for it.
const COMPILER: &str = "rustc-web";
/// The directory of a sysroot with the standard libraries.
const LIBRARIES: &str = "lib/rustlib";

/// A compiler of static programs for an architecture.
pub struct Cross {
    arch: Arch,
    /// The compiler's directory with the standard libraries, where it is not the compiler's own.
    sysroot: Option<PathBuf>,
}

impl Cross {
    /// Makes the compiler ready: installs tools that are missing, and fetches the standard library.
    pub fn prepare(arch: Arch) -> Result<Self> {
        setup::for_cross_building(arch)?;
        let sysroot = if arch == Arch::of_host()? { None } else { Some(sysroot(arch)?) };
        Ok(Self { arch, sysroot })
    }

    /// The architecture of the programs.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Returns cargo for static programs. The caller adds the subcommand and then [`Self::target`]. `flags` are further
    /// flags of `rustc`.
    pub fn cargo(&self, flags: &str) -> Command {
        let mut cargo = compiler();
        let variable = |name: &str| {
            format!("CARGO_TARGET_{}_{name}", self.arch.triple().to_uppercase().replace('-', "_"))
        };
        // With `--target`, the flags do not reach build scripts and macros, which have to be dynamic.
        let mut all = "-C target-feature=+crt-static ".to_owned() + flags;
        if let Some(sysroot) = &self.sysroot {
            let sysroot_flag = format!(" --sysroot {} {}", sysroot.display(), remap(sysroot, "rust"));
            all.push_str(&sysroot_flag);
            cargo.env(variable("LINKER"), format!("{}-gcc", self.arch.gnu()));
        }
        cargo.env(variable("RUSTFLAGS"), all);
        cargo
    }

    /// The arguments that choose the target.
    pub fn target(&self) -> [&'static str; 2] {
        ["--target", self.arch.triple()]
    }

    /// Returns the directory with what cargo has built in a profile, `debug` or `release`.
    pub fn built(&self, profile: &str) -> PathBuf {
        environment::target_directory().join(self.arch.triple()).join(profile)
    }

    /// Returns the folder whose name must not be in a program, if there is one.
    pub fn sysroot(&self) -> Option<&Path> {
        self.sysroot.as_deref()
    }

    /// Returns a command that runs a program of the architecture, which needs no library.
    pub fn emulated(&self, program: &Path) -> Command {
        if self.sysroot.is_none() {
            return Command::new(program);
        }
        let mut command = Command::new(format!("qemu-{}-static", self.arch.name()));
        command.arg(program);
        command
    }

    /// Returns GNU's program of this name for the architecture, such as `strip`.
    pub fn gnu(&self, program: &str) -> Command {
        Command::new(format!("{}-{program}", self.arch.gnu()))
    }

    /// Fails if a program would need a library of the machine it runs on.
    pub fn ensure_static(&self, program: &Path) -> Result<()> {
        // A dynamic program would name an interpreter.
        let headers =
            command::output(self.gnu("readelf").args(["--program-headers", "--wide"]).arg(program))?;
        ensure!(!headers.contains("INTERP"), "{} is not static", program.display());
        Ok(())
    }
}

/// Returns cargo of Debian's compiler, where there is one: all releases come from one compiler, and a standard library
/// goes with no other.
pub fn compiler() -> Command {
    let toolchain = Toolchain::find().filter(|toolchain| toolchain.is_packaged());
    toolchain.map_or_else(environment::cargo, |it| environment::without_package(it.command("cargo")))
}

/// Returns a sysroot of Debian's compiler that has the standard library of another architecture too.
fn sysroot(arch: Arch) -> Result<PathBuf> {
    ensure!(
        Toolchain::find().is_some_and(Toolchain::is_packaged),
        "for {} pping is built by Debian's {COMPILER}, which is not here: run `cargo xtask setup` on Debian 12",
        arch.name()
    );
    let mut query = Command::new("dpkg-query");
    let version = command::output(query.args(["--show", "--showformat", "${Version}", COMPILER]))?;
    let directory =
        environment::target_directory().join("cross").join(format!("{}-{version}", arch.debian()));
    if !directory.is_dir() {
        eprintln!("fetching Rust's standard library for {}", arch.name());
        let parent = directory.parent().context("it has a parent")?;
        fs::create_dir_all(parent)?;
        let scratch = tempfile::tempdir_in(parent)?;
        let made = unpack_sysroot(arch, &version, scratch.path(), parent)?;
        // The last step, so that a directory of this name is complete.
        fs::rename(made, &directory)?;
    }
    Ok(directory)
}

fn unpack_sysroot(arch: Arch, version: &str, scratch: &Path, parent: &Path) -> Result<PathBuf> {
    let archive = Archive::update(parent.join(format!("apt-{}", arch.debian())), arch, &[BOOKWORM_SECURITY])?;
    let (packages, made) = (scratch.join("packages"), scratch.join("sysroot"));
    fs::create_dir(&packages)?;
    let library = format!("{STANDARD_LIBRARY}={version}");
    let files = archive.download([library], &packages).with_context(|| {
        format!("there is no {STANDARD_LIBRARY} {version} for {}: upgrade {COMPILER}", arch.debian())
    })?;
    for file in files {
        archive::unpack(&file, scratch)?;
    }
    let libraries = made.join(LIBRARIES);
    fs::create_dir_all(&libraries)?;
    fs::rename(scratch.join("usr").join(LIBRARIES).join(arch.triple()), libraries.join(arch.triple()))?;
    let host = Arch::of_host()?.triple();
    symlink(Path::new("/usr").join(LIBRARIES).join(host), libraries.join(host))?;
    Ok(made)
}
