//! The screens of pping on a router that real traffic passes: pictures of them, and hours of them.

mod browser;
mod pictures;
mod sites;
mod terminal;
mod watched;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use pping_chores::{
    build::{self, Profile},
    chore::{self, PICTURES, WATCHED},
    duration, environment,
    setup::{self, Report, Scope},
};
use pping_lab::{
    Interrupt, Namespace, Process, Topology,
    traffic::{Behaviour, Server},
};

const ADDRESS: &str = "127.0.0.1:9464";

/// How long to wait for what takes a fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = PICTURES.help)]
    Pictures {
        /// Traffic before the pictures are taken
        #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = duration::parse)]
        length: Duration,
        /// Use this pping binary
        #[arg(long, value_name = "FILE")]
        pping: Option<PathBuf>,
    },
    #[command(about = WATCHED.help)]
    Watched {
        /// For how long: `90s`, `5m`, `2h`
        #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration::parse)]
        length: Duration,
        /// Use this pping binary
        #[arg(long, value_name = "FILE")]
        pping: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    chore::main(|chore| {
        setup::run(Scope { tests: true, ..Scope::default() }, Report::Changes)?;
        let given_or_built = |pping: Option<PathBuf>| pping.map_or_else(|| build::run(Profile::Release), Ok);
        match chore {
            Chore::Pictures { length, pping } => pictures::take(
                &given_or_built(pping)?,
                length,
                &environment::repository().join("docs/images"),
            ),
            Chore::Watched { length, pping } => watched::watch(&given_or_built(pping)?, length),
        }
    })
}

/// A router with pping, and traffic that passes it.
struct Scene<'a> {
    pping: &'a Path,
    router: &'a Namespace,
    /// The process id of the agent.
    agent: u32,
    interrupt: &'a Interrupt,
}

impl Scene<'_> {
    /// Sleeps. Returns false if Ctrl-C was pressed.
    fn rest(&self, length: Duration) -> bool {
        let end = Instant::now() + length;
        while Instant::now() < end && !self.interrupt.is_raised() {
            thread::sleep(Duration::from_millis(100));
        }
        !self.interrupt.is_raised()
    }
}

/// Starts `pping` and the traffic, calls `act`, and then ends both.
fn play(pping: &Path, act: impl FnOnce(&Scene<'_>) -> Result<()>) -> Result<()> {
    let interrupt = Interrupt::catch()?;
    Namespace::sweep()?;
    let topology = Topology::builder().build()?;
    sites::build(&topology)?;
    let directory = tempfile::tempdir()?;
    let groups = directory.path().join("sites.csv");
    fs::write(&groups, sites::groups())?;
    let router = topology.router();
    let mut command = router.command(pping);
    command.args(["-i", Topology::WAN, "--format", "none", "--listen", ADDRESS, "--groups"]).arg(&groups);
    let mut agent = Process::spawn(command)?;
    wait_until_ready(&mut agent, router)?;

    let _pings = sites::pings(topology.client())?;
    let server = Server::start(topology.server(), 0, Behaviour::Echo)?;
    thread::scope(|scope| {
        sites::converse(scope, topology.client(), &server);
        let acted = act(&Scene { pping, router, agent: agent.id(), interrupt: &interrupt });
        // The conversations end with their server.
        drop(server);
        acted
    })
}

fn wait_until_ready(agent: &mut Process, router: &Namespace) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut curl = router.command("curl");
        curl.args(["-sf", "--max-time", "1", &format!("http://{ADDRESS}/readyz")]).stdout(Stdio::null());
        if curl.status()?.success() {
            return Ok(());
        }
        if agent.status()?.is_some() || Instant::now() > deadline {
            bail!("pping is not ready: {}", agent.stderr()?.trim());
        }
        thread::sleep(Duration::from_millis(50));
    }
}
