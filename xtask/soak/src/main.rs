//! `cargo xtask soak`: runs pping for a long time. What happens to it in a year happens every few seconds.
//!
//! Two agents watch the same interfaces. The mortal one, with pins, is killed and started again, and its metrics must
//! go on as if it had never ended. The lasting one is never ended, so that its resources can be compared over the whole
//! time. A third one, at a mirror port, must measure the same as the lasting one.

mod agent;
mod compare;
mod counters;
mod dial;
mod files;
mod findings;
mod history;
mod load;
mod metrics;
mod mirror;
mod names;
mod plan;
mod queues;
mod receiver;
mod report;
mod scrape;
mod trouble;
mod workspace;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pping_chores::{
    build::{self, Profile},
    chore::{self, SOAK},
    duration,
    setup::{self, Report as SetupReport, Scope},
};
use pping_lab::{Interrupt, Namespace, Topology, veth::Offloads};

use self::{
    agent::{Agent, Resources},
    compare::Differences,
    counters::Counters,
    dial::Dial,
    files::{Files, Variant},
    findings::Findings,
    load::{Load, rest},
    mirror::Mirror,
    plan::Plan,
    queues::{Followed, Queues},
    receiver::Receiver,
    report::{Reading, Report},
    scrape::Scraper,
    workspace::Workspace,
};

const HOLD: Duration = Duration::from_millis(3);

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = SOAK.help)]
    Soak {
        /// For how long: `90s`, `5m`, `1h`
        #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
        length: Duration,
        /// Soak an unoptimised build
        #[arg(long)]
        debug: bool,
        /// Use this pping binary
        #[arg(long, value_name = "FILE", conflicts_with = "debug")]
        pping: Option<PathBuf>,
        /// Have names change instead: a million prefixes in a file, and 10,000 changes a second by the groups socket
        #[arg(long)]
        groups: bool,
    },
}

fn main() -> ExitCode {
    chore::main(|Chore::Soak { length, debug, pping, groups }| {
        setup::run(Scope { tests: true, ..Scope::default() }, SetupReport::Changes)?;
        let build = || build::run(Profile::from_release(!debug));
        let pping = pping.map_or_else(build, Ok)?;
        if groups { names::run(&pping, length) } else { run(&pping, Plan::new(length)) }
    })
}

/// Counts of the parts that run beside each other.
#[derive(Debug, Default)]
struct Counts {
    reloads: AtomicU64,
    refusals: AtomicU64,
    kills: AtomicU64,
    ends: AtomicU64,
    lines: AtomicU64,
}

/// Everything that a soak has.
struct Soak<'a> {
    pping: &'a Path,
    plan: Plan,
    topology: &'a Topology,
    /// The agent that is killed, and the one that is not.
    restarted: &'a Agent<'a>,
    lasting: &'a Agent<'a>,
    mirror: &'a Mirror,
    /// The agent at the mirror port.
    mirrored: &'a Agent<'a>,
    files: [Files; 2],
    scrapers: [Scraper; 2],
    receiver: Receiver,
    load: Load,
    queues: Queues<'a>,
    findings: &'a Findings,
    counts: Counts,
    /// Held while the mortal agent is ended and started, while files change, and while resources are read.
    agents_lock: Mutex<()>,
}

/// Soaks `pping` for as long as the plan says. Fails if there are findings.
fn run(pping: &Path, plan: Plan) -> Result<()> {
    let interrupt = Interrupt::catch()?;
    Namespace::sweep()?;
    let mut workspace = Workspace::new()?;
    let topology = Topology::builder().hold(HOLD).lan_offloads(Offloads::Off).build()?;
    let directory = &workspace.directory().to_owned();
    let pins = workspace.bpffs().join("pping");
    let restarted = Agent::new("mortal", pping, topology.router(), "127.0.0.1:9464", directory);
    let lasting = Agent::new("lasting", pping, topology.router(), "127.0.0.1:9465", directory);
    let mirror = Mirror::new(topology.router())?;
    let mirrored = Agent::new("mirror", pping, mirror.probe(), "127.0.0.1:9466", directory);
    Mirror::configure(&mirrored.config, mirrored.address)?;
    let findings = Findings::new();
    let file = |agent: &Agent<'_>, records, pins: Option<PathBuf>| Files {
        config: agent.config.clone(),
        listen: agent.address,
        groups: directory.join(format!("{}.csv", agent.name)),
        history: history::directory(directory, agent.name),
        records,
        // Pinned programs do not keep times of queues, so the other agent measures them.
        has_residence: pins.is_none(),
        pins,
    };
    let soak = Soak {
        pping,
        plan,
        topology: &topology,
        restarted: &restarted,
        lasting: &lasting,
        mirror: &mirror,
        mirrored: &mirrored,
        files: [
            file(&restarted, Some(directory.join("records.jsonl")), Some(pins.clone())),
            file(&lasting, None, None),
        ],
        scrapers: Default::default(),
        receiver: Receiver::default(),
        load: Load::default(),
        queues: Queues::new(topology.router())?,
        findings: &findings,
        counts: Counts::default(),
        agents_lock: Mutex::default(),
    };
    let mut report = soak.soak(&interrupt).inspect_err(|_| workspace.keep())?;
    restarted.end("TERM")?;
    // Kills have cost it minutes, but no file.
    history::samples(pping, &soak.files[0].history)?;
    mirrored.end("TERM")?;
    pping_lab::run(Command::new(pping).arg("unpin").arg(&pins))?;
    report.left_pinned = workspace.pinned()?;
    if report.left_pinned > 0 {
        findings.note(format!("{} pins are left after unpin", report.left_pinned));
    }
    report.write();
    let found = findings.all();
    if !found.is_empty() {
        workspace.keep();
    }
    ensure!(found.is_empty(), "the soak found {} problems:\n{}", found.len(), found.join("\n"));
    ensure!(!interrupt.is_raised(), "interrupted");
    Ok(())
}

impl Soak<'_> {
    fn soak(&self, interrupt: &Interrupt) -> Result<Report> {
        for (agent, files) in [self.restarted, self.lasting].into_iter().zip(&self.files) {
            files.write(Variant::Plain)?;
            agent.start()?;
        }
        self.mirrored.start()?;
        let dial = Mutex::new(Dial::new(
            self.topology.router(),
            vec![self.restarted, self.lasting],
            self.plan.attach,
        )?);
        lock(&dial).complete(self.findings)?;
        let before = self.before(&lock(&dial))?;
        self.mirror.begin(self.mirrored)?;
        let began = Instant::now();
        let readings = thread::scope(|scope| -> Result<Vec<Reading>> {
            self.load.start(scope, self.topology, self.findings);
            self.part(scope, "scrapes", || self.scrapers[0].run(self.restarted, self.findings));
            self.part(scope, "scrapes", || self.scrapers[1].run(self.lasting, self.findings));
            self.part(scope, "receiver", || self.receiver.run(self.topology.router(), self.findings));
            self.part(scope, "reloads", || self.reload());
            self.part(scope, "restarts", || self.restart());
            self.part(scope, "queues", || self.queues.run(self.findings));
            self.part(scope, "interfaces", || {
                while !self.findings.is_over() {
                    lock(&dial).next(self.findings)?;
                    rest(self.findings, self.plan.dial);
                }
                Ok(())
            });
            let readings = self.keep_reading(began, &dial, interrupt);
            self.findings.end();
            readings
        });
        let mut readings = readings?;
        let elapsed = began.elapsed();
        self.findings.say("all traffic has ended; comparing");
        for agent in [self.restarted, self.lasting, self.mirrored] {
            agent.ensure_running()?;
        }
        let mut dial = lock(&dial);
        dial.complete(self.findings)?;
        readings.push(self.read_resources(elapsed, true)?);
        let agents = [(self.restarted, &self.scrapers[0]), (self.lasting, &self.scrapers[1])];
        let kernel = || compare::kernel(self.topology.router(), &dial);
        let (kernel, pages) = compare::read_when_idle(&agents, kernel, self.findings)?;
        let pings = (self.load.pings.load(Relaxed), self.load.replies.load(Relaxed));
        let differences: Vec<Differences> = agents
            .iter()
            .zip(&pages)
            .zip(&before)
            .map(|(((agent, _), page), before)| {
                compare::all(agent.name, page, &kernel, before, pings, self.findings)
            })
            .collect();
        let mirrored = self.mirror.compare(self.mirrored, &pages[1], self.findings)?;
        // The last minute is written at the end.
        self.lasting.end("TERM")?;
        let kept = history::compare(self.pping, &self.files[1].history, &pages[1], self.findings)?;
        self.count_lines()?;
        let followed = Followed::read(&pages[1]);
        followed.judge(self.findings);
        let mut report = Report::new(self, elapsed, &dial, readings, &differences, followed, mirrored);
        report.take_history(kept);
        report.judge(self.findings);
        Ok(report)
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

    /// Returns what the kernel had counted before each agent started.
    fn before(&self, dial: &Dial<'_>) -> Result<Vec<BTreeMap<String, Counters>>> {
        let agents = [(self.restarted, &self.scrapers[0]), (self.lasting, &self.scrapers[1])];
        let counted = || compare::kernel(self.topology.router(), dial);
        let (kernel, pages) = compare::read_when_idle(&agents, counted, self.findings)?;
        Ok(pages.iter().map(|page| compare::before(&kernel, page)).collect())
    }

    /// Reads the agents' resources again and again until the time is over.
    fn keep_reading(
        &self,
        began: Instant,
        dial: &Mutex<Dial<'_>>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Reading>> {
        let mut readings = vec![self.read_resources(Duration::ZERO, true)?];
        let mut next = self.plan.read;
        let mut is_settled = false;
        while began.elapsed() < self.plan.length && !interrupt.is_raised() {
            thread::sleep(Duration::from_millis(100));
            let elapsed = began.elapsed();
            let settles = !is_settled && elapsed >= self.plan.settled;
            if elapsed < next && !settles {
                continue;
            }
            if elapsed >= next {
                next += self.plan.read;
            }
            if settles {
                is_settled = true;
                let mut dial = lock(dial);
                dial.complete(self.findings)?;
                readings.push(self.read_resources(elapsed, true)?);
            } else {
                readings.push(self.read_resources(elapsed, false)?);
            }
        }
        Ok(readings)
    }

    fn read_resources(&self, at: Duration, has_all_interfaces: bool) -> Result<Reading> {
        // Not while an agent is just being started.
        let _guard = lock(&self.agents_lock);
        let [restarted, lasting]: [Resources; 2] = [self.restarted.resources()?, self.lasting.resources()?];
        let reading = Reading { at, has_all_interfaces, restarted, lasting };
        self.findings.say(reading);
        Ok(reading)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
