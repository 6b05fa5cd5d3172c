//! How much less a router forwards while it is watched: one core of it, which has nothing else to do.
//!
//! A program makes them, run by `BPF_PROG_TEST_RUN` with live frames, which takes little of that core. From there they go the
//! way of all packets: a cable, tc ingress, the routing table, tc egress, another cable, and a host that has no use for
//! them.

use std::{
    ffi::CString,
    fs, io, mem,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    maps::Array,
    programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp},
};
use pping_lab::{
    Namespace, Process, Signal, run,
    veth::{End, Offloads, connect},
};

use crate::{exchanges, kernel, measure::Figure};

/// Connections at the same time.
const FLOWS: [u32; 4] = [1, 8, 128, 1024];

/// How often each is measured.
const ROUNDS: u32 = 7;

/// Packets each time.
const ROUND: u32 = 600_000;

/// As many as the kernel takes from a network card at a time.
const BATCH: u32 = 64;

/// Octets of a frame.
const FRAME: usize = 14 + 20 + 32 + 100;

const LAN: &str = "lan0";
const WAN: &str = "wan0";
const CLIENT: &str = "client0";
const SERVER: &str = "server0";
const CLIENT_MAC: &str = "02:00:00:00:00:01";
const SERVER_MAC: &str = "02:00:00:00:00:02";
/// Of both interfaces.
const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];

/// A way to watch the router.
struct Watcher {
    name: String,
    command: Option<Vec<String>>,
    /// Packets a second by number of flows, a round after the other.
    forwarded: [Vec<f64>; FLOWS.len()],
}

/// Measures without anything, with pping in two ways, and with `beside`, a command of somebody else's that watches [`WAN`].
pub(crate) fn measure(beside: Option<&str>) -> Result<()> {
    let cpus = thread::available_parallelism()?.get();
    ensure!(cpus > 1, "one core routes and another one watches: this machine has one");
    println!("\nmillion packets a second through a router whose one core is busy, {ROUNDS} rounds in turn");
    let pping = std::env::current_exe()?.with_file_name("pping");
    let mut watchers = watchers(pping, beside);
    let mut router = Router::new()?;
    for _ in 0..ROUNDS {
        for watcher in &mut watchers {
            let watching = watcher.command.as_deref().map(|command| router.watch(command)).transpose()?;
            for (flows, forwarded) in FLOWS.into_iter().zip(&mut watcher.forwarded) {
                forwarded.push(router.forward(flows, cpus - 1)?);
            }
            if let Some(mut watching) = watching {
                watching.stop(Signal::SIGINT, Duration::from_secs(10))?;
            }
        }
    }
    let (alone, watched) = watchers.split_first().context("nothing is measured")?;
    println!("{:<34} {:>6} {:>10} {:>8} {:>16}", "", "flows", "Mpps", "of it", "ns per packet");
    for (number, flows) in FLOWS.into_iter().enumerate() {
        let alone = &alone.forwarded[number];
        println!("{:<34} {flows:>6} {:>10.3}", "nobody watches", median(alone) / 1e6);
        for watcher in watched {
            let forwarded = &watcher.forwarded[number];
            let pairs = || alone.iter().zip(forwarded);
            let share = Figure::of(pairs().map(|(alone, with)| 100.0 * with / alone))?;
            let cost = Figure::of(pairs().map(|(alone, with)| 1e9 / with - 1e9 / alone))?;
            println!(
                "{:<34} {flows:>6} {:>10.3} {:>6.1} % {:>6.0} ({:.0}..{:.0})",
                watcher.name,
                median(forwarded) / 1e6,
                share.median,
                cost.median,
                cost.min,
                cost.max,
            );
        }
    }
    Ok(())
}

fn watchers(pping: PathBuf, beside: Option<&str>) -> Vec<Watcher> {
    let pping = pping.to_string_lossy().into_owned();
    let own = |arguments: &str| {
        let arguments = arguments.split_whitespace().map(str::to_owned);
        let fixed = ["-v", "-i", WAN, "--format", "none"].map(str::to_owned);
        [pping.clone()].into_iter().chain(fixed).chain(arguments).collect()
    };
    let watcher =
        |name: &str, command| Watcher { name: name.to_owned(), command, forwarded: Default::default() };
    let mut watchers = vec![
        watcher("nobody watches", None),
        watcher("pping", Some(own(""))),
        watcher("pping --rate-limit 0", Some(own("--rate-limit 0"))),
    ];
    if let Some(command) = beside {
        watchers.push(watcher(command, Some(command.split_whitespace().map(str::to_owned).collect())));
    }
    watchers
}

/// A router between a client and a server, which are the same host.
struct Router {
    namespace: Namespace,
    hosts: Namespace,
    traffic: Ebpf,
}

impl Router {
    fn new() -> Result<Self> {
        let (hosts, namespace) = (Namespace::new("hosts")?, Namespace::new("router")?);
        namespace.forward()?;
        let mac = ROUTER_MAC.map(|octet| format!("{octet:02x}")).join(":");
        for (interface, end, end_mac, address) in
            [(LAN, CLIENT, CLIENT_MAC, "10.0.0.1"), (WAN, SERVER, SERVER_MAC, "10.0.0.2")]
        {
            connect(End::new(&namespace, interface), End::new(&hosts, end), Offloads::On)?;
            let ip = |on: &Namespace, arguments: &str| {
                run(Command::new("ip").args(["-n", on.name()]).args(arguments.split_whitespace()))
            };
            ip(&namespace, &format!("link set dev {interface} address {mac}"))?;
            ip(&hosts, &format!("link set dev {end} address {end_mac}"))?;
            ip(&namespace, &format!("route add {address} dev {interface}"))?;
            let neighbour = format!("neighbour replace {address} lladdr {end_mac} dev {interface}");
            ip(&namespace, &format!("{neighbour} nud permanent"))?;
            // With this a cable takes frames that come from a program.
            run(namespace.command("ethtool").args(["-K", interface, "gro", "on"]))?;
        }
        Ok(Self { namespace, hosts, traffic: kernel::baseline()? })
    }

    /// Starts what watches, on another core than the one that routes.
    fn watch(&self, command: &[String]) -> Result<Process> {
        let mut taskset = self.namespace.command("taskset");
        taskset.args(["--cpu-list", "0"]).args(command);
        let mut process = Process::spawn(taskset)?;
        if command.iter().any(|argument| argument == "-v") {
            process.wait_for_output(&format!("watching {WAN}"), Duration::from_secs(20))?;
        } else {
            thread::sleep(Duration::from_secs(3));
        }
        Ok(process)
    }

    /// Forwards for a while, on one core, and returns how many packets a second.
    fn forward(&mut self, flows: u32, cpu: usize) -> Result<f64> {
        let Self { namespace, hosts, traffic } = self;
        let before = namespace.enter(sent)??;
        let given = ROUND + ROUND / 8;
        let took = hosts.enter(|| {
            stay_on(cpu)?;
            let interfaces = [ifindex(CLIENT)?, ifindex(SERVER)?];
            let map = traffic.map_mut("TRAFFIC").context("there is no map of the traffic")?;
            Array::try_from(map)?.set(0, exchanges::traffic(flows, interfaces, ROUTER_MAC), 0)?;
            let program: &Xdp = traffic.program("traffic").context("there is no traffic")?.try_into()?;
            let send = |packets| {
                program.test_run(TestRunOptions {
                    data_in: Some(&[0; FRAME]),
                    repeat: packets,
                    attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
                    ..TestRunOptions::default()
                })
            };
            // The first ones make the flows, and warm up.
            send(ROUND / 8)?;
            let began = Instant::now();
            send(ROUND)?;
            anyhow::Ok(began.elapsed().as_secs_f64())
        })??;
        let forwarded = namespace.enter(sent)?? - before;
        ensure!(
            forwarded * 100 >= u64::from(given) * 99,
            "{forwarded} of {given} packets were forwarded: the figure is of something else"
        );
        Ok(f64::from(ROUND) / took)
    }
}

/// Keeps this thread on a core.
fn stay_on(cpu: usize) -> Result<()> {
    // SAFETY: plain bits, for which all zeroes is a value.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: a set of the length told; `CPU_SET` checks whether there is such a bit.
    let result = unsafe {
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    ensure!(result == 0, "staying on CPU {cpu}: {}", io::Error::last_os_error());
    Ok(())
}

fn ifindex(interface: &str) -> Result<u32> {
    let name = CString::new(interface)?;
    // SAFETY: a C string.
    let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
    ensure!(number != 0, "{interface}: {}", io::Error::last_os_error());
    Ok(number)
}

/// Packets that both interfaces of the router sent.
fn sent() -> Result<u64> {
    /// What is sent follows eight figures of what was received.
    const SENT_PACKETS: usize = 9;
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    [LAN, WAN].into_iter().try_fold(0, |sum, interface| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'));
        let packets = line.and_then(|line| line.split_whitespace().nth(SENT_PACKETS)?.parse::<u64>().ok());
        Ok(sum + packets.with_context(|| format!("{interface} is not in /proc/net/dev"))?)
    })
}

fn median(figures: &[f64]) -> f64 {
    Figure::of(figures.iter().copied()).map_or(f64::NAN, |figure| figure.median)
}
