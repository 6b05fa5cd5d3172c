//! The programs of a guest: this machine's own or, for another processor, Debian's.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use pping_chores::{arch::Arch, environment};
use pping_cross::archive::{Archive, BOOKWORM, BOOKWORM_SECURITY};

/// The packages with the programs that a guest uses.
const PACKAGES: [&str; 7] =
    ["busybox", "dash", "iproute2", "iputils-ping", "bpftool", "util-linux", "tcpdump"];

/// Where Debian has programs.
const DIRECTORIES: [&str; 4] = ["usr/bin", "bin", "usr/sbin", "sbin"];

/// Programs and libraries for an architecture.
pub(super) struct GuestTools {
    arch: Arch,
    /// The directory with Debian's packages of another architecture.
    foreign: Option<PathBuf>,
}

impl GuestTools {
    /// Returns the tools. Fetches packages of another architecture into a directory, unless they are there already.
    pub(super) fn get(arch: Arch, directory: &Path) -> Result<Self> {
        if arch == Arch::of_host()? {
            return Ok(Self { arch, foreign: None });
        }
        let tools = directory.join("tools");
        let unpacked = tools.join(arch.debian());
        if !unpacked.is_dir() {
            eprintln!("fetching {} for {}", PACKAGES.join(", "), arch.debian());
            fs::create_dir_all(&tools)?;
            let index = directory.join("apt").join(arch.debian()).join("tools");
            let archive = Archive::update(index, arch, &[BOOKWORM, BOOKWORM_SECURITY])?;
            let scratch = tempfile::tempdir_in(&tools)?;
            let root = scratch.path().join("root");
            fs::create_dir(&root)?;
            archive.unpack_with_dependencies(&PACKAGES, &root)?;
            // The last step, so that a directory of this name is complete.
            fs::rename(root, &unpacked)?;
        }
        Ok(Self { arch, foreign: Some(unpacked) })
    }

    /// Returns the file of a program.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf> {
        let Some(root) = &self.foreign else {
            return environment::find_program(name).with_context(|| format!("there is no {name}"));
        };
        let mut files = DIRECTORIES.iter().map(|directory| root.join(directory).join(name));
        files.find(|file| file.is_file()).with_context(|| {
            format!("there is no {name} in {}; remove it to fetch the packages again", root.display())
        })
    }

    /// Returns the names that busybox acts on.
    pub(super) fn applets(&self) -> Result<Vec<String>> {
        let busybox = self.program("busybox")?;
        let mut list = match &self.foreign {
            None => Command::new(busybox),
            Some(root) => {
                let mut emulator = Command::new(format!("qemu-{}-static", self.arch.name()));
                emulator.arg("-L").arg(root).arg(busybox);
                emulator
            }
        };
        Ok(pping_lab::run(list.arg("--list"))?.lines().map(str::to_owned).collect())
    }

    /// Returns the shared libraries that programs need, and their loader: the paths in the guest, and the files.
    pub(super) fn libraries(&self, programs: &[PathBuf]) -> Result<BTreeMap<PathBuf, PathBuf>> {
        let mut libraries = BTreeMap::new();
        let mut files = programs.to_vec();
        while let Some(file) = files.pop() {
            let mut readelf = Command::new("readelf");
            readelf.args(["--program-headers", "--dynamic", "--wide"]).arg(&file).env("LC_ALL", "C");
            for needed in needed(&pping_lab::run(&mut readelf)?) {
                let (path, library) =
                    self.library(&needed).with_context(|| format!("{} needs {needed}", file.display()))?;
                if libraries.insert(path, library.clone()).is_none() {
                    files.push(library);
                }
            }
        }
        Ok(libraries)
    }

    /// Looks for a library by its name, or for a loader by its path.
    fn library(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let root = self.foreign.as_deref().unwrap_or(Path::new("/"));
        let gnu = self.arch.gnu();
        let directories = [format!("lib/{gnu}"), format!("usr/lib/{gnu}"), "lib".into(), "usr/lib".into()];
        let paths = match name.strip_prefix('/') {
            Some(path) => vec![PathBuf::from(path)],
            None => directories.iter().map(|directory| Path::new(directory).join(name)).collect(),
        };
        let path = paths.into_iter().find(|path| root.join(path).is_file());
        let path = path.with_context(|| format!("{} has no such library", root.display()))?;
        Ok((Path::new("/").join(&path), root.join(path)))
    }
}

/// Returns the libraries and the loader that a file names, as `readelf` prints them.
fn needed(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let markers = ["(NEEDED)", "[Requesting program interpreter: "];
        let marker = markers.into_iter().find(|marker| line.contains(marker))?;
        let (_, rest) = line.split_once(marker)?;
        let name = rest.rsplit_once('[').map_or(rest, |(_, name)| name);
        Some(name.trim().trim_end_matches(']').to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn libraries_are_those_that_the_loader_finds() {
        let tools = GuestTools { arch: Arch::of_host().expect("it is known"), foreign: None };
        for name in ["sh", "ip"] {
            let program = tools.program(name).expect("it is installed");
            let names = |paths: Vec<PathBuf>| -> BTreeSet<_> {
                paths.iter().filter_map(|path| Some(path.file_name()?.to_owned())).collect()
            };
            let found = tools.libraries(std::slice::from_ref(&program)).expect("all are there");
            assert!(found.keys().all(|path| path.is_file()), "{found:?}");
            let ldd = pping_lab::run(Command::new("ldd").arg(&program)).expect("it is dynamic");
            let loaded = ldd.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
            assert_eq!(names(found.into_keys().collect()), names(loaded.collect()), "{name}");
        }
    }

    #[test]
    fn what_a_program_needs_is_read() {
        let text = "  INTERP  0x000238 0x0000000000000238\n\
                    \x20     [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]\n\
                    \x20 LOAD  0x000000\n\
                    \x200x0000000000000001 (NEEDED)             Shared library: [libmnl.so.0]\n\
                    \x200x0000000000000001 (NEEDED)             Shared library: [libc.so.6]\n\
                    \x200x000000000000000e (SONAME)             Library soname: [libx.so.1]\n";
        assert_eq!(needed(text), ["/lib/ld-linux-aarch64.so.1", "libmnl.so.0", "libc.so.6"]);
    }
}
