//! An agent of the soak: its files, its start and end, and the resources that it uses.

use std::{
    fs::{self, File, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use pping_lab::Namespace;

/// How long an agent may take to end on a busy machine, and to be ready: an unoptimised one reads a million prefixes.
const PATIENCE: Duration = Duration::from_secs(20);
const START: Duration = Duration::from_mins(3);
const POLL: Duration = Duration::from_millis(20);

/// One of the two agents.
pub(super) struct Agent<'a> {
    pub(super) name: &'static str,
    program: &'a Path,
    router: &'a Namespace,
    pub(super) address: &'static str,
    pub(super) config: PathBuf,
    log: PathBuf,
    child: Mutex<Option<Child>>,
    /// Odd while the agent is not running, or not ready.
    generation: AtomicU32,
}

/// The resources of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources {
    /// Resident memory, and its anonymous part, KiB.
    pub(super) resident: u64,
    pub(super) anonymous: u64,
    pub(super) descriptors: usize,
    pub(super) programs: usize,
    pub(super) maps: usize,
    pub(super) links: usize,
}

impl<'a> Agent<'a> {
    pub(super) fn new(
        name: &'static str,
        program: &'a Path,
        router: &'a Namespace,
        address: &'static str,
        directory: &Path,
    ) -> Self {
        Self {
            name,
            program,
            router,
            address,
            config: directory.join(format!("{name}.toml")),
            log: directory.join(format!("{name}.log")),
            child: Mutex::new(None),
            generation: AtomicU32::new(1),
        }
    }

    /// Starts the agent and waits until it is ready.
    pub(super) fn start(&self) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = self.router.command(self.program);
        command.arg("--config").arg(&self.config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        *self.child() = Some(command.spawn().context("could not start pping")?);
        let deadline = Instant::now() + START;
        while !self.answers("readyz")? {
            self.ensure_running()?;
            ensure!(
                Instant::now() < deadline,
                "{} is not ready after {START:?}: {}",
                self.name,
                self.last_words()
            );
            thread::sleep(POLL);
        }
        self.generation.fetch_add(1, SeqCst);
        Ok(())
    }

    /// Ends the agent by a signal, and waits until it has ended.
    pub(super) fn end(&self, signal: &str) -> Result<()> {
        self.generation.fetch_add(1, SeqCst);
        self.signal(signal)?;
        let Some(mut child) = self.child().take() else { bail!("{} is not there", self.name) };
        let deadline = Instant::now() + PATIENCE;
        while child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                child.kill()?;
                bail!("{} does not end by SIG{signal}: {}", self.name, self.last_words());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    pub(super) fn signal(&self, signal: &str) -> Result<()> {
        let id = self.id().context("no process")?;
        pping_lab::run(Command::new("kill").args(["-s", signal, &id.to_string()]))?;
        Ok(())
    }

    /// Fails if the agent has ended by itself.
    pub(super) fn ensure_running(&self) -> Result<()> {
        if let Some(child) = self.child().as_mut()
            && let Some(status) = child.try_wait()?
        {
            bail!("{} ended by itself ({status}): {}", self.name, self.last_words());
        }
        Ok(())
    }

    /// Returns a number that changes whenever the agent ends, and when it is ready again. The number is odd in between.
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(SeqCst)
    }

    /// Whether the agent is ready, and has been ever since `generation` was its number.
    pub(super) fn has_run_since(&self, generation: u32) -> bool {
        generation.is_multiple_of(2) && self.generation() == generation
    }

    /// Returns its process id.
    pub(super) fn id(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Returns its metrics, or `None` if it does not answer.
    pub(super) fn scrape(&self, is_compressed: bool) -> Result<Option<String>> {
        let mut curl = self.curl("metrics");
        if is_compressed {
            curl.arg("--compressed");
        }
        let output = curl.output().context("starting curl")?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Whether it answers a request for a page with success.
    pub(super) fn answers(&self, page: &str) -> Result<bool> {
        Ok(self.curl(page).stdout(Stdio::null()).status().context("starting curl")?.success())
    }

    fn curl(&self, page: &str) -> Command {
        let mut curl = self.router.command("curl");
        curl.args(["--silent", "--fail", "--noproxy", "*", "--max-time", "5"]);
        curl.arg(format!("http://{}/{page}", self.address)).stderr(Stdio::null());
        curl
    }

    /// Returns the present length of its log, in bytes.
    pub(super) fn log_length(&self) -> u64 {
        fs::metadata(&self.log).map_or(0, |metadata| metadata.len())
    }

    /// Returns what it has logged since the log had this length.
    pub(super) fn log_since(&self, length: u64) -> Result<String> {
        use std::os::unix::fs::FileExt as _;
        let mut content = vec![0; self.log_length().saturating_sub(length) as usize];
        File::open(&self.log)?.read_exact_at(&mut content, length)?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    /// Waits until it has logged `what`, after its log had this length. Returns false if it does not within this time.
    pub(super) fn wait_for_log(&self, length: u64, what: &str, patience: Duration) -> Result<bool> {
        let deadline = Instant::now() + patience;
        while !self.log_since(length)?.contains(what) {
            self.ensure_running()?;
            if Instant::now() > deadline {
                return Ok(false);
            }
            thread::sleep(POLL);
        }
        Ok(true)
    }

    fn last_words(&self) -> String {
        self.log_since(self.log_length().saturating_sub(2000)).unwrap_or_default()
    }

    /// Returns the resources it uses now. Descriptors come and go with each scrape, so this is the reading with the
    /// fewest.
    pub(super) fn resources(&self) -> Result<Resources> {
        let mut least: Option<Resources> = None;
        for _ in 0..40 {
            let resources = resources(self.id().context("no process")?)?;
            if least.is_none_or(|least| resources.descriptors <= least.descriptors) {
                least = Some(resources);
            }
            thread::sleep(Duration::from_millis(30));
        }
        least.context("read no resources")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child().take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Returns the resources that a process uses at this moment.
pub(super) fn resources(process: u32) -> Result<Resources> {
    let directory = PathBuf::from(format!("/proc/{process}"));
    let status = fs::read_to_string(directory.join("status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let mut resources =
        Resources { resident: field("VmRSS:"), anonymous: field("RssAnon:"), ..Resources::default() };
    for entry in fs::read_dir(directory.join("fd"))? {
        // The descriptor was closed in the meantime.
        let Ok(target) = fs::read_link(entry?.path()) else { continue };
        resources.descriptors += 1;
        let target = target.to_string_lossy();
        resources.programs += usize::from(target.contains("bpf-prog"));
        resources.maps += usize::from(target.contains("bpf-map"));
        resources.links += usize::from(target.contains("bpf_link") || target.contains("bpf-link"));
    }
    Ok(resources)
}
