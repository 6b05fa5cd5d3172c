//! Measures how much less a router forwards while it is watched, on one core that does nothing else.
//!
//! A program generates the packets, run by `BPF_PROG_TEST_RUN` with live frames, which takes little of that core.
//! From there they take the path of all packets: a cable, tc ingress, the routing table, tc egress, another cable,
//! and a host that drops them.

use std::{ffi::CString, fs, io, net::Ipv4Addr, process::Command, thread};

use anyhow::{Context as _, Result, ensure};
use aya::{
    Ebpf,
    maps::Array,
    programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp},
};
use pping_lab::{
    Namespace, run, stay_on,
    veth::{End, Offloads, connect},
};

use crate::{
    exchanges, kernel,
    measure::Figure,
    report::Report,
    watcher::{self, Watcher},
};

/// Concurrent connections.
const FLOWS: [u32; 4] = [1, 8, 128, 1024];

/// How often each path is measured.
const ROUNDS: u32 = 41;

/// Packets in each measurement, which take some 20 ms.
const ROUND: u32 = 20_000;

/// The kernel's batch size for a network card.
const BATCH: u32 = 64;

/// The length of a frame.
const FRAME: usize = 14 + 20 + 32 + 100;

/// The MAC address of all interfaces of the router.
const ROUTER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];
const NOBODY_MAC: &str = "02:00:00:00:00:01";

/// One of two paths through the router, with a pair of interfaces each.
#[derive(Clone, Copy)]
pub(crate) enum Route {
    /// The path that nothing watches.
    Unwatched,
    /// The path with a watched interface.
    Watched,
}

/// The watched interface.
pub(crate) const WATCHED: &str = "wan1";

impl Route {
    const ALL: [Self; 2] = [Self::Unwatched, Self::Watched];

    /// The router's interfaces to the clients and to the servers.
    fn interfaces(self) -> [String; 2] {
        ["lan", "wan"].map(|name| format!("{name}{}", self as u8))
    }

    /// The hosts' ends of them.
    fn ends(self) -> [String; 2] {
        ["client", "server"].map(|name| format!("{name}{}", self as u8))
    }
}

/// Measures pping in two configurations, and `beside`, a foreign command that watches [`WATCHED`].
pub(crate) fn measure(beside: Option<&str>, report: &mut Report) -> Result<()> {
    let cpus = thread::available_parallelism()?.get();
    ensure!(cpus > 1, "one core routes and another one watches: this machine has one");
    let fixed = format!("{} -v -i {WATCHED} --format none", watcher::pping()?.display());
    // On another core than the one that forwards.
    let command = |command: &str| Watcher::Command(format!("taskset --cpu-list 0 {command}"));
    let mut watchers = vec![
        ("nobody", Watcher::Nobody),
        ("an empty program", Watcher::Program("baseline_empty")),
        ("parsing, and reading the clock", Watcher::Program("baseline_parse")),
        ("pping", command(&fixed)),
        ("pping --rate-limit 0", command(&format!("{fixed} --rate-limit 0"))),
    ];
    watchers.extend(beside.map(|beside| (beside, command(beside))));
    let mut router = Router::new()?;
    println!(
        "\na router's one core forwards packets of so many flows by an interface that is watched, and by one that is not,\n\
         in turn, {ROUNDS} times each; ns per packet\n"
    );
    println!(
        "{:<34} {:>6} {:>8} {:>8} {:>24} {:>10}",
        "", "flows", "alone", "watched", "more (min..max)", "throughput"
    );
    for (name, watcher) in watchers {
        let watching = watcher.watch(&router.namespace, WATCHED, &mut router.traffic)?;
        for flows in FLOWS {
            let mut rounds = Vec::new();
            for round in 0..=ROUNDS {
                let alone = router.forward(Route::Unwatched, flows, cpus - 1)?;
                let watched = router.forward(Route::Watched, flows, cpus - 1)?;
                // The first round opens the flows, and warms up.
                if round > 0 {
                    rounds.push((alone, watched));
                }
            }
            let alone = Figure::of(rounds.iter().map(|(alone, _)| *alone))?;
            let watched = Figure::of(rounds.iter().map(|(_, watched)| *watched))?;
            let more = Figure::of(rounds.iter().map(|(alone, watched)| watched - alone))?;
            let throughput = Figure::of(rounds.iter().map(|(alone, watched)| 100.0 * alone / watched))?;
            println!(
                "{name:<34} {flows:>6} {:>8.0} {:>8.0} {:>24} {:>8.1} %",
                alone.median,
                watched.median,
                format!("{:.0} ({:.0}..{:.0})", more.median, more.min, more.max),
                throughput.median,
            );
            let of = |what| format!("{flows} flows, {name} watches: {what}");
            report.take(of("the way alone"), "ns", &alone);
            report.take(of("the way that is watched"), "ns", &watched);
            report.take(of("more"), "ns", &more);
            report.take(of("throughput"), "%", &throughput);
        }
        watching.stop(&router.namespace)?;
    }
    Ok(())
}

/// A router between clients and servers, which are all the same host.
pub(crate) struct Router {
    pub(crate) namespace: Namespace,
    hosts: Namespace,
    pub(crate) traffic: Ebpf,
}

impl Router {
    /// A router that nothing watches yet.
    pub(crate) fn new() -> Result<Self> {
        let (hosts, namespace) = (Namespace::new("hosts")?, Namespace::new("router")?);
        namespace.forward()?;
        let mac = ROUTER_MAC.map(|byte| format!("{byte:02x}")).join(":");
        let ip = |arguments: &str| {
            run(Command::new("ip").args(["-n", namespace.name()]).args(arguments.split_whitespace()))
        };
        for route in Route::ALL {
            let addresses = exchanges::hosts(route as u8).map(Ipv4Addr::from);
            for ((interface, end), address) in route.interfaces().iter().zip(route.ends()).zip(addresses) {
                connect(End::new(&namespace, interface), End::new(&hosts, &end), Offloads::On)?;
                ip(&format!("link set dev {interface} address {mac}"))?;
                ip(&format!("route add {address} dev {interface}"))?;
                // Not the MAC address of the host, which therefore drops the packets at once.
                let neighbour = format!("neighbour replace {address} lladdr {NOBODY_MAC} dev {interface}");
                ip(&format!("{neighbour} nud permanent"))?;
                // Without GRO a veth takes no frames from a program.
                run(namespace.command("ethtool").args(["-K", interface, "gro", "on"]))?;
            }
        }
        Ok(Self { namespace, hosts, traffic: kernel::baseline()? })
    }

    /// Forwards [`ROUND`] packets on one core, and returns the ns per packet.
    pub(crate) fn forward(&mut self, route: Route, flows: u32, cpu: usize) -> Result<f64> {
        let Self { namespace, hosts, traffic } = self;
        let before = namespace.enter(|| sent(route))??;
        let took = hosts.enter(|| {
            stay_on(cpu)?;
            let [client, server] = route.ends();
            let interfaces = [ifindex(&client)?, ifindex(&server)?];
            let packets = exchanges::traffic(flows, interfaces, ROUTER_MAC, exchanges::hosts(route as u8));
            let map = traffic.map_mut("TRAFFIC").context("there is no map of the traffic")?;
            Array::try_from(map)?.set(0, packets, 0)?;
            let program: &Xdp = traffic.program("traffic").context("there is no traffic")?.try_into()?;
            let result = program.test_run(TestRunOptions {
                data_in: Some(&[0; FRAME]),
                repeat: ROUND,
                attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
                ..TestRunOptions::default()
            })?;
            anyhow::Ok(result.duration.as_nanos() as f64)
        })??;
        let forwarded = namespace.enter(|| sent(route))?? - before;
        ensure!(
            forwarded * 100 >= u64::from(ROUND) * 99,
            "{forwarded} of {ROUND} packets were forwarded: the figure is of something else"
        );
        Ok(took)
    }
}

/// The number of an interface in this thread's namespace.
pub(crate) fn ifindex(interface: &str) -> Result<u32> {
    let name = CString::new(interface)?;
    // SAFETY: a C string.
    let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
    ensure!(number != 0, "{interface}: {}", io::Error::last_os_error());
    Ok(number)
}

/// The packets that the router sent.
fn sent(route: Route) -> Result<u64> {
    /// The column of sent packets, after eight numbers about received packets and the sent bytes.
    const SENT_PACKETS: usize = 9;
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    route.interfaces().iter().try_fold(0, |sum, interface| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'));
        let packets = line.and_then(|line| line.split_whitespace().nth(SENT_PACKETS)?.parse::<u64>().ok());
        Ok(sum + packets.with_context(|| format!("{interface} is not in /proc/net/dev"))?)
    })
}
