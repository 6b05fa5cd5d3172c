//! `cargo xtask soak --groups`: names that change for a long time, under traffic.
//!
//! One agent has a million prefixes from a file, and gets 10,000 changes a second by its groups socket. One in ten moves an
//! address that is being pinged. No packet, sample or change may be lost, and answers, screens and memory must stay as they are.

mod changes;
mod memory;
mod report;

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    sync::{Mutex, PoisonError, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{Echoes, Interrupt, Namespace, Seconds, Topology, ping_in_turn, veth::Offloads};

use self::{
    changes::{ADDRESSES, Changes, Client, Times, in_file, pinged},
    memory::Usage,
    report::Report,
};
use super::{
    HOLD,
    agent::Agent,
    compare,
    findings::Findings,
    load::{Load, rest},
    scrape::Scraper,
    workspace::Workspace,
};

/// The prefixes of the file, and those of a label.
const PREFIXES: u64 = 1_000_000;
const OF_A_LABEL: u64 = 48;

const ADDRESS: &str = "127.0.0.1:9464";

/// The pings that are sent at once, and the pause after their replies.
const PINGS: (usize, Duration) = (10, Duration::from_millis(3));

/// The time with traffic before the changes begin, to compare with.
const QUIET: Duration = Duration::from_secs(15);

/// The interval of single changes, each of which is made once the one before is answered.
const SINGLE: Duration = Duration::from_millis(50);

/// The interval at which the tree and memory are read.
const INTERVAL: Duration = Duration::from_secs(1);

/// A warning that has nothing to do with names: without a rate limit, transfers have more pending than there is room for.
const EXPECTED: &str = "some flows had as much pending as they have room for";

/// How long a reload of a million prefixes may take, unoptimised.
const RELOAD: Duration = Duration::from_mins(3);

/// What the parts of a soak that run beside each other found.
#[derive(Default)]
struct Found {
    echoes: Echoes,
    /// How long answers to changes took from when they were due, to single ones, and to requests for the tree.
    answers: Times,
    single: Times,
    tree: Times,
    /// How long the changes were made.
    changing: Duration,
    reloads: Vec<Duration>,
    /// The memory at each time, and the processor time at the end of the quiet time.
    usage: Vec<(Duration, Usage)>,
}

/// Everything that a soak of names has.
struct Soak<'a> {
    topology: &'a Topology,
    agent: &'a Agent<'a>,
    directory: &'a Path,
    findings: &'a Findings,
    length: Duration,
    load: Load,
    scraper: Scraper,
    seconds: Mutex<Seconds>,
    found: Mutex<Found>,
}

/// Soaks `pping` for this long. Fails if there are findings.
pub(super) fn run(pping: &Path, length: Duration) -> Result<()> {
    let interrupt = Interrupt::catch()?;
    Namespace::sweep()?;
    let mut workspace = Workspace::new()?;
    let topology = Topology::builder().hold(HOLD).lan_offloads(Offloads::Off).build()?;
    route_pinged(&topology)?;
    let directory = workspace.directory().to_owned();
    let agent = Agent::new("names", pping, topology.router(), ADDRESS, &directory);
    let findings = Findings::new();
    let soak = Soak {
        topology: &topology,
        agent: &agent,
        directory: &directory,
        findings: &findings,
        length,
        load: Load::default(),
        scraper: Scraper::default(),
        seconds: Mutex::default(),
        found: Mutex::default(),
    };
    soak.soak(&interrupt).inspect_err(|_| workspace.keep())?.write();
    let found = findings.all();
    if !found.is_empty() {
        workspace.keep();
    }
    ensure!(found.is_empty(), "the soak found {} problems:\n{}", found.len(), found.join("\n"));
    ensure!(!interrupt.is_raised(), "interrupted");
    Ok(())
}

/// Gives the server the addresses that are pinged.
fn route_pinged(topology: &Topology) -> Result<()> {
    let route = |host: &Namespace, line: &str| {
        pping_lab::run(host.command("ip").args(["route", "add"]).args(line.split(' ')))
    };
    route(topology.server(), "local 10.12.0.0/16 dev lo")?;
    route(topology.router(), &format!("10.12.0.0/16 via {}", Topology::SERVER_IPV4))?;
    Ok(())
}

impl Soak<'_> {
    fn soak(&self, interrupt: &Interrupt) -> Result<Report> {
        self.write_files(false)?;
        self.agent.start()?;
        let small = self.usage()?;
        self.agent.end("TERM")?;
        self.write_files(true)?;
        let began = Instant::now();
        self.agent.start()?;
        let start = began.elapsed();
        let large = self.usage()?;
        self.findings.say(format!("ready after {} ms; {large:?}", start.as_millis()));
        let agents = [(self.agent, &self.scraper)];
        let kernel = || compare::of_topology(self.topology.router());
        let (counted, pages) = compare::read_when_idle(&agents, kernel, self.findings)?;
        let before = compare::before(&counted, &pages[0]);
        let mut changes = Changes::default();
        self.run_parts(&mut changes, interrupt)?;
        self.agent.ensure_running()?;
        self.findings.say("all traffic has ended; comparing");
        let (counted, pages) = compare::read_when_idle(&agents, kernel, self.findings)?;
        let echoes = self.found().echoes;
        let pings = (
            self.load.pings.load(Relaxed) + echoes.requests,
            self.load.replies.load(Relaxed) + echoes.replies,
        );
        let differences = compare::all(self.agent.name, &pages[0], &counted, &before, pings, self.findings);
        self.compare_names(&changes, "at the end")?;
        self.agent.end("TERM")?;
        let restarted = Instant::now();
        self.agent.start()?;
        let restart = restarted.elapsed();
        self.compare_names(&changes, "after a restart")?;
        self.agent.end("TERM")?;
        self.judge_log()?;
        let found = std::mem::take(&mut *self.found());
        let seconds = std::mem::take(&mut *self.seconds.lock().unwrap_or_else(PoisonError::into_inner));
        let journal = fs::metadata(self.directory.join("state"))?.len();
        let report = Report { small, large, start, restart, journal, found, seconds, differences };
        report.judge(self.findings);
        Ok(report)
    }

    /// Runs everything that runs at the same time, until the time is over.
    fn run_parts(&self, changes: &mut Changes, interrupt: &Interrupt) -> Result<()> {
        let began = Instant::now();
        thread::scope(|scope| -> Result<()> {
            self.load.start(scope, self.topology, self.findings);
            self.part(scope, "scrapes", || self.scraper.run(self.agent, self.findings));
            self.part(scope, "pings", || {
                let addresses: Vec<_> = (0..ADDRESSES).map(pinged).collect();
                let is_over = || self.findings.is_over();
                self.found().echoes = ping_in_turn(self.topology.client(), &addresses, PINGS, is_over)?;
                Ok(())
            });
            self.part(scope, "seconds", || {
                let is_over = || self.findings.is_over();
                Ok(Seconds::listen(&self.seconds, self.topology.router(), ADDRESS, is_over)?)
            });
            self.part(scope, "the tree", || self.read_tree());
            self.part(scope, "reloads", || self.reload(began));
            self.part(scope, "changes", || {
                rest(self.findings, QUIET);
                let (answers, changing) = changes.run(&self.socket(), self.findings)?;
                let mut found = self.found();
                (found.answers, found.changing) = (answers, changing);
                Ok(())
            });
            self.part(scope, "single changes", || {
                rest(self.findings, QUIET);
                let single = Client::connect(&self.socket())?.move_one(SINGLE, self.findings)?;
                self.found().single = single;
                Ok(())
            });
            let read = self.keep_reading(began, interrupt);
            self.findings.end();
            read
        })
    }

    /// Runs a part on its own thread. An error is a finding.
    fn part<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        name: &'static str,
        work: impl FnOnce() -> Result<()> + Send + 'scope,
    ) {
        scope.spawn(move || {
            if let Err(error) = work() {
                self.findings.note(format!("{name}: {error:#}"));
            }
        });
    }

    /// Reads the agent's memory again and again until the time is over.
    fn keep_reading(&self, began: Instant, interrupt: &Interrupt) -> Result<()> {
        while began.elapsed() < QUIET + self.length && !interrupt.is_raised() {
            self.agent.ensure_running()?;
            let (at, usage) = (began.elapsed(), self.usage()?);
            if at.as_secs().is_multiple_of(10) {
                self.findings.say(format!(
                    "{} KiB resident, {} KiB of maps",
                    usage.resources.resident,
                    usage.maps >> 10
                ));
            }
            self.found().usage.push((at, usage));
            rest(self.findings, INTERVAL);
        }
        Ok(())
    }

    /// Asks for the tree once a second.
    fn read_tree(&self) -> Result<()> {
        let mut tree = Times::default();
        while !self.findings.is_over() {
            let asked = Instant::now();
            if !self.agent.answers("api/v1/groups?by=ap&limit=100")? && !self.findings.is_over() {
                self.findings.note("the tree is not answered");
            }
            tree.add(asked.elapsed());
            rest(self.findings, INTERVAL);
        }
        self.found().tree = tree;
        Ok(())
    }

    /// Has the file read again five times, as often in the first third of the time as in the last, while changes come.
    fn reload(&self, began: Instant) -> Result<()> {
        for sixths in 1..=5 {
            let due = QUIET + self.length / 6 * sixths;
            rest(self.findings, due.saturating_sub(began.elapsed()));
            if self.findings.is_over() {
                break;
            }
            let (length, asked) = (self.agent.log_length(), Instant::now());
            self.agent.signal("HUP")?;
            if !self.agent.wait_for_log(length, "groups.csv: now ", RELOAD)? {
                self.findings.note("the groups file is not read again");
            }
            self.found().reloads.push(asked.elapsed());
        }
        Ok(())
    }

    /// Compares what pping lists with what the changes have to come to.
    fn compare_names(&self, changes: &Changes, when: &str) -> Result<()> {
        let listed = Client::connect(&self.socket())?.list()?;
        let differing = changes.expected.iter().filter(|(prefix, label)| listed.get(*prefix) != Some(*label));
        let (differing, expected) = (differing.count(), changes.expected.len());
        if differing > 0 || listed.len() != expected {
            self.findings.note(format!(
                "{when}: of {expected} prefixes {differing} have another name or none, and {} are listed",
                listed.len()
            ));
        }
        Ok(())
    }

    /// Notes warnings and errors of the log.
    fn judge_log(&self) -> Result<()> {
        let log = self.agent.log_since(0)?;
        let is_bad = |line: &&str| {
            ["WARN", "ERROR"].iter().any(|level| line.contains(level)) && !line.contains(EXPECTED)
        };
        for line in log.lines().filter(is_bad).take(10) {
            self.findings.note(format!("the log has: {line}"));
        }
        Ok(())
    }

    fn usage(&self) -> Result<Usage> {
        Usage::read(self.agent.id().context("no process")?)
    }

    fn socket(&self) -> std::path::PathBuf {
        self.directory.join("groups.sock")
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the configuration and the groups: all, or only those of the interfaces.
    fn write_files(&self, is_large: bool) -> Result<()> {
        let mut groups = "prefix,group,site,ap\n10.11.1.0/24,clients,north,ap-1\n10.11.2.0/24,servers,south,ap-2\n\
                          fd00:11:1::/64,clients,,\nfd00:11:2::/64,servers,,\n10.12.0.0/16,pinged,south,ap-3\n"
            .to_owned();
        for number in 0..if is_large { PREFIXES } else { 0 } {
            let label = number / OF_A_LABEL;
            // Writing to a string does not fail.
            writeln!(groups, "{},customer-{label},site-{},ap-{}", in_file(number), label % 20, label % 400)
                .ok();
        }
        fs::write(self.directory.join("groups.csv"), groups).context("could not write the groups")?;
        let directory = self.directory.display();
        let text = format!(
            "interface = [\"lan0\", \"wan0\"]\ninclude-local = true\nrate-limit = \"0\"\nlisten = \"{ADDRESS}\"\n\
             groups = \"{directory}/groups.csv\"\nroll-up = [\"site\", \"ap\"]\ngroup-timeout = \"1d\"\n\
             groups-socket = \"{directory}/groups.sock\"\ngroups-state = \"{directory}/state\"\n\
             history = \"{directory}/history\"\nprometheus-groups = 100\nverbose = 1\nformat = \"none\"\n"
        );
        fs::write(&self.agent.config, text).context("could not write the configuration")
    }
}
