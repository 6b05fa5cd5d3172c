//! `--profile small`: what its maps take, as the kernel accounts it, and what is measured with them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pping_lab::{Namespace, Process, Signal, Topology};

use super::{
    bpffs::Bpffs,
    host::Host,
    http::{LISTEN, is_ready, scrape},
    monitor::{
        ENDING, PATIENCE, PPING, converse, interrupt, ok, ping, topology, wait_until, watch, watch_with,
    },
};

/// What all maps together may take.
const LIMIT: u64 = 16 << 20;

/// `BPF_F_NO_PREALLOC` of linux/bpf.h: the map takes memory as it fills. Before Linux 6.4 the kernel reports it as if it were full.
const NO_PREALLOC: u64 = 1;

const ICMP: [(&str, &str); 2] = [("interface", Topology::WAN), ("method", "icmp-echo")];

/// The bytes of each map that a process has open, by its id, as the kernel accounts them.
fn maps_of(process: &Process) -> BTreeMap<u64, u64> {
    let directory = fs::read_dir(format!("/proc/{}/fdinfo", process.id())).unwrap();
    let texts = directory.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
    let map = |text: String| {
        let field = |name| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let flags = u64::from_str_radix(field("map_flags:")?.trim_start_matches("0x"), 16).ok()?;
        let is_counted = flags & NO_PREALLOC == 0;
        is_counted.then_some((field("map_id:")?.parse().ok()?, field("memlock:")?.parse().ok()?))
    };
    texts.filter_map(map).collect()
}

/// The mebibytes that the log names.
#[track_caller]
fn logged(process: &Process) -> f64 {
    wait_until("it says what the maps take", || ok(process.stderr()).contains("maps take "));
    let log = ok(process.stderr());
    let (_, rest) = log.split_once("maps take ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

fn kill(mut pping: Process, signal: Signal) {
    ok(pping.signal(signal));
    ok(pping.wait_timeout(ENDING));
}

#[test]
fn small_maps_take_less_than_16_mib_and_measure_the_same() {
    let inside = format!("--inside {}/32", Topology::SERVER_IPV4);
    let everything = format!("--ingress xdp --residence {inside} --aggregate 10s --group-by /32,/128");
    for options in ["--ingress tc", "--ingress auto", &everything] {
        let topology = topology();
        let options = format!("{LISTEN} --rate-limit 0 --format none --profile small {options}");
        let agent = watch(topology.router(), Topology::WAN, &options);
        wait_until("it is ready", || is_ready(topology.router()));
        let maps = maps_of(&agent);
        let taken: u64 = maps.values().sum();
        assert!(maps.len() > 40 && taken < LIMIT, "{options}: {} maps take {taken} bytes", maps.len());
        let logged = logged(&agent);
        let in_mebibytes = taken as f64 / f64::from(1 << 20);
        assert!((logged - in_mebibytes).abs() < 0.1, "{options}: {logged} and {in_mebibytes} MiB");

        ping(topology.client(), Topology::SERVER_IPV4, "-c7 -i0.05");
        converse(&topology, 3);
        let sum = |name: &str, labels: &[(&str, &str)]| scrape(topology.router()).sum(name, labels);
        wait_until("each echo is measured once", || sum("pping_rtt_seconds_count", &ICMP) == Some(7.0));
        let mean = sum("pping_rtt_seconds_sum", &ICMP).unwrap() / 7.0;
        // The wire takes 5 ms each way.
        assert!((0.010..1.0).contains(&mean), "{options}: {mean} s");
        wait_until("TCP is measured", || {
            sum("pping_samples_total", &[("interface", Topology::WAN), ("method", "tcp-ts")]) >= Some(6.0)
        });
        for (map, room) in [("FLOWS_V4", 8192.0), ("FLOWS_V6", 8192.0)] {
            assert_eq!(sum("pping_map_capacity", &[("map", map)]), Some(room), "{options}");
        }
        interrupt(agent);
    }
}

#[test]
fn a_size_that_is_given_wins_over_the_profile() {
    let topology = topology();
    let options = format!("{LISTEN} --format none --profile small --max-flows 20000");
    let agent = watch(topology.router(), Topology::WAN, &options);
    wait_until("it is ready", || is_ready(topology.router()));
    let capacity = |map| scrape(topology.router()).sum("pping_map_capacity", &[("map", map)]);
    assert_eq!((capacity("FLOWS_V4"), capacity("INTERFACES")), (Some(20_000.0), Some(32.0)));
    interrupt(agent);
}

/// A control group that limits memory, for maps too.
struct Limited {
    path: PathBuf,
}

impl Limited {
    /// Creates the group beside this process' own, or where cgroup2 is mounted.
    fn to(bytes: u64) -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.strip_prefix("memory:/").map(|own| Path::new("/sys/fs/cgroup/memory").join(own))
        });
        let (parent, limit) = match own {
            Some(own) => (own, "memory.limit_in_bytes"),
            None => (PathBuf::from("/sys/fs/cgroup"), "memory.max"),
        };
        let path = parent.join(format!("pping-test-{}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("no control group {}: {error}", path.display()));
        fs::write(path.join(limit), bytes.to_string())
            .unwrap_or_else(|error| panic!("{} has no {limit}: {error}", path.display()));
        Self { path }
    }

    /// The command to run pping in the group.
    fn pping(&self, host: &Namespace, arguments: &str) -> Command {
        let mut command = host.command("sh");
        command.args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""]).arg(&self.path).arg(PPING);
        command.args(arguments.split_whitespace());
        command
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // The kernel takes a moment to end the processes.
        wait_until("the control group is removed", || fs::remove_dir(&self.path).is_ok());
    }
}

#[test]
fn maps_that_are_refused_for_want_of_memory_name_the_profile() {
    let (host, group) = (Host::new(), Limited::to(100 << 20));
    let arguments = format!("-v -i {} --format none", Host::ETH);
    let mut process = ok(Process::spawn(group.pping(&host.namespace, &arguments)));
    let status = ok(process.wait_timeout(PATIENCE));
    let said = ok(process.stderr());
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("not enough memory") && said.contains("--profile small"), "{said}");
    let small = group.pping(&host.namespace, &format!("{arguments} --profile small"));
    interrupt(watch_with(small, Host::ETH));
}

/// The ring has another size with the profile, too, which the agent must not take for that of a pinned one.
#[test]
fn pinned_sizes_win_over_the_profile_and_that_is_reported() {
    let (topology, pins) = (topology(), Bpffs::new());
    let options =
        |more: &str| format!("{LISTEN} --rate-limit 0 --format jsonl --pin {} {more}", pins.pins().display());
    let large = options("--max-flows 2000 --max-interfaces 32");
    kill(watch(topology.router(), Topology::WAN, &large), Signal::SIGTERM);
    let agent = watch(topology.router(), Topology::WAN, &options("--profile small"));
    wait_until("it is ready", || is_ready(topology.router()));
    let said = ok(agent.stderr());
    assert!(
        said.contains("--max-flows 8192: the maps pinned in") && said.contains("have room for 2000"),
        "{said}"
    );
    ping(topology.client(), Topology::SERVER_IPV4, "-c5 -i0.05");
    wait_until("each sample is reported", || {
        ok(agent.stdout()).lines().filter(|line| line.contains("\"method\":\"icmp-echo\"")).count() == 5
    });
    kill(agent, Signal::SIGTERM);

    // With the default of --max-interfaces, the maps have another layout.
    kill(watch(topology.router(), Topology::WAN, &options("--max-interfaces 256")), Signal::SIGTERM);
    let agent = watch(topology.router(), Topology::WAN, &options("--profile small"));
    wait_until("it is said", || ok(agent.stderr()).contains("counters start again from zero"));
    wait_until("it is ready", || is_ready(topology.router()));
    let taken: u64 = maps_of(&agent).values().sum();
    assert!(taken < LIMIT, "{taken}");
    kill(agent, Signal::SIGTERM);
}
