//! `cargo xtask pictures`: those in the README and in docs, of real traffic in network namespaces.

mod browser;
mod sites;
mod terminal;

use std::{
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use pping_lab::{
    Interrupt, Namespace, Process, Topology,
    traffic::{Behaviour, Server},
};

use self::terminal::Terminal;

const ADDRESS: &str = "127.0.0.1:9464";

/// For what takes a fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Has traffic pass for `length`, and writes pictures of what `pping` shows of it to `folder`.
pub(crate) fn run(pping: &Path, length: Duration, folder: &Path) -> Result<()> {
    let interrupt = Interrupt::catch()?;
    Namespace::sweep()?;
    let topology = Topology::builder().build()?;
    sites::build(&topology)?;
    let directory = tempfile::tempdir()?;
    let groups = directory.path().join("sites.csv");
    fs::write(&groups, sites::groups())?;
    let mut command = topology.router().command(pping);
    command.args(["-i", Topology::WAN, "--format", "none", "--listen", ADDRESS, "--groups"]).arg(&groups);
    let mut agent = Process::spawn(command)?;
    wait_until_ready(&mut agent, &topology)?;

    let _pings = sites::pings(topology.client())?;
    let server = Server::start(topology.server(), 0, Behaviour::Echo)?;
    thread::scope(|scope| {
        sites::converse(scope, topology.client(), &server);
        eprintln!("traffic passes for {} s", length.as_secs());
        let end = Instant::now() + length;
        while Instant::now() < end && !interrupt.is_raised() {
            thread::sleep(Duration::from_millis(100));
        }
        let taken = if interrupt.is_raised() { Ok(()) } else { take(pping, &topology, folder) };
        // Conversations end with it.
        drop(server);
        taken
    })
}

fn take(pping: &Path, topology: &Topology, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let terminal = Terminal::start(topology.router(), &format!("{} top", pping.display()))?;
    terminal.picture(&folder.join("top.svg"))?;
    terminal.keys(&["2"])?;
    terminal.picture(&folder.join("top-heatmap.svg"))?;
    browser::pictures(topology.router(), &format!("http://{ADDRESS}/"), folder)
}

fn wait_until_ready(agent: &mut Process, topology: &Topology) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut curl = topology.router().command("curl");
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
