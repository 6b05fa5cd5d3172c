//! Interfaces that come and go, like those of dial-in links: the same few names over and over.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, Ipv6Addr},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{Namespace, veth::End};

use super::{agent::Agent, counters::Counters, findings::Findings};

/// Their names.
pub(super) const NAMES: [&str; 4] = ["dial0", "dial1", "dial2", "dial3"];
/// The name that interfaces are renamed to.
const RENAMED: &str = "dial9";
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(4);

/// The interfaces, and what they have counted.
pub(super) struct Dial<'a> {
    router: &'a Namespace,
    remote: Namespace,
    agents: Vec<&'a Agent<'a>>,
    /// What the kernel counted under each name, for interfaces that no longer have it.
    past_counters: BTreeMap<String, Counters>,
    /// The interfaces that exist, and what each had counted under an earlier name.
    present: BTreeMap<String, Counters>,
    pub(super) made: u64,
    pub(super) renamed: u64,
    pub(super) longest: Duration,
    /// How long it may take until an interface is watched.
    limit: Duration,
    round: usize,
}

impl<'a> Dial<'a> {
    pub(super) fn new(router: &'a Namespace, agents: Vec<&'a Agent<'a>>, limit: Duration) -> Result<Self> {
        Ok(Self {
            router,
            remote: Namespace::new("dial")?,
            agents,
            past_counters: BTreeMap::new(),
            present: BTreeMap::new(),
            made: 0,
            renamed: 0,
            longest: Duration::ZERO,
            limit,
            round: 0,
        })
    }

    /// Hangs up one of the interfaces and dials it again. Called every few seconds.
    pub(super) fn next(&mut self, findings: &Findings) -> Result<()> {
        self.round += 1;
        let name = NAMES[self.round % NAMES.len()];
        if self.present.contains_key(name) {
            self.hang_up(name)?;
            // Now and then at once, so that the kernel reports both changes together.
            if !self.round.is_multiple_of(3) {
                thread::sleep(Duration::from_millis(300));
            }
        }
        self.make(name, findings)?;
        self.connect(name)?;
        if self.round.is_multiple_of(5) {
            self.rename(name, RENAMED, findings)?;
            self.connect(RENAMED)?;
            self.hang_up(RENAMED)?;
        }
        Ok(())
    }

    /// Makes the interfaces that are missing, so that the same set is compared each time.
    pub(super) fn complete(&mut self, findings: &Findings) -> Result<()> {
        for name in NAMES.into_iter().chain([RENAMED]) {
            if !self.present.contains_key(name) {
                self.make(name, findings)?;
            }
        }
        Ok(())
    }

    /// Returns what all interfaces with each name have counted while they had it.
    pub(super) fn counters(&self) -> Result<BTreeMap<String, Counters>> {
        let mut counters = self.past_counters.clone();
        for (name, before) in &self.present {
            *counters.entry(name.clone()).or_default() += Counters::read(self.router, name)? - *before;
        }
        Ok(counters)
    }

    /// Makes an interface and leaves it down until it is watched.
    fn make(&mut self, name: &str, findings: &Findings) -> Result<()> {
        let remote = self.remote.name();
        let watch = self.log_positions();
        run(&format!(
            "link add name {name} netns {} type veth peer name {name} netns {remote}",
            self.router.name()
        ))?;
        let began = Instant::now();
        self.present.insert(name.to_owned(), Counters::default());
        self.made += 1;
        for host in [self.router, &self.remote] {
            End::new(host, name).switch_offloads_off()?;
        }
        self.wait(name, &watch, began, findings)
    }

    /// Gives an interface addresses, and sends pings between its ends.
    fn connect(&self, name: &str) -> Result<()> {
        let number = name.trim_start_matches("dial").parse::<u8>().unwrap_or(0);
        let (router, remote) = (End::new(self.router, name), End::new(&self.remote, name));
        for (end, host) in [(&router, 1), (&remote, 2)] {
            run(&format!("-n {} link set {name} up", end.namespace.name()))?;
            end.add_address(Ipv4Addr::new(10, 12, number, host), 24)?;
            end.add_address(Ipv6Addr::new(0xfd00, 0x12, number.into(), 0, 0, 0, 0, host.into()), 64)?;
        }
        for (host, address) in [
            (self.router, format!("10.12.{number}.2")),
            (&self.remote, format!("10.12.{number}.1")),
            (self.router, format!("fd00:12:{number}::2")),
        ] {
            pping_lab::run(host.command("ping").args(["-q", "-i", "0.01", "-c", "20", "-W", "2", &address]))
                .with_context(|| format!("over {name}"))?;
        }
        Ok(())
    }

    /// Takes an interface down, so that no more packets pass, reads its counters, and deletes it.
    fn hang_up(&mut self, name: &str) -> Result<()> {
        self.settle(name)?;
        run(&format!("-n {} link del {name}", self.router.name()))?;
        Ok(())
    }

    /// Renames an interface.
    fn rename(&mut self, name: &str, to: &str, findings: &Findings) -> Result<()> {
        if self.present.contains_key(to) {
            self.hang_up(to)?;
        }
        let before = self.settle(name)?;
        let watch = self.log_positions();
        run(&format!("-n {} link set {name} name {to}", self.router.name()))?;
        let began = Instant::now();
        self.present.insert(to.to_owned(), before);
        self.renamed += 1;
        run(&format!("-n {} link set {name} name {to}", self.remote.name()))?;
        self.wait(to, &watch, began, findings)
    }

    /// Takes an interface down, and adds what it has counted under this name to `past_counters`.
    fn settle(&mut self, name: &str) -> Result<Counters> {
        run(&format!("-n {} link set {name} down", self.router.name()))?;
        let counters = Counters::read(self.router, name)?;
        let before = self.present.remove(name).with_context(|| format!("there is no {name}"))?;
        *self.past_counters.entry(name.to_owned()).or_default() += counters - before;
        Ok(counters)
    }

    /// Returns the interface index.
    fn interface_index(&self, name: &str) -> Result<u32> {
        let path = format!("/proc/thread-self/net/dev_snmp6/{name}");
        let text = self.router.enter(|| fs::read_to_string(path))??;
        let number = text.lines().next().and_then(|line| line.strip_prefix("ifIndex")).map(str::trim);
        number.and_then(|number| number.parse().ok()).with_context(|| format!("{name} has no number"))
    }

    fn log_positions(&self) -> Vec<(u64, u32)> {
        self.agents.iter().map(|agent| (agent.log_length(), agent.generation())).collect()
    }

    /// Waits until all agents say that they watch an interface.
    fn wait(&mut self, name: &str, watch: &[(u64, u32)], began: Instant, findings: &Findings) -> Result<()> {
        // The kernel changes one interface at a time, in all namespaces. If it had others to serve first, the soak's
        // own requests took as long.
        let limit = self.limit + began.elapsed();
        // With the interface index, because an agent may only now report an earlier interface of the same name.
        let (beginning, end) =
            (format!("watching {name} at "), format!("(ifindex {})", self.interface_index(name)?));
        let mut awaited: Vec<_> = self.agents.iter().zip(watch).collect();
        while !awaited.is_empty() {
            let mut is_watched = Vec::new();
            for (agent, (length, _)) in &awaited {
                agent.ensure_running()?;
                is_watched.push(
                    agent
                        .log_since(*length)?
                        .lines()
                        .any(|line| line.contains(&beginning) && line.ends_with(&end)),
                );
            }
            let took = began.elapsed();
            let mut is_watched = is_watched.into_iter();
            awaited.retain(|(agent, (_, generation))| {
                if is_watched.next() != Some(true) {
                    return true;
                }
                // Only an agent that ran all the while has a time to judge.
                if agent.has_run_since(*generation) {
                    self.longest = self.longest.max(took);
                    if took >= limit {
                        findings.note(format!("{} took {took:?} to watch {name}", agent.name));
                    }
                }
                false
            });
            ensure!(took < PATIENCE, "{name} is not watched after {PATIENCE:?}");
            thread::sleep(POLL);
        }
        Ok(())
    }
}

fn run(line: &str) -> Result<()> {
    pping_lab::run(Command::new("ip").args(line.split_whitespace()))?;
    Ok(())
}
