//! `cargo xtask demo`: pping between two hosts 20 ms apart, on a network that the demo makes.

use std::{
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use pping_chores::{
    build::{self, Profile},
    chore::{self, DEMO},
    setup::{self, Report, Scope},
};
use pping_lab::{
    Interrupt, Namespace, Process, Signal, Topology,
    traffic::{self, Behaviour, Pace, Server},
};

const HOLD: Duration = Duration::from_millis(10);
const METRICS: &str = "127.0.0.1:9464";
/// How long pping is watched; the traffic below ends a little before.
const WATCH: Duration = Duration::from_secs(6);
/// Requests of the size of a keystroke or a query, answered at once.
const CONVERSATION: Pace = Pace { chunks: 50, bytes: 100, pause: Duration::from_millis(100) };
const PINGS: [&str; 5] = ["-q", "-i", "0.5", "-c", "10"];
/// How long to wait for what takes a fraction of a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// The programs that the demo runs, and the option with which each prints its version.
const TOOLS: [(&str, &str); 4] = [("ip", "-V"), ("ethtool", "--version"), ("ping", "-V"), ("curl", "-V")];

const PICTURE: &str = "
  client ---------- router ---------- 10 ms each way ---------- server
  10.11.1.2         lan0 | wan0                              10.11.2.2
  fd00:11:1::2           |                                fd00:11:2::2
                         +-- pping -i wan0

  The client talks to the server over TCP and pings it over IPv6. What the server echoes
  comes back to wan0 after about 20 ms, what the client echoes after next to nothing.
";

const LIVE: &str = "
To see the same live, on an interface of this machine:

  pping top -i eth0                              in this terminal
  pping -i eth0 --listen 127.0.0.1:9464          and then, as long as you like,
    pping top                                      in another terminal
    http://127.0.0.1:9464/                         in a browser
";

#[derive(clap::Subcommand)]
enum Chore {
    #[command(about = DEMO.help)]
    Demo,
}

fn main() -> ExitCode {
    chore::main(|Chore::Demo| {
        setup::run(Scope { tests: true, ..Scope::default() }, Report::Changes)?;
        run(&build::run(Profile::Quick)?)
    })
}

/// Builds the hosts, runs `pping` on the router while client and server talk, and removes everything again.
fn run(pping: &Path) -> Result<()> {
    for (tool, version) in TOOLS {
        pping_lab::run(Command::new(tool).arg(version))?;
    }
    // From here on Ctrl-C only shortens the demo, so that nothing stays behind.
    let interrupt = Interrupt::catch()?;
    Namespace::sweep()?;
    let topology = Topology::builder().hold(HOLD).build().context("could not build the demo's hosts")?;
    eprintln!("{PICTURE}");
    let mut watching = start(pping, &topology)?;
    let mut shown = Shown::default();
    watch(&mut watching, &mut shown, &topology, &interrupt)?;
    if !interrupt.is_raised() {
        show_metrics(topology.router())?;
        show_screen(pping, topology.router())?;
    }
    eprintln!("\nCtrl-C, and pping sums up:\n");
    watching.stop(Signal::SIGINT, PATIENCE)?;
    shown.show_news(&watching)?;
    eprintln!("{LIVE}");
    Ok(())
}

/// Starts pping and waits until it measures.
fn start(pping: &Path, topology: &Topology) -> Result<Process> {
    let mut command = topology.router().command(pping);
    command.args(["-i", Topology::WAN, "--rate-limit", "100ms", "--format", "standard", "--listen", METRICS]);
    let mut pping = Process::spawn(command)?;
    let deadline = Instant::now() + PATIENCE;
    // Listening is not enough: pping must not miss the first packets of the traffic to come.
    while !is_ready(topology)? {
        ensure_running(&mut pping)?;
        if Instant::now() > deadline {
            bail!("pping is not ready after {PATIENCE:?}: {}", pping.stderr()?.trim());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(pping)
}

fn is_ready(topology: &Topology) -> Result<bool> {
    let url = format!("http://{METRICS}/readyz");
    let mut curl = topology.router().command("curl");
    curl.args(["--silent", "--fail", "--max-time", "1", &url]).stdout(Stdio::null());
    Ok(curl.status().context("starting curl")?.success())
}

fn ensure_running(pping: &mut Process) -> Result<()> {
    match pping.status()? {
        None => Ok(()),
        Some(status) => bail!("pping ended by itself ({status}): {}", pping.stderr()?.trim()),
    }
}

/// Lets client and server talk, and shows what pping prints meanwhile.
fn watch(pping: &mut Process, shown: &mut Shown, topology: &Topology, interrupt: &Interrupt) -> Result<()> {
    let server = Server::start(topology.server(), 0, Behaviour::Echo)?;
    let address = (Topology::SERVER_IPV4, server.port());
    let mut ping = topology.client().command("ping");
    ping.args(PINGS).arg(Topology::SERVER_IPV6.to_string());
    // The guard ends it when this function returns.
    let _ping = Process::spawn(ping)?;
    thread::scope(|scope| {
        let conversation = scope.spawn(|| traffic::echo(topology.client(), address, CONVERSATION));
        let watched = show_until(Instant::now() + WATCH, pping, shown, interrupt);
        // After Ctrl-C, or if pping failed, the conversation may still go on. It ends with its server.
        let is_over = conversation.is_finished();
        drop(server);
        let talked = conversation.join();
        watched?;
        match talked {
            Ok(Err(error)) if is_over => Err(error).context("client and server could not talk"),
            Ok(_) => Ok(()),
            Err(payload) => std::panic::resume_unwind(payload),
        }
    })
}

fn show_until(end: Instant, pping: &mut Process, shown: &mut Shown, interrupt: &Interrupt) -> Result<()> {
    // Ctrl-C reaches pping as well, so an early end is an error only without Ctrl-C.
    while Instant::now() < end && !interrupt.is_raised() {
        shown.show_news(pping)?;
        if pping.status()?.is_some() && !interrupt.is_raised() {
            // Both processes get the signal at the same time, and the flag may be a moment late.
            thread::sleep(Duration::from_millis(100));
            if !interrupt.is_raised() {
                ensure_running(pping)?;
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    shown.show_news(pping)
}

/// How much of pping's output was shown so far, in bytes.
#[derive(Default)]
struct Shown {
    stdout: usize,
    stderr: usize,
}

impl Shown {
    fn show_news(&mut self, pping: &Process) -> Result<()> {
        let (stdout, stderr) = (pping.stdout()?, pping.stderr()?);
        show(&mut io::stdout().lock(), &stdout, &mut self.stdout)?;
        show(&mut io::stderr().lock(), &stderr, &mut self.stderr)
    }
}

/// Writes the whole lines of `text` that follow the `shown` bytes.
fn show(to: &mut impl io::Write, text: &str, shown: &mut usize) -> Result<()> {
    let news = text.get(*shown..).unwrap_or_default();
    let lines = news.rfind('\n').map_or("", |end| &news[..=end]);
    to.write_all(lines.as_bytes())?;
    to.flush()?;
    *shown += lines.len();
    Ok(())
}

fn show_metrics(router: &Namespace) -> Result<()> {
    let url = format!("http://{METRICS}/metrics");
    eprintln!("\nWhat Prometheus gets from {url}, abridged:\n");
    let mut curl = router.command("curl");
    curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--max-time", "5", &url]);
    let metrics = pping_lab::run(&mut curl)?;
    let mut stdout = io::stdout().lock();
    for line in abridge(&metrics) {
        writeln!(stdout, "{line}")?;
    }
    Ok(())
}

/// Shows what an operator sees on the router.
fn show_screen(pping: &Path, router: &Namespace) -> Result<()> {
    eprintln!("\nWhat `pping top --once` says of the last minute:\n");
    let screen = pping_lab::run(router.command(pping).args(["top", "--once"]))?;
    io::stdout().lock().write_all(screen.as_bytes())?;
    Ok(())
}

/// Returns the lines with the totals, and the buckets that hold samples.
fn abridge(metrics: &str) -> Vec<&str> {
    const TOTALS: [&str; 4] =
        ["pping_rtt_seconds_count", "pping_rtt_seconds_sum", "pping_samples_total", "pping_packets_total"];
    let mut lines = Vec::new();
    let mut before = None;
    for line in metrics.lines() {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let bucket = (name == "pping_rtt_seconds_bucket").then(|| bucket(line)).flatten();
        let is_worth_showing = match (&bucket, &before) {
            (None, _) => TOTALS.contains(&name),
            // Buckets are cumulative: a bucket with the same count as the one before it holds no samples of its own.
            (Some((labels, count)), Some((same, less))) if labels == same => count != less,
            (Some((_, count)), _) => *count != "0",
        };
        if is_worth_showing {
            lines.push(line);
        }
        before = bucket;
    }
    lines
}

/// Returns the labels of a bucket, except its bound, and its count.
fn bucket(line: &str) -> Option<(String, &str)> {
    let (labels, count) = line.rsplit_once(' ')?;
    let labels = labels.split(['{', ',', '}']).filter(|label| !label.starts_with("le="));
    Some((labels.collect(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_abridged_to_totals_and_buckets_with_samples() {
        let metrics = r#"# TYPE pping_rtt_seconds histogram
pping_rtt_seconds_bucket{side="ingress",le="0.01"} 0
pping_rtt_seconds_bucket{side="ingress",le="0.025"} 7
pping_rtt_seconds_bucket{side="ingress",le="+Inf"} 7
pping_rtt_seconds_sum{side="ingress"} 0.14
pping_rtt_seconds_count{side="ingress"} 7
pping_rtt_seconds_bucket{side="egress",le="0.01"} 7
pping_rtt_seconds_bucket{side="egress",le="0.025"} 7
pping_flows 3
pping_packets_total 100
pping_samples_total{method="tcp-ts"} 7
"#;
        assert_eq!(
            abridge(metrics),
            [
                r#"pping_rtt_seconds_bucket{side="ingress",le="0.025"} 7"#,
                r#"pping_rtt_seconds_sum{side="ingress"} 0.14"#,
                r#"pping_rtt_seconds_count{side="ingress"} 7"#,
                r#"pping_rtt_seconds_bucket{side="egress",le="0.01"} 7"#,
                "pping_packets_total 100",
                r#"pping_samples_total{method="tcp-ts"} 7"#,
            ]
        );
    }

    #[test]
    fn only_whole_new_lines_are_shown() {
        let (mut out, mut shown) = (Vec::new(), 0);
        show(&mut out, "one\ntw", &mut shown).unwrap();
        assert_eq!(out, b"one\n");
        show(&mut out, "one\ntwo\n", &mut shown).unwrap();
        assert_eq!(out, b"one\ntwo\n");
        show(&mut out, "one\ntwo\n", &mut shown).unwrap();
        assert_eq!(out, b"one\ntwo\n");
    }
}
