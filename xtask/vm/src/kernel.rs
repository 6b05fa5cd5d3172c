//! Kernels that are fetched, unpacked and kept. None is installed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow};
use pping_chores::arch::Arch;
use pping_cross::archive;

use super::{
    boot_image,
    index::{self, Candidate},
    line::Line,
};

/// Where a package may have the kernel itself: before packages were split, and since.
const IMAGES: [&str; 2] = ["boot/vmlinuz-", "usr/lib/modules/"];

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) line: Line,
    pub(super) arch: Arch,
    /// The version of its package.
    pub(super) version: String,
    /// What `uname -r` says in it.
    pub(super) release: String,
    /// The directory with `vmlinuz` and `lib/modules`.
    pub(super) directory: PathBuf,
}

impl Kernel {
    /// Returns the newest kernel of a line, and fetches it if needed. Without network, returns the newest that was
    /// fetched before.
    pub(super) fn get(line: Line, arch: Arch, directory: &Path) -> Result<Self> {
        let kept = directory.join("kernels");
        fs::create_dir_all(&kept)?;
        let get = || {
            let mut failure = None;
            // An index may name what its archive does not have.
            for candidate in index::newest(&line, arch, &directory.join("apt"))? {
                match Self::of(line, arch, &candidate, directory, &kept) {
                    Ok(kernel) => return Ok(kernel),
                    Err(error) => {
                        eprintln!("{line}: {} could not be fetched", candidate.version);
                        failure.get_or_insert(error);
                    }
                }
            }
            Err(failure.unwrap_or_else(|| anyhow!("there is no kernel of this line")))
        };
        get().or_else(|error| {
            let Some(kernel) = Self::kept(line, arch, &kept)? else { return Err(error) };
            eprintln!("{line}: using {}, which was fetched earlier: {error:#}", kernel.version);
            Ok(kernel)
        })
    }

    /// Returns the directory of its modules.
    pub(super) fn modules(&self) -> PathBuf {
        self.directory.join("lib/modules").join(&self.release)
    }

    fn of(line: Line, arch: Arch, candidate: &Candidate, directory: &Path, kept: &Path) -> Result<Self> {
        let path = kept.join(candidate.key());
        if !path.is_dir() {
            eprintln!("{line}: fetching {} {}", candidate.image, candidate.version);
            let scratch = tempfile::tempdir_in(directory)?;
            let (packages, files) = (scratch.path().join("packages"), scratch.path().join("files"));
            let kernel = scratch.path().join("kernel");
            for directory in [&packages, &files, &kernel] {
                fs::create_dir(directory)?;
            }
            for package in candidate.fetch(&packages)? {
                archive::unpack(&package, &files)?;
            }
            arrange(&candidate.release, arch, &files, &kernel)
                .with_context(|| format!("unpacking {}", candidate.image))?;
            remove_others(line, arch, candidate, kept);
            // The last step, so that a directory of this name is complete.
            fs::rename(&kernel, &path)?;
        }
        Ok(Self {
            line,
            arch,
            version: candidate.version.clone(),
            release: candidate.release.clone(),
            directory: path,
        })
    }

    /// Returns the newest kernel of a line that was fetched before.
    fn kept(line: Line, arch: Arch, kept: &Path) -> Result<Option<Self>> {
        let mut newest: Option<Self> = None;
        for entry in fs::read_dir(kept)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some((image, version)) = name.split_once('_') else { continue };
            let is_newer = || newest.as_ref().is_none_or(|it| index::is_newer(version, &it.version));
            if line.has(version) && image.ends_with(&index::flavour(arch)) && is_newer() {
                newest = Some(Self {
                    line,
                    arch,
                    version: version.to_owned(),
                    release: image.trim_start_matches("linux-image-").to_owned(),
                    directory: kept.join(&name),
                });
            }
        }
        Ok(newest)
    }
}

/// Takes the kernel and its modules out of the unpacked files.
fn arrange(release: &str, arch: Arch, files: &Path, kernel: &Path) -> Result<()> {
    let paths = IMAGES.map(|path| match path.strip_suffix('/') {
        Some(_) => files.join(path).join(release).join("vmlinuz"),
        None => files.join(format!("{path}{release}")),
    });
    let image = paths.iter().find(|path| path.is_file()).context("there is no kernel in it")?;
    match arch {
        Arch::X86_64 => fs::rename(image, kernel.join("vmlinuz"))?,
        Arch::Aarch64 => fs::write(kernel.join("vmlinuz"), boot_image::plain(fs::read(image)?)?)?,
    }
    let modules = kernel.join("lib/modules");
    fs::create_dir_all(&modules)?;
    let unpacked = ["lib/modules", "usr/lib/modules"].map(|path| files.join(path).join(release));
    let unpacked = unpacked.iter().find(|path| path.is_dir()).context("there are no modules in it")?;
    fs::rename(unpacked, modules.join(release))?;
    pping_lab::run(Command::new("depmod").arg("--basedir").arg(kernel).arg(release))?;
    Ok(())
}

/// Removes the older kernels of a line, as far as possible. One that stays only takes space.
fn remove_others(line: Line, arch: Arch, candidate: &Candidate, kept: &Path) {
    let remove = || -> io::Result<()> {
        for entry in fs::read_dir(kept)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Every kernel belongs to the line `newest`, so this line must not remove any.
            let is_of_line = line.name != "newest"
                && name.split_once('_').is_some_and(|(image, version)| {
                    line.has(version) && image.ends_with(&index::flavour(arch))
                });
            if is_of_line && name != candidate.key() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    };
    remove().ok();
}
