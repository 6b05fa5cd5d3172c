//! Measures what watching costs under real traffic: a client, a router and a server, with iperf3's TCP through the router.
//!
//! The kernel times each run of a program (`BPF_ENABLE_STATS`). Timing takes part of that time itself, so an empty
//! program is measured too. The cables' offloads are on first, as they are by default: then a "packet" of a stream is
//! up to 64 KiB, as it is on a host whose network card splits it. With offloads off, all packets are plain frames, and
//! several times as many. The one watched interface sees each packet once.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    programs::loaded_programs,
    sys::{Stats, enable_stats},
};
use pping_lab::{
    Namespace, Process, run,
    veth::{End, Offloads, connect},
};
use serde_json::Value;

use crate::{
    forwarding::WATCHED,
    kernel,
    measure::Figure,
    report::Report,
    watcher::{self, Watcher, Watching},
};

/// Concurrent TCP connections.
const STREAMS: [u32; 2] = [1, 16];

/// How often each watcher is measured, and for how many seconds.
const RUNS: usize = 5;
const SECONDS: u32 = 3;

/// The program that does nothing.
const EMPTY: &str = "baseline_empty";

/// The addresses of client and server. The router is host 2 in both networks.
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 1, 1);

// From `enum bpf_prog_type` in linux/bpf.h: the types of programs that handle packets.
const SCHED_CLS: u32 = 3;
const SCHED_ACT: u32 = 4;
const XDP: u32 = 6;

/// The measurements of one watcher.
#[derive(Default)]
struct Measured {
    /// The ns of each run of a program for a packet.
    each: Vec<f64>,
    /// Thousands of packets a second.
    packets: Vec<f64>,
    /// Gbit/s that arrived.
    throughput: Vec<f64>,
}

/// Measures pping, and `beside`, foreign commands that watch [`WATCHED`], in turn.
pub(crate) fn measure(beside: &[String], report: &mut Report) -> Result<()> {
    // The kernel keeps statistics as long as this is open.
    let _statistics =
        enable_stats(Stats::RunTime).context("switching on statistics of programs (Linux 5.8)")?;
    let pping = format!("{} -v -i {WATCHED} --ingress tc -w /dev/null", watcher::pping()?.display());
    let mut watchers = vec![
        ("nobody", Watcher::Nobody),
        ("an empty program", Watcher::Program(EMPTY)),
        ("pping", Watcher::Command(pping)),
    ];
    watchers.extend(beside.iter().map(|command| (command.as_str(), Watcher::Command(command.to_owned()))));
    for (offloads, state) in [(Offloads::On, "on"), (Offloads::Off, "off")] {
        through(offloads, state, &watchers, report)?;
    }
    Ok(())
}

/// Measures all watchers on cables with these offloads.
fn through(offloads: Offloads, state: &str, watchers: &[(&str, Watcher)], report: &mut Report) -> Result<()> {
    let mut path = Path::new(offloads)?;
    println!(
        "\niperf3 through a router of which one interface is watched; {RUNS} runs of {SECONDS} s in turn, medians, offloads {state}\n"
    );
    println!(
        "{:<34} {:>7} {:>22} {:>10} {:>12} {:>8}",
        "", "streams", "ns a packet (min..max)", "over empty", "packets/s", "Gbit/s"
    );
    for streams in STREAMS {
        let mut measured: Vec<Measured> = watchers.iter().map(|_| Measured::default()).collect();
        for _ in 0..RUNS {
            for ((_, watcher), measured) in watchers.iter().zip(&mut measured) {
                path.measure(watcher, streams, measured)?;
            }
        }
        let of = format!("{streams} streams, offloads {state}");
        print((streams, &of), watchers.iter().map(|(name, _)| *name).zip(&measured), report)?;
    }
    Ok(())
}

fn print<'a>(
    (streams, setting): (u32, &str),
    measured: impl Iterator<Item = (&'a str, &'a Measured)>,
    report: &mut Report,
) -> Result<()> {
    let (mut empty, mut medians) = (0.0, Vec::new());
    for (name, Measured { each, packets, throughput }) in measured {
        let throughput = Figure::of(throughput.iter().copied())?;
        let of = |what| format!("{setting}, {name} watches: {what}");
        report.take(of("throughput"), "Gbit/s", &throughput);
        if each.is_empty() {
            println!("{name:<34} {streams:>7} {:>22} {:>10} {:>12} {:>8.2}", "", "", "", throughput.median);
            continue;
        }
        let (each, packets) = (Figure::of(each.iter().copied())?, Figure::of(packets.iter().copied())?);
        if name == "an empty program" {
            empty = each.median;
        }
        println!(
            "{name:<34} {streams:>7} {:>22} {:>10.0} {:>10.0} k {:>8.2}",
            format!("{:.0} ({:.0}..{:.0})", each.median, each.min, each.max),
            each.median - empty,
            packets.median,
            throughput.median,
        );
        report.take(of("a packet"), "ns", &each);
        report.take(of("packets"), "thousand/s", &packets);
        medians.push(each.median);
    }
    let [_, pping, peer] = medians[..] else { return Ok(()) };
    let (ratio, over_empty) = (pping / peer, (pping - empty) / (peer - empty));
    println!(
        "{:<34} {streams:>7} {ratio:.2} x, {over_empty:.2} x over an empty program (0.25 is asked for)",
        "pping, by the other",
    );
    report.take_one(format!("{setting}: pping by the other"), "x", ratio)?;
    report.take_one(format!("{setting}: pping by the other, over an empty program"), "x", over_empty)
}

/// A client, a router and a server.
struct Path {
    client: Namespace,
    router: Namespace,
    empty: Ebpf,
    /// The iperf3 server; dropped before the namespaces are.
    _listening: Process,
    _server: Namespace,
}

impl Path {
    fn new(offloads: Offloads) -> Result<Self> {
        let (client, router, server) =
            (Namespace::new("client")?, Namespace::new("router")?, Namespace::new("server")?);
        router.forward()?;
        for (host, address, interface) in [(&client, CLIENT, "lan1"), (&server, SERVER, WATCHED)] {
            let ends = (End::new(&router, interface), End::new(host, "eth0"));
            connect(ends.0, ends.1, offloads)?;
            let [a, b, c, d] = address.octets();
            let gateway = Ipv4Addr::new(a, b, c, d + 1);
            ends.0.add_address(gateway, 24)?;
            ends.1.add_address(address, 24)?;
            run(Command::new("ip")
                .args(["-n", host.name(), "route", "add", "default", "via"])
                .arg(gateway.to_string()))?;
        }
        let mut command = server.command("iperf3");
        // Without --forceflush the awaited line stays in a buffer.
        command.args(["--server", "--forceflush"]);
        let mut listening = Process::spawn(command)?;
        listening.wait_for_output("Server listening", Duration::from_secs(10))?;
        Ok(Self { client, router, empty: kernel::baseline()?, _listening: listening, _server: server })
    }

    /// Measures while `watcher` watches and iperf3 sends.
    fn measure(&mut self, watcher: &Watcher, streams: u32, measured: &mut Measured) -> Result<()> {
        let foreign: BTreeSet<u32> = packet_programs().into_keys().collect();
        let watching = watcher.watch(&self.router, WATCHED, &mut self.empty)?;
        let of_watcher = self.programs(&watching, &foreign)?;
        let before = packet_programs();
        let throughput = self.send(streams)?;
        let after = packet_programs();
        watching.stop(&self.router)?;
        measured.throughput.push(throughput);
        let (mut runs, mut time) = (0, Duration::ZERO);
        for (id, after) in after.iter().filter(|(id, _)| of_watcher.contains(id)) {
            let before = before.get(id).copied().unwrap_or_default();
            runs += after.0 - before.0;
            time += after.1.saturating_sub(before.1);
        }
        if matches!(watcher, Watcher::Nobody) {
            return Ok(());
        }
        ensure!(runs > 1_000, "a watcher saw {runs} packets: the figure would be of something else");
        measured.each.push(time.as_nanos() as f64 / runs as f64);
        measured.packets.push(runs as f64 / f64::from(SECONDS) / 1e3);
        Ok(())
    }

    /// The ids of a watcher's programs: those that were not loaded before it.
    fn programs(&self, watching: &Watching, foreign: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
        Ok(match watching {
            Watching::Nobody => BTreeSet::new(),
            Watching::Program(_) => {
                let program = self.empty.program(EMPTY).context("there is no empty program")?;
                BTreeSet::from([program.info()?.id()])
            }
            Watching::Process(_) => {
                packet_programs().into_keys().filter(|id| !foreign.contains(id)).collect()
            }
        })
    }

    /// Sends from client to server, and returns the Gbit/s that arrived.
    fn send(&self, streams: u32) -> Result<f64> {
        let mut iperf = self.client.command("iperf3");
        iperf.args(["--json", "--client", &SERVER.to_string()]);
        iperf.args(["--time", &SECONDS.to_string(), "--parallel", &streams.to_string()]);
        let answer: Value = serde_json::from_str(&run(&mut iperf)?)?;
        let rate = answer["end"]["sum_received"]["bits_per_second"].as_f64();
        Ok(rate.context("iperf3 reports no rate")? / 1e9)
    }
}

/// For each packet program of the machine, by id: the number of its runs, and their total time.
fn packet_programs() -> BTreeMap<u32, (u64, Duration)> {
    loaded_programs()
        // A program that is gone by now was not the watcher's.
        .flatten()
        .filter(|program| [SCHED_CLS, SCHED_ACT, XDP].contains(&(program.program_type() as u32)))
        .map(|program| (program.id(), (program.run_count(), program.run_time())))
        .collect()
}
