//! A separate Debian system to try a package in.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use pping_chores::{arch::Arch, command, environment};

use crate::clear;

/// The Debian release that the packages are for.
const CODENAME: &str = "bookworm";

/// Packages that pping's depends on or works with, so that later changes come from pping's package.
const INCLUDED: &str = "systemd,procps,man-db,logrotate";

/// Directories that change with every run, and those of apt, dpkg, rpm and dnf.
const RECORDED: [&str; 11] = [
    "/dev",
    "/proc",
    "/run",
    "/sys",
    "/tmp",
    "/var/cache",
    "/var/lib/apt",
    "/var/lib/dnf",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/log",
];

/// The directory of a Debian system.
pub(super) struct Root {
    directory: PathBuf,
}

impl Root {
    /// Copies a minimal system of this machine's architecture.
    pub(super) fn new() -> Result<Self> {
        Self::of(Arch::of_host()?)
    }

    /// Copies a minimal system of an architecture, whose programs have to run here.
    pub(super) fn of(arch: Arch) -> Result<Self> {
        Self::copy(&format!("{CODENAME}-{}", arch.debian()), arch, INCLUDED)
    }

    /// Copies a system that has dnf and rpm as well.
    pub(super) fn with_rpm(arch: Arch) -> Result<Self> {
        Self::copy(&format!("{CODENAME}-rpm-{}", arch.debian()), arch, &format!("{INCLUDED},dnf,rpm"))
    }

    /// Copies a system for a machine with a kernel of its own, which has more to set up.
    pub(super) fn for_machine(arch: Arch) -> Result<Self> {
        let name = format!("{CODENAME}-machine-{}", arch.debian());
        Self::copy(&name, arch, &format!("{INCLUDED},iproute2,iputils-ping,kmod"))
    }

    /// Copies the system of this name. debootstrap makes it once, from this machine's apt source.
    fn copy(name: &str, arch: Arch, included: &str) -> Result<Self> {
        let parent = environment::target_directory().join("dist-check");
        let (base, directory) = (parent.join(name), parent.join("root"));
        // debootstrap writes sources.list last, and then its own directory goes. Otherwise the system is incomplete.
        if !base.join("etc/apt/sources.list").is_file() || base.join("debootstrap").exists() {
            clear(&base)?;
            fs::create_dir_all(&parent)?;
            // If debootstrap fails, its mounts do not stay.
            let mut debootstrap = Command::new("unshare");
            debootstrap.args(["--mount", "debootstrap", "--variant=minbase", "--include", included]);
            debootstrap.args(["--arch", arch.debian(), CODENAME]).arg(&base).arg(source()?);
            command::run(debootstrap.stdout(std::io::stderr()))?;
        }
        clear(&directory)?;
        command::run(Command::new("cp").arg("--archive").args([&base, &directory]))?;
        Ok(Self { directory })
    }

    /// Returns where a path of the system is on this machine.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path.trim_start_matches('/'))
    }

    /// Copies a file into the system.
    pub(super) fn copy_in(&self, file: &Path, to: &str) -> Result<()> {
        fs::copy(file, self.path(to)).with_context(|| format!("copying {}", file.display()))?;
        Ok(())
    }

    /// Writes a file of the system.
    pub(super) fn write(&self, path: &str, text: &str, mode: u32) -> Result<()> {
        fs::write(self.path(path), text).with_context(|| format!("writing {path} of the system"))?;
        Ok(fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode))?)
    }

    /// Returns a command that runs a line in the system. It shares only the kernel and the network with this machine.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]);
        command.arg(r#"mount -t proc proc "$0/proc" && exec chroot "$0" sh -c "$1""#);
        command.arg(&self.directory).arg(line);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs a command line in the system, and returns its standard output.
    pub(super) fn run(&self, line: &str) -> Result<String> {
        eprintln!("# {line}");
        pping_lab::run(&mut self.command(line)).with_context(|| format!("`{line}` in the test system"))
    }

    /// Lists every file with its checksum, and every directory and link, except what package managers record.
    pub(super) fn listing(&self) -> Result<String> {
        let recorded = RECORDED.join(" -o -path ");
        // A removal keeps the user, so the files that list users, and their backups, are left out.
        self.run(&format!(
            "find / -xdev \\( -path {recorded} \\) -prune -o \
             -type f ! -regex '/etc/\\(passwd\\|group\\|shadow\\|gshadow\\)-?' -exec sha256sum {{}} + -o \
             ! -type f -printf '%y %m %p %l\\n' | sort -k 2; find /var/log /run | grep pping || true",
        ))
    }
}

/// Returns the lines that only the first of two listings has.
pub(super) fn only_in<'a>(listing: &'a str, other: &str) -> Vec<&'a str> {
    let others: HashSet<_> = other.lines().collect();
    listing.lines().filter(|line| !others.contains(line)).collect()
}

/// Returns where this machine's apt gets Debian from.
pub(super) fn source() -> Result<String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(REPO_URI) $(CODENAME) $(LABEL)", "Created-By: Packages"]);
    let targets = pping_lab::run(&mut apt)?;
    let wanted = format!(" {CODENAME} Debian");
    match targets.lines().find_map(|line| line.strip_suffix(wanted.as_str())) {
        Some(uri) => Ok(uri.to_owned()),
        None => {
            bail!("apt of this machine has no source of Debian {CODENAME}; add one, and run `apt-get update`")
        }
    }
}
