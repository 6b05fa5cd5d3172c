//! Measures how much less a router forwards while it is watched, on one core that does nothing else.
//!
//! A program generates the packets, run by `BPF_PROG_TEST_RUN` with live frames, which takes little of that core.
//! From there they take the path of all packets: a cable, tc ingress, the routing table, tc egress, another cable,
//! and a host that drops them.

use std::{
    ffi::CString,
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    process::Command,
    thread,
};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{
    Ebpf,
    maps::Array,
    programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp},
};
use pping_lab::{
    Namespace, run, stay_on,
    veth::{End, Offloads, connect},
};

use pping_bench_programs::exchange::Traffic;

use crate::{
    exchanges::{self, Connections},
    kernel,
    measure::Figure,
    report::Report,
    watcher::{self, Watcher},
};

/// Concurrent connections. More than 65,536 have several addresses.
const FLOWS: [u32; 7] = [1, 128, 1_024, 8_192, 32_768, 65_536, 262_144];

/// Connections for which the default limit of flows is enough.
const FLOWS_BY_DEFAULT: u32 = 65_536;

/// How often each path is measured with few connections, and with many.
const ROUNDS: [u32; 2] = [41, 9];

/// Packets in each measurement, which take some 20 ms, unless connections are many.
const ROUND: u32 = 20_000;

/// Packets in each measurement for a connection: enough for both ends to send.
const PER_FLOW: u32 = 4;

/// The kernel's batch size for a network card.
const BATCH: u32 = 64;

/// The length of a frame, by IPv4 and by IPv6.
const FRAMES: [usize; 2] = [14 + 20 + 32 + 100, 14 + 40 + 32 + 100];

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

/// Measures pping in some configurations, and `beside`, foreign commands that watch [`WATCHED`]. `flows` replaces
/// [`FLOWS`], unless it is empty.
pub(crate) fn measure(beside: &[String], flows: &[u32], report: &mut Report) -> Result<()> {
    let cpus = thread::available_parallelism()?.get();
    ensure!(cpus > 1, "one core routes and another one watches: this machine has one");
    let flows = if flows.is_empty() { &FLOWS } else { flows };
    let mut router = Router::new()?;
    println!(
        "\na router's one core forwards packets of so many flows by an interface that is watched, and by one that is not,\n\
         in turn; ns per packet\n"
    );
    for (what, is_v6, is_by_clock) in [
        ("IPv4, a tick of the timestamps' clock for each 1,024 packets", false, false),
        ("IPv4, a tick for each millisecond", false, true),
        ("IPv6, a tick for each 1,024 packets", true, false),
    ] {
        println!("{what}");
        println!(
            "{:<34} {:>7} {:>8} {:>8} {:>24} {:>10}",
            "", "flows", "alone", "watched", "more (min..max)", "throughput"
        );
        for &flows in flows {
            let connections = Connections { flows, is_v6, is_by_clock, is_opening: false };
            for (name, watcher) in watchers(flows, beside)? {
                let compared = router.compare(&watcher, connections, cpus - 1)?;
                let more = Figure::of(compared.iter().map(|(alone, watched)| watched - alone))?;
                let throughput = Figure::of(compared.iter().map(|(alone, watched)| 100.0 * alone / watched))?;
                let alone = Figure::of(compared.iter().map(|(alone, _)| *alone))?;
                let watched = Figure::of(compared.iter().map(|(_, watched)| *watched))?;
                println!(
                    "{name:<34} {flows:>7} {:>8.0} {:>8.0} {:>24} {:>8.1} %",
                    alone.median,
                    watched.median,
                    format!("{:.0} ({:.0}..{:.0})", more.median, more.min, more.max),
                    throughput.median,
                );
                let of = |figure| format!("{what}: {flows} flows, {name} watches: {figure}");
                report.take(of("the way alone"), "ns", &alone);
                report.take(of("the way that is watched"), "ns", &watched);
                report.take(of("more"), "ns", &more);
                report.take(of("throughput"), "%", &throughput);
            }
        }
    }
    Ok(())
}

/// What watches this many flows, with names.
fn watchers(flows: u32, beside: &[String]) -> Result<Vec<(&str, Watcher)>> {
    // On another core than the one that forwards.
    let command = |command: &str| Watcher::Command(format!("taskset --cpu-list 0 {command}"));
    let fixed = format!("{} -v -i {WATCHED} --format none", watcher::pping()?.display());
    let fixed = if flows > FLOWS_BY_DEFAULT { format!("{fixed} --max-flows {}", 2 * flows) } else { fixed };
    let mut watchers = vec![
        ("nobody", Watcher::Nobody),
        ("an empty program", Watcher::Program("baseline_empty")),
        ("parsing, and reading the clock", Watcher::Program("baseline_parse")),
        ("pping", command(&fixed)),
        ("pping --rate-limit 10s", command(&format!("{fixed} --rate-limit 10s"))),
        ("pping --rate-limit 0", command(&format!("{fixed} --rate-limit 0"))),
    ];
    watchers.extend(beside.iter().map(|beside| (beside.as_str(), command(beside))));
    Ok(watchers)
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
            let ends = route.interfaces().into_iter().zip(route.ends());
            for ((interface, end), addresses) in ends.zip(addresses(route as u8)) {
                let interface = &interface;
                connect(End::new(&namespace, interface), End::new(&hosts, &end), Offloads::On)?;
                ip(&format!("link set dev {interface} address {mac}"))?;
                for address in addresses {
                    ip(&format!("route add {address} dev {interface}"))?;
                    // Not the MAC address of the host, which therefore drops the packets at once.
                    let neighbour =
                        format!("neighbour replace {address} lladdr {NOBODY_MAC} dev {interface}");
                    ip(&format!("{neighbour} nud permanent"))?;
                }
                // Without GRO a veth takes no frames from a program.
                run(namespace.command("ethtool").args(["-K", interface, "gro", "on"]))?;
            }
        }
        Ok(Self { namespace, hosts, traffic: kernel::baseline()? })
    }

    /// Forwards packets by an interface that something watches and by one that nothing watches, in turn. Returns the ns per
    /// packet of each round, first those of the unwatched one.
    fn compare(
        &mut self,
        watcher: &Watcher,
        connections: Connections,
        cpu: usize,
    ) -> Result<Vec<(f64, f64)>> {
        let watching = watcher.watch(&self.namespace, WATCHED, &mut self.traffic)?;
        let rounds = ROUNDS[usize::from(round(connections.flows) > ROUND)];
        let mut compared = Vec::new();
        for round in 0..=rounds {
            // The first round opens the flows, and warms up.
            let connections = Connections { is_opening: round == 0, ..connections };
            let alone = self.forward(Route::Unwatched, connections, cpu)?;
            let watched = self.forward(Route::Watched, connections, cpu)?;
            if round > 0 {
                compared.push((alone, watched));
            }
        }
        let summary = watching.stop(&self.namespace)?;
        // Each packet of a flow that was evicted would insert one: that is a flood, not a router with many connections.
        if let Some(line) = summary.lines().find(|line| line.starts_with("evicted:")) {
            bail!("the connections were taken for a flood, and the figure is of one: {line}");
        }
        Ok(compared)
    }

    /// Forwards packets on one core, and returns the ns per packet.
    pub(crate) fn forward(&mut self, route: Route, connections: Connections, cpu: usize) -> Result<f64> {
        let Self { namespace, hosts, traffic } = self;
        let repeat = round(connections.flows);
        let before = namespace.enter(|| sent(route))??;
        let took = hosts.enter(|| {
            stay_on(cpu)?;
            let [client, server] = route.ends();
            let interfaces = [ifindex(&client)?, ifindex(&server)?];
            let packets = exchanges::traffic(connections, interfaces, ROUTER_MAC, route as u8);
            let map = traffic.map_mut("TRAFFIC").context("there is no map of the traffic")?;
            Array::try_from(map)?.set(0, packets, 0)?;
            let program: &Xdp = traffic.program("traffic").context("there is no traffic")?.try_into()?;
            let result = program.test_run(TestRunOptions {
                data_in: Some(&vec![0; FRAMES[usize::from(connections.is_v6)]]),
                repeat,
                attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
                ..TestRunOptions::default()
            })?;
            anyhow::Ok(result.duration.as_nanos() as f64)
        })??;
        let forwarded = namespace.enter(|| sent(route))?? - before;
        ensure!(
            forwarded * 100 >= u64::from(repeat) * 99,
            "{forwarded} of {repeat} packets were forwarded: the figure is of something else"
        );
        Ok(took)
    }
}

/// Packets in a measurement.
fn round(flows: u32) -> u32 {
    ROUND.max(PER_FLOW * flows)
}

/// The addresses of clients and of servers in the network with this number.
fn addresses(network: u8) -> [Vec<IpAddr>; 2] {
    let ([client, server], [client_v6, server_v6]) =
        (exchanges::hosts_v4(network), exchanges::hosts_v6(network));
    let further = (0..Traffic::MAX_FLOWS / Traffic::FLOWS_PER_ADDRESS)
        .map(|number| number as u16 * Traffic::ADDRESS_STEP);
    let clients = further.flat_map(|further| {
        let (v4, v6) = (u32::from(client) + u32::from(further), u128::from(client_v6) + u128::from(further));
        [Ipv4Addr::from(v4).into(), Ipv6Addr::from(v6).into()]
    });
    [clients.collect(), vec![server.into(), server_v6.into()]]
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
