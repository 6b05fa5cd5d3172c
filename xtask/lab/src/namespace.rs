use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    panic,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use nix::sched::{CloneFlags, setns};

use crate::{Error, Result, error::Context, run::ip};

/// Where `ip netns` keeps its namespaces.
const NETNS_DIR: &str = "/run/netns";
/// The prefix of the lab's namespaces; the id of the process that made them follows.
const PREFIX: &str = "pping-";

/// A network namespace that plays one host, removed on drop.
///
/// Its loopback is up. IPv6 addresses are usable at once (no duplicate address detection), and the host does not look
/// for routers. Interfaces keep their link-local addresses, from which a router resolves its neighbours.
///
/// ```no_run
/// # fn main() -> pping_lab::Result<()> {
/// let host = pping_lab::Namespace::new("host")?;
/// pping_lab::run(host.command("ping").args(["-c", "1", "127.0.0.1"]))?;
/// let listener = host.enter(|| std::net::TcpListener::bind("127.0.0.1:0"))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// Opened once, so that entering needs no path and no allocation between `fork` and `exec`.
    handle: Arc<File>,
}

impl Namespace {
    /// Makes a namespace called `pping-<process>-<number>-<role>`.
    ///
    /// # Errors
    /// [`Error::NotRoot`] for anyone but root; otherwise the error of `ip netns add`.
    pub fn new(role: &str) -> Result<Self> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        if !nix::unistd::geteuid().is_root() {
            return Err(Error::NotRoot);
        }
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{role}", process::id());
        ip(&format!("netns add {name}"))?;
        let path = Path::new(NETNS_DIR).join(&name);
        let handle = match File::open(&path).while_doing(|| format!("open {}", path.display())) {
            Ok(file) => Arc::new(file),
            Err(error) => {
                remove(&name);
                return Err(error);
            }
        };
        // From here on the guard removes the namespace, whatever fails.
        let namespace = Self { name, handle };
        ip(&format!("-n {} link set lo up", namespace.name))?;
        for (key, value) in [
            ("net.ipv6.conf.all.accept_dad", "0"),
            ("net.ipv6.conf.default.accept_dad", "0"),
            ("net.ipv6.conf.default.accept_ra", "0"),
            ("net.ipv6.conf.default.router_solicitations", "0"),
        ] {
            namespace.sysctl(key, value)?;
        }
        Ok(namespace)
    }

    /// Its name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file, as `nsenter --net=` and setns(2) take it.
    pub fn path(&self) -> PathBuf {
        Path::new(NETNS_DIR).join(&self.name)
    }

    /// A command that runs inside. Unlike `ip netns exec` this leaves the mounts alone, so the program sees
    /// `/sys/fs/bpf` as the rest of the machine does.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let handle = Arc::clone(&self.handle);
        let enter = move || setns(&*handle, CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
        // SAFETY: between fork and exec only async-signal-safe calls are allowed: this is one system call,
        // on a descriptor the closure keeps open, and an error is turned into a plain number.
        unsafe { command.pre_exec(enter) };
        command
    }

    /// Runs `work` on a new thread inside and waits for it. Sockets opened there stay in the namespace, whichever
    /// thread uses them later. A panic in `work` goes on in the caller.
    ///
    /// # Errors
    /// If the kernel does not let the thread in.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let inside = || {
            setns(&*self.handle, CloneFlags::CLONE_NEWNET).while_doing(|| format!("enter {}", self.name))?;
            Ok(work())
        };
        match thread::scope(|scope| scope.spawn(inside).join()) {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    }

    /// Sets a sysctl of this namespace, named with dots: `net.ipv4.ip_forward`. Interface names that contain a dot do
    /// not work.
    ///
    /// # Errors
    /// If the sysctl does not exist, or does not exist per namespace.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = Path::new("/proc/sys").join(key.replace('.', "/"));
        self.enter(|| fs::write(path, value))?
            .while_doing(|| format!("set {key} to {value} in {}", self.name))
    }

    /// Makes the host forward packets between its interfaces, IPv4 and IPv6.
    ///
    /// # Errors
    /// If the kernel has no IPv6.
    pub fn forward(&self) -> Result<()> {
        self.sysctl("net.ipv4.ip_forward", "1")?;
        self.sysctl("net.ipv6.conf.all.forwarding", "1")
    }

    /// Removes namespaces of processes that were killed before they could clean up. Returns how many there were.
    /// Namespaces of running processes are left alone.
    ///
    /// # Errors
    /// If the directory of namespaces cannot be read.
    pub fn sweep() -> Result<usize> {
        let entries = match fs::read_dir(NETNS_DIR) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries.while_doing(|| format!("list {NETNS_DIR}"))?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let stale: Vec<_> = names.filter(|name| maker(name).is_some_and(is_gone)).collect();
        for name in &stale {
            remove(name);
        }
        Ok(stale.len())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Removes a namespace as far as possible: a guard can print a failure, but not return it.
fn remove(name: &str) {
    if let Err(error) = ip(&format!("netns del {name}")) {
        eprintln!("the namespace {name} stays behind: {error}");
    }
}

/// The process that made the namespace, if its name is one of the lab's.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

fn is_gone(process: u32) -> bool {
    !Path::new("/proc").join(process.to_string()).exists()
}
