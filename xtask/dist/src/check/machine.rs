//! A separate Debian system that has booted: it has its own systemd, processes, network and journal, and shares the
//! kernel.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process::{self, Command},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use pping_lab::{
    Namespace, Process,
    veth::{self, End, Offloads},
};

use super::root::Root;

/// How long to wait for the boot, or for anything else, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Makes the system's directory (`$0`) the root and starts its systemd, in a cgroup (`$1`) that systemd may divide.
/// Mounts propagate as on a machine that boots: without that, services do not see their credentials.
const BOOT: &str = r#"
    echo $$ >"$1/cgroup.procs" && exec unshare --mount --pid --fork --kill-child --cgroup --uts --ipc sh -e -c '
        mount --bind "$0" "$0" && cd "$0"
        mount -t proc proc proc && mount -t sysfs sysfs sys && mount -t cgroup2 cgroup2 sys/fs/cgroup
        mount -t tmpfs tmpfs run && mkdir run/before
        pivot_root . run/before && umount -l /run/before
        mount --make-rshared /
        exec env -i container=pping PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            /lib/systemd/systemd --unit=multi-user.target --log-target=console --show-status=no' "$0"
"#;

/// systemd would replace the kernel's list of binary formats by its own, also for this machine and its emulators.
const WITHOUT: [&str; 2] = ["proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service"];

/// The machine's interface, and the other end of its cable.
pub(super) const INTERFACE: &str = "eth0";

/// A running system. Dropping it ends everything that runs in it.
pub(super) struct Machine {
    /// The process that started systemd and ends with it. Dropped before the other fields, which it uses.
    systemd: Option<Process>,
    group: PathBuf,
    network: (Namespace, Namespace),
}

impl Machine {
    /// Boots, with an interface `eth0` whose other end is unused.
    pub(super) fn boot(root: &Root) -> Result<Self> {
        for unit in WITHOUT {
            symlink("/dev/null", root.path("/etc/systemd/system").join(unit))?;
        }
        let (host, peer) = (Namespace::new("machine")?, Namespace::new("peer")?);
        veth::connect(End::new(&host, INTERFACE), End::new(&peer, INTERFACE), Offloads::On)?;
        let mounts = fs::read_to_string("/proc/self/mounts")?;
        let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let groups =
            fields.find_map(|fields| (fields.get(2) == Some(&"cgroup2")).then(|| fields[1].to_owned()));
        let groups = groups.context("no cgroup2 is mounted here, which systemd needs: mount it")?;
        let group = PathBuf::from(groups).join(format!("pping-check-{}", process::id()));
        fs::create_dir(&group).with_context(|| format!("making {}", group.display()))?;
        let mut command = host.command("sh");
        command.args(["-c", BOOT]).arg(root.path("")).arg(&group);
        let mut machine = Self { systemd: None, group, network: (host, peer) };
        machine.systemd = Some(Process::spawn(command)?);
        machine
            .wait_for("the machine has booted", "systemctl is-system-running | grep -E 'running|degraded'")?;
        Ok(machine)
    }

    /// Returns the machine's own network, and that of the other end.
    pub(super) fn network(&self) -> &(Namespace, Namespace) {
        &self.network
    }

    /// Runs a command line in the system, and returns its standard output.
    pub(super) fn run(&self, line: &str) -> Result<String> {
        eprintln!("[machine] # {line}");
        pping_lab::run(&mut self.command(line)?).with_context(|| {
            format!("`{line}` in the machine, of which systemd and pping say\n{}", self.log())
        })
    }

    /// The last lines from systemd's console and pping's journal.
    fn log(&self) -> String {
        let journal = self.command("journalctl --no-pager --lines=10 --unit='pping*'");
        let journal =
            journal.ok().and_then(|mut journal| pping_lab::run(&mut journal).ok()).unwrap_or_default();
        let console = self.systemd.as_ref().and_then(|systemd| systemd.stderr().ok()).unwrap_or_default();
        let lines: Vec<_> = console.lines().rev().take(10).collect();
        lines.into_iter().rev().chain(journal.lines()).collect::<Vec<_>>().join("\n")
    }

    /// Runs a command line in the system until it succeeds.
    pub(super) fn wait_for(&self, what: &str, line: &str) -> Result<()> {
        let start = Instant::now();
        loop {
            let ended = self.command(line).and_then(|mut command| Ok(pping_lab::run(&mut command)?));
            match ended {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > PATIENCE => bail!("{what}: not within {PATIENCE:?}: {error}"),
                Err(_) => thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    fn command(&self, line: &str) -> Result<Command> {
        let parent = self.systemd.as_ref().map(Process::id).unwrap_or_default();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        let mut command = Command::new("nsenter");
        let namespaces = ["--mount", "--pid", "--net", "--cgroup", "--ipc", "--uts", "--root", "--wd"];
        command.args(["--target", children.trim()]).args(namespaces).args(["bash", "-c", line]);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
        Ok(command)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.systemd.take());
        // The kernel takes a moment to end the processes, and a cgroup can only be removed once it is empty.
        let start = Instant::now();
        let remove = || {
            let mut find = Command::new("find");
            find.arg(&self.group).args(["-depth", "-type", "d", "-exec", "rmdir", "{}", "+"]);
            pping_chores::command::succeeds(&mut find)
        };
        while !remove() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(100));
        }
    }
}
