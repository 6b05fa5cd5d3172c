//! A Debian of its own, to try a package in.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::clear;
use crate::{command, environment};

/// The release that packages are for.
const CODENAME: &str = "bookworm";

/// What the package depends on or works with, so that what changes later is the package's doing.
const INCLUDED: &str = "--include=systemd,procps,man-db,logrotate";

/// A directory with a system in it.
pub(super) struct Root {
    directory: PathBuf,
}

impl Root {
    /// A copy of a minimal system, which is fetched once, from where apt of this machine gets its packages.
    pub(super) fn new() -> Result<Self> {
        let parent = environment::target_directory().join("dist-check");
        let (base, directory) = (parent.join(CODENAME), parent.join("root"));
        // The last that debootstrap makes; what is there without it is half a system.
        if !base.join("etc/apt/sources.list").is_file() || base.join("debootstrap").exists() {
            clear(&base)?;
            fs::create_dir_all(&parent)?;
            let mut debootstrap = Command::new("debootstrap");
            debootstrap.args(["--variant=minbase", INCLUDED, CODENAME]).arg(&base).arg(source()?);
            command::run(debootstrap.stdout(std::io::stderr()))?;
        }
        clear(&directory)?;
        command::run(Command::new("cp").arg("--archive").args([&base, &directory]))?;
        Ok(Self { directory })
    }

    /// A path in there, as seen from here.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.directory.join(path.trim_start_matches('/'))
    }

    /// Copies a file into it.
    pub(super) fn bring(&self, file: &Path, to: &str) -> Result<()> {
        fs::copy(file, self.path(to)).with_context(|| format!("copying {}", file.display()))?;
        Ok(())
    }

    /// A command line that runs in there, with nothing of this machine but its kernel and its network.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c"]);
        command.arg(r#"mount -t proc proc "$0/proc" && exec chroot "$0" sh -c "$1""#);
        command.arg(&self.directory).arg(line);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive");
        // Debian's own hint to packages that they are looked at, and not used.
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs a command line in there, and returns what it wrote to standard output.
    pub(super) fn run(&self, line: &str) -> Result<String> {
        eprintln!("# {line}");
        pping_lab::run(&mut self.command(line)).with_context(|| format!("`{line}` in the system of its own"))
    }

    /// Every file with what is in it, and every directory and link, but for the books of apt and dpkg.
    pub(super) fn listing(&self) -> Result<String> {
        // Users stay, with the backups of the files that they are in.
        self.run(
            "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/lib/dpkg \
             -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /run \\) -prune -o \
             -type f ! -regex '/etc/\\(passwd\\|group\\|shadow\\|gshadow\\)-?' -exec sha256sum {} + -o \
             ! -type f -printf '%y %m %p %l\\n' | sort -k 2; find /var/log /run | grep pping || true",
        )
    }
}

/// Where apt of this machine gets Debian from.
fn source() -> Result<String> {
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
