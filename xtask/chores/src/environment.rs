//! The environment of a chore: the repository, the search path, its privileges.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::command;

/// Where Debian keeps `ip`, `bpftool` and the programs that `dpkg` calls. `su` without `-` leaves them out of `PATH`.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The root of the repository.
pub fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Returns cargo's target directory of this workspace.
pub fn target_directory() -> PathBuf {
    // Joining an absolute path yields that path.
    repository().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns cargo, at the root of the repository. Under rustup it uses the toolchain that runs this chore, which rustup
/// notes in `RUSTUP_TOOLCHAIN`.
pub fn cargo() -> Command {
    without_package(Command::new("cargo"))
}

/// Has a cargo run at the root of the repository, without the variables that cargo sets about this package. Some build
/// scripts watch them (ring's does), and would run again, with all that depends on them, whenever a chore follows a
/// plain cargo or the other way round.
pub fn without_package(mut cargo: Command) -> Command {
    cargo.current_dir(repository());
    // Only `cargo xtask run` leaves something out.
    cargo.env_remove(pping_ebpf_build::ONLY);
    env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| {
            name.to_str().is_some_and(|it| it.starts_with("CARGO_PKG_") || it.starts_with("CARGO_MANIFEST_"))
        })
        .for_each(|name| {
            cargo.env_remove(name);
        });
    cargo
}

/// True if this process runs as root.
pub fn is_root() -> bool {
    // A process's directory in /proc belongs to its effective user.
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Returns the path of a program on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

/// Restarts this chore with a longer `PATH`, unless it is complete already.
///
/// The directories of [`SYSTEM_DIRECTORIES`] and the one `cargo install` fills go last, so that they add programs but
/// replace none. One restart for the whole process means that a chore finds the same programs as its children.
pub fn complete_path() -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let Some(longer) = completed(&path, pping_ebpf_build::install_dir())? else { return Ok(()) };
    let this = env::current_exe().context("could not tell which program this is")?;
    let mut again = Command::new(this);
    again.args(env::args_os().skip(1)).env("PATH", longer);
    command::replace_process(&mut again).map(|never| match never {})
}

fn completed(path: &OsString, install_dir: Option<PathBuf>) -> Result<Option<OsString>> {
    let mut directories: Vec<_> = env::split_paths(path).collect();
    let given = directories.len();
    for directory in install_dir.into_iter().chain(SYSTEM_DIRECTORIES.map(PathBuf::from)) {
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    if directories.len() == given {
        return Ok(None);
    }
    env::join_paths(directories)
        .map(Some)
        .context("the directory that `cargo install` fills cannot be on PATH")
}

fn is_executable(file: &Path) -> bool {
    const ANY_EXECUTE_BIT: u32 = 0o111;
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & ANY_EXECUTE_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_completed_at_its_end_and_once() {
        let longer = completed(&"/usr/bin:/sbin".into(), Some("/home/me/.cargo/bin".into()))
            .expect("a valid path")
            .expect("something is missing");
        assert_eq!(longer, "/usr/bin:/sbin:/home/me/.cargo/bin:/usr/local/sbin:/usr/sbin");
        assert_eq!(completed(&longer, Some("/home/me/.cargo/bin".into())).expect("a valid path"), None);
    }

    #[test]
    fn programs_are_found_where_they_are() {
        assert!(find_program("sh").is_some_and(|file| file.ends_with("sh")));
        assert_eq!(find_program("no-such-program"), None);
    }
}
