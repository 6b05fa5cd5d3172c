//! Checks that an upgrade misses no packet and forgets no count.

use std::{
    collections::BTreeMap,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use pping_chores::arch::Arch;
use pping_lab::{Namespace, Process, Signal, veth::End};

use super::{
    deb,
    machine::{INTERFACE, Machine},
    older::{self, Maps},
    root::Root,
    service::{Commands, READY},
};

/// Asks pping for its metrics.
const SCRAPE: &str = r"exec 3<>/dev/tcp/127.0.0.1/9464; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3";

/// The addresses of the machine, and of the host that it pings.
const MACHINE: [u8; 4] = [192, 0, 2, 1];
const PEER: [u8; 4] = [192, 0, 2, 2];

/// How long traffic passes before the upgrade, and after it.
const TRAFFIC: Duration = Duration::from_secs(3);

/// How long to wait for anything on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Upgrades from the last release. Its program has to be another, or it would not be an upgrade.
pub(super) fn from_last_release(newer: &Path) -> Result<()> {
    let (older, maps) = older::debian()?;
    let root = deb::root(Arch::of_host()?, &older, newer)?;
    let [before, after] = without_loss(&root, &deb::APT, maps)?;
    ensure!(before != after, "the last release is this program: {before}");
    Ok(())
}

/// Upgrades a package while the machine sends pings and receives replies. Compares what pping counts with what the
/// kernel and ping count. Returns what the programs before and after the upgrade say of themselves.
pub(super) fn without_loss(root: &Root, commands: &Commands, expected: Maps) -> Result<[String; 2]> {
    let machine = Machine::boot(root)?;
    let (host, peer) = machine.network();
    End::new(host, INTERFACE).add_address(MACHINE, 24)?;
    End::new(peer, INTERFACE).add_address(PEER, 24)?;
    machine.run(commands.install)?;
    machine.run("echo 'rate-limit = \"0\"' >>/etc/pping/pping.toml && systemctl start pping.service")?;
    let (before, uncounted) = settled(&machine, None)?;
    let maps = machine.run("ls /run/pping/pping")?;

    let address = PEER.map(|it| it.to_string()).join(".");
    let mut ping = host.command("ping");
    ping.args(["-n", "-q", "-i", "0.002", &address]);
    let mut ping = Process::spawn(ping)?;
    thread::sleep(TRAFFIC);
    machine.run(commands.upgrade)?;
    machine.run(READY)?;
    thread::sleep(TRAFFIC);
    // If it has lost a reply, it ends with an error, and the comparison below says more.
    ping.signal(Signal::SIGINT)?;
    ping.wait_timeout(PATIENCE)?;
    let replies = replies(&ping.stdout()?)?;

    let is_kept = machine.run("ls /run/pping/pping")? == maps;
    if expected == Maps::Replaced {
        ensure!(
            !is_kept,
            "pping/tests/releases says that this version makes new maps, but {maps} are still there"
        );
        return measures_from_zero(&machine, &before, replies);
    }
    ensure!(
        is_kept,
        "this version makes new maps: {maps} are replaced. If that is meant, pping/tests/releases has to say so"
    );
    // Packets from before pping was attached are the only ones that the kernel alone counts.
    let (after, _) = settled(&machine, Some(uncounted))?;
    let gained = |name: &str, labels: &str| after.sum(name, labels) - before.sum(name, labels);
    for (name, labels, expected) in [
        ("pping_samples_total", "method=\"icmp-echo\"", replies),
        ("pping_rtt_seconds_count", "method=\"icmp-echo\"", replies),
        ("pping_untracked_packets_total", "reason=\"not_loaded\"", 0),
    ] {
        let gained = gained(name, labels);
        ensure!(gained == expected, "{name}{{{labels}}} rose by {gained}, not by {expected}");
    }
    for (series, value) in before.counters() {
        let now = after.0.get(series).with_context(|| format!("the upgrade has lost {series}"))?;
        ensure!(now >= value, "the upgrade has set {series} back from {value} to {now}");
    }
    eprintln!("an upgrade measured {replies} pings and missed no packet");
    Ok([before.build()?, after.build()?])
}

/// Checks what can be checked once counters have started again from zero during `replies` replies: that the newer
/// programs were complete when they took over, and have measured since. Returns what [`without_loss`] does.
fn measures_from_zero(machine: &Machine, before: &Metrics, replies: i64) -> Result<[String; 2]> {
    let (after, _) = settled(machine, None)?;
    let icmp_echo = "method=\"icmp-echo\"";
    for name in ["pping_samples_total", "pping_rtt_seconds_count"] {
        let samples = after.sum(name, icmp_echo);
        ensure!(
            (1..=replies).contains(&samples),
            "{name}{{{icmp_echo}}} is {samples} after {replies} replies"
        );
    }
    let unseen = after.sum("pping_untracked_packets_total", "reason=\"not_loaded\"");
    ensure!(unseen == 0, "{unseen} packets came before the newer programs were loaded");
    eprintln!("an upgrade to maps of another layout measured on, from zero, as pping/tests/releases says");
    Ok([before.build()?, after.build()?])
}

/// What pping serves: a value for each series.
struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    fn scrape(machine: &Machine) -> Result<Self> {
        let page = machine.run(SCRAPE)?;
        let lines = page.lines().filter(|line| line.starts_with("pping_"));
        let series = lines.filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        });
        Ok(Self(series.collect()))
    }

    /// Adds up the counts of a family on the interface that have these labels.
    fn sum(&self, name: &str, labels: &str) -> i64 {
        let interface = format!("interface=\"{INTERFACE}\"");
        let series = self.0.iter().filter(|(series, _)| {
            series.split_once('{').is_some_and(|(family, all)| {
                family == name && all.contains(&interface) && all.contains(labels)
            })
        });
        series.map(|(_, value)| *value as i64).sum()
    }

    /// Returns the series that names version and commit.
    fn build(&self) -> Result<String> {
        let build = self.0.keys().find(|series| series.starts_with("pping_build_info"));
        build.cloned().context("pping does not say what it was built from")
    }

    /// Returns the series that must not go back. The kernel's statistics of programs begin with each program.
    fn counters(&self) -> impl Iterator<Item = (&String, &f64)> {
        self.0.iter().filter(|(series, _)| {
            let family = series.split('{').next().unwrap_or_default();
            let ends = ["_total", "_count", "_sum", "_bucket"];
            !family.starts_with("pping_bpf_") && ends.iter().any(|end| family.ends_with(end))
        })
    }
}

/// Waits until no packet has passed for a second, and pping has counted as many as the kernel, less `uncounted`. Returns
/// pping's metrics, and by how many packets they differ. Without `uncounted`, they may differ by any number.
fn settled(machine: &Machine, uncounted: Option<i64>) -> Result<(Metrics, i64)> {
    let start = Instant::now();
    loop {
        let passed = packets(&machine.network().0)?;
        thread::sleep(Duration::from_secs(1));
        let metrics = Metrics::scrape(machine)?;
        let missing = passed - metrics.sum("pping_packets_total", "");
        let is_quiet = packets(&machine.network().0)? == passed;
        if is_quiet && uncounted.is_none_or(|uncounted| uncounted == missing) {
            return Ok((metrics, missing));
        }
        if start.elapsed() > PATIENCE {
            bail!(
                "of {passed} packets pping has not counted {missing}, of which {uncounted:?} passed before it started"
            );
        }
    }
}

/// Returns the number of packets in and out of the interface, as the kernel counts them.
fn packets(host: &Namespace) -> Result<i64> {
    let mut ip = host.command("ip");
    ip.args(["-json", "-statistics", "link", "show", "dev", INTERFACE]);
    let links: serde_json::Value = serde_json::from_str(&pping_lab::run(&mut ip)?)?;
    let count = |direction: &str| links[0]["stats64"][direction]["packets"].as_i64();
    count("rx").zip(count("tx")).map(|(received, sent)| received + sent).context("ip prints no statistics")
}

/// Returns the number of replies from ping's summary: `4 packets transmitted, 4 received, ...`.
fn replies(said: &str) -> Result<i64> {
    let summary = said.lines().find(|line| line.contains(" packets transmitted, "));
    let received = summary.and_then(|line| line.split(", ").nth(1)?.split(' ').next()?.parse().ok());
    received.with_context(|| format!("ping printed no summary: {said}"))
}
