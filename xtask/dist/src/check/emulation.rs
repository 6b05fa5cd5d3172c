//! Lets this machine run programs of the other architecture, one by one, in QEMU.

use std::{fs, path::PathBuf, process, process::Command};

use anyhow::{Context as _, Result, ensure};
use pping_chores::{arch::Arch, environment};
use tempfile::TempDir;

/// The first 20 bytes of a 64-bit little-endian ELF program, up to and with the machine, and which bits of them count.
/// The operating system and whether the program is position-independent do not.
const HEADER: &str = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00";
const MASK: &str = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff";

/// An entry of the kernel's `binfmt_misc`, removed on drop.
pub(super) struct Emulation {
    /// The entry, and where the file system is mounted.
    entry: Option<(PathBuf, TempDir)>,
}

impl Emulation {
    /// Has the kernel start programs of an architecture in QEMU. Does nothing on a machine of this architecture.
    ///
    /// The kernel opens QEMU at once, so systems in directories and containers need no copy of it. QEMU has no bpf(2).
    pub(super) fn of(arch: Arch) -> Result<Self> {
        if arch == Arch::of_host()? {
            return Ok(Self { entry: None });
        }
        let program = format!("qemu-{}-static", arch.name());
        let program =
            environment::find_program(&program).with_context(|| format!("there is no {program}"))?;
        // A directory of our own: the usual one may be mounted already, and it is the same file system.
        let directory = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        pping_lab::run(mount.args(["-t", "binfmt_misc", "binfmt_misc"]).arg(directory.path()))
            .context("QEMU can only be registered where the kernel has binfmt_misc")?;
        let name = format!("pping-{}-{}", arch.name(), process::id());
        // From here on, dropping unmounts.
        let emulation = Self { entry: Some((directory.path().join(&name), directory)) };
        let (entry, directory) = emulation.entry.as_ref().context("it was made above")?;
        let machine = match arch {
            Arch::X86_64 => r"\x3e\x00",
            Arch::Aarch64 => r"\xb7\x00",
        };
        let line = format!(":{name}:M::{HEADER}{machine}:{MASK}:{}:F", program.display());
        fs::write(directory.path().join("register"), line).context("registering QEMU")?;
        ensure!(entry.exists(), "the kernel did not register QEMU");
        Ok(emulation)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if let Some((entry, directory)) = self.entry.take() {
            // A guard can print a failure, but not return it.
            if entry.exists()
                && let Err(error) = fs::write(&entry, "-1")
            {
                eprintln!("{} stays registered: {error}", entry.display());
            }
            if let Err(error) = pping_lab::run(Command::new("umount").arg(directory.path())) {
                eprintln!("binfmt_misc stays mounted: {error}");
                // Removing the directory would remove entries of others.
                let _kept = directory.keep();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_covers_the_header() {
        let bytes = |text: &str| text.replace("ELF", r"\x45\x4c\x46").matches(r"\x").count();
        assert_eq!(bytes(HEADER) + 2, 20);
        assert_eq!(bytes(MASK), 20);
    }
}
