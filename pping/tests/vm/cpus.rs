//! Packets of a flow that pass on several CPUs at the same time, while tables fill and empty, groups are reloaded and
//! interfaces come and go: `cargo xtask vm --cpus 8 cpus`.
//!
//! No sample may be wrong, each packet must be counted, and each sample that is missing must be explained by what pping says
//! it skipped. tcpdump on the same interface is the witness; `judge` has the rules.

mod judge;
mod lanes;
mod scripts;
mod seen;

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{
    Namespace, Process, Signal, run, stay_on,
    traffic::{self, Behaviour, Pace, Server},
};
use serde_json::Value;

use self::{
    judge::{Expected, Verdict, flow_of, judge},
    lanes::{Ends, Progress, Random, play, send},
    scripts::{Kind, Script},
    seen::{Host, Packet},
};
use super::{
    capture::Capture,
    frames::{ACK, Ip, RST, SYN, TCP, Tcp, v4},
    http::{Exposition, LISTEN, scrape},
    monitor::{PATIENCE, ok, ping, pping, wait_until, watch_with},
    net::ip,
    records::Sample,
    report::skip,
};

/// With fewer, packets hardly ever meet.
const FEWEST_CPUS: usize = 4;

const NEAR: &str = "cpu0";
const FAR: &str = "cpu1";
const NEAR_ADDRESSES: [&str; 2] = ["10.12.0.1", "fd00:12::1"];
const FAR_ADDRESSES: [&str; 2] = ["10.12.0.2", "fd00:12::2"];

/// Two flows of each kind and family in each of two lanes, with room for conversations, and not for many more.
const LANES: usize = 2;
const FLOWS_PER_KIND: u16 = 3;
const MAX_FLOWS: u32 = 256;
/// More than there is room for.
const SHORT_FLOWS: u16 = 300;

/// What a packet that was not matched can have cost at most, in a flow of a script: six echoes that waited in each direction; of TCP,
/// three in each, its own, and the first of the next tick in both.
const LOST_OF_SCRIPT: usize = 12;
/// In a conversation, where eight can wait in each direction.
const LOST_OF_CONVERSATION: usize = 20;
/// One sample in so many of a conversation may be missing beside: kernels hold back acknowledgements and send again, and
/// then much depends on the order of packets on two CPUs, which is not tcpdump's.
const OF_OTHER_ORDER: usize = 100;

/// Steps of scripts by which a run can be judged, and how much longer it may take to get there.
const FEWEST_STEPS: usize = 400;
const LONGER: Duration = Duration::from_mins(2);

/// The longest pause in a conversation.
const PAUSE: Duration = Duration::from_millis(60);

/// How long the agent takes to show what it has, on a busy machine.
const SETTLING: Duration = Duration::from_secs(3);

const GROUPS: [&str; 2] = [
    "prefix,group\n192.0.2.0/25,script\n10.12.0.0/16,host\nfd00:12::/64,host-6\n",
    "prefix,group\n192.0.2.0/24,script\n192.0.2.2/32,far\n10.12.0.2/32,far-host\n2001:db8::/32,script-6\n",
];

/// The number of CPUs, if that is enough.
fn cpus() -> Option<usize> {
    let cpus = thread::available_parallelism().unwrap().get();
    if cpus < FEWEST_CPUS {
        skip(&format!("{cpus} CPU of the machine; `cargo xtask vm --cpus 8 cpus` gives it several"));
        return None;
    }
    Some(cpus)
}

/// Two hosts with a cable that has a queue for each CPU.
struct Cable {
    near: Namespace,
    far: Namespace,
}

impl Cable {
    fn new(cpus: usize) -> Self {
        let [near, far] = ["near", "far"].map(|role| ok(Namespace::new(role)));
        let queues = format!("numrxqueues {cpus} numtxqueues {cpus}");
        let pair = format!(
            "link add name {NEAR} netns {} {queues} type veth peer name {FAR} netns {} {queues}",
            near.name(),
            far.name()
        );
        ok(run(Command::new("ip").args(pair.split_whitespace())));
        for (host, interface, addresses) in [(&near, NEAR, NEAR_ADDRESSES), (&far, FAR, FAR_ADDRESSES)] {
            ip(host, &format!("link set {interface} up"));
            ip(host, &format!("address add {}/24 dev {interface}", addresses[0]));
            ip(host, &format!("address add {}/64 dev {interface} nodad", addresses[1]));
        }
        // So that none of what follows is the first of its kind, for which the kernel patches its code: with other CPUs
        // running that is more than the emulator can stand.
        for host in [&near, &far] {
            steer_once(host, "lo", "1");
        }
        let server = ok(Server::start(&far, 0, Behaviour::Echo));
        for has_timestamps in ["0", "1"] {
            for host in [&near, &far] {
                ok(host.sysctl("net.ipv4.tcp_timestamps", has_timestamps));
            }
            for address in FAR_ADDRESSES {
                let address = SocketAddr::new(address.parse().unwrap(), server.port());
                let pace = Pace { chunks: 3, bytes: 100, pause: Duration::from_millis(10) };
                ok(traffic::echo(&near, address, pace));
                ping(&near, address.ip(), "-q -c2 -i0.1");
            }
        }
        drop(server);
        // tcpdump's times are those of the CPU that handles a packet, not of the one that queued it.
        fs::write("/proc/sys/net/core/netdev_tstamp_prequeue", "0").unwrap();
        Self { near, far }
    }

    /// Has received packets of flows go to other CPUs all the time, at the far end and, at tc, at the near one. XDP comes before
    /// that, and tcpdump after, which may be much later: there packets go to other CPUs by their queues.
    fn steer(&self, cpus: usize, ingress: &str) -> Vec<Process> {
        let all = (1_u64 << cpus) - 1;
        let masks = [0, all, 0x5555 & all, 0, 0xaaaa & all, 0x3333 & all].map(|mask| format!("{mask:x}"));
        let script = format!(
            "while :; do for mask in {}; do for queue in /sys/class/net/cpu*/queues/rx-*/rps_cpus; do \
             echo $mask >$queue; done; sleep 0.3; done; done",
            masks.join(" ")
        );
        // Unlike nsenter this shows the interfaces of the namespace in /sys.
        let is_steered = [true, ingress == "tc"];
        let hosts = [&self.far, &self.near].into_iter().zip(is_steered).filter(|(_, is_steered)| *is_steered);
        hosts
            .map(|(host, _)| {
                let mut shell = Command::new("ip");
                shell.args(["netns", "exec", host.name(), "sh", "-c", &script]);
                ok(Process::spawn(shell))
            })
            .collect()
    }

    /// Packets that the kernel has counted at the near end, received and sent.
    fn counted(&self) -> [u64; 2] {
        let text = ok(self.near.enter(|| fs::read_to_string("/proc/thread-self/net/dev"))).unwrap();
        let line =
            text.lines().find_map(|line| line.trim_start().strip_prefix(NEAR)?.strip_prefix(':')).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|it| it.parse().unwrap()).collect();
        [numbers[1], numbers[9] + numbers[11]]
    }
}

/// Sets which CPUs received packets of an interface go to.
fn steer_once(host: &Namespace, interface: &str, mask: &str) {
    let file = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
    let mut shell = Command::new("ip");
    ok(run(shell.args(["netns", "exec", host.name(), "sh", "-c", &format!("echo {mask} >{file}")])));
}

/// What pping has counted of an interface at one time.
struct Counted {
    metrics: Exposition,
    kernel: [u64; 2],
}

impl Counted {
    /// At a time when nothing passes. On a busy machine the agent may take long until it shows what the kernel had counted by
    /// then, so this waits until it shows all that passed since `start`, as long as there is hope.
    fn quietly(cable: &Cable, start: Option<&Self>) -> Self {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = cable.counted();
            thread::sleep(SETTLING);
            let found = Self { metrics: scrape(&cable.near), kernel: cable.counted() };
            let is_complete = start.is_none_or(|start| found.counted(start) == found.passed(start));
            if before == found.kernel && is_complete || Instant::now() > deadline {
                return found;
            }
        }
    }

    /// Packets received and sent since then, as the kernel has counted.
    fn passed(&self, start: &Self) -> [u64; 2] {
        [0, 1].map(|direction| self.kernel[direction] - start.kernel[direction])
    }

    /// The same as pping has.
    fn counted(&self, start: &Self) -> [u64; 2] {
        [0, 1].map(|direction| self.packets()[direction] - start.packets()[direction])
    }

    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.metrics.sum(name, labels).unwrap_or_default() as u64
    }

    fn packets(&self) -> [u64; 2] {
        ["ingress", "egress"].map(|direction| {
            self.sum("pping_packets_total", &[("interface", NEAR), ("direction", direction)])
        })
    }

    fn skipped(&self, reason: &str) -> usize {
        self.sum("pping_recordings_skipped_total", &[("interface", NEAR), ("reason", reason)]) as usize
    }
}

/// How often the table has filled and emptied.
#[derive(Debug, Default)]
struct Fills {
    filled: AtomicUsize,
    emptied: AtomicUsize,
}

/// Beside the flows that are judged: the table fills and empties, and unanswered flows are evicted.
fn crowd(ends: Ends<'_>, cpus: usize, near: &Namespace, is_over: &AtomicBool, fills: &Fills) {
    let sockets = [true, false].map(|is_near| ends.socket(is_near));
    let mut random = Random(77);
    let segment = |port: u16, is_near: bool, flags: u8| {
        let (ip, ports) = if is_near {
            (Ip::between(v4(20), v4(21)), (port, 80))
        } else {
            (Ip::between(v4(21), v4(20)), (80, port))
        };
        let options = Tcp::stamped(1000, 1000).options;
        let payload = if flags == ACK { 5 } else { 0 };
        ip.frame(TCP, &Tcp { ports, flags, payload, ..Tcp::with_options(options) }.bytes())
    };
    let mut port = 1000;
    while !is_over.load(Relaxed) {
        for _ in 0..SHORT_FLOWS {
            ok(stay_on(random.below(cpus)));
            port = if port < 60_000 { port + 1 } else { 1000 };
            for (is_near, flags) in [(true, SYN), (false, SYN | ACK), (true, ACK), (true, RST | ACK)] {
                send(&sockets[usize::from(!is_near)], &segment(port, is_near, flags));
            }
            if is_over.load(Relaxed) {
                return;
            }
            // A SYN that nothing answers.
            let unanswered = Ip::between(v4(30), v4(31));
            let syn = Tcp { ports: (port, 81), flags: SYN, ..Tcp::with_options([]) };
            send(&sockets[random.below(2)], &unanswered.frame(TCP, &syn.bytes()));
        }
        fills.filled.fetch_add(1, Relaxed);
        // Closed flows go after ten seconds, and leave room for the next.
        let entries = || scrape(near).sum("pping_map_entries", &[("map", "FLOWS_V4")]).unwrap_or_default();
        while !is_over.load(Relaxed) && entries() > f64::from(MAX_FLOWS) / 2.0 {
            thread::sleep(Duration::from_millis(500));
        }
        if !is_over.load(Relaxed) {
            fills.emptied.fetch_add(1, Relaxed);
        }
    }
}

/// Interfaces come and go, with a few packets on each.
fn come_and_go(cable: &Cable, is_over: &AtomicBool) -> u64 {
    let mut count = 0;
    while !is_over.load(Relaxed) {
        let pair = format!(
            "link add name extra0 netns {} type veth peer name extra1 netns {}",
            cable.near.name(),
            cable.far.name()
        );
        ok(run(Command::new("ip").args(pair.split_whitespace())));
        ip(&cable.near, "link set extra0 up");
        ip(&cable.far, "link set extra1 up");
        let ends = Ends { near: (&cable.near, "extra0"), far: (&cable.far, "extra1"), is_by_queue: false };
        let sockets = [true, false].map(|is_near| ends.socket(is_near));
        for number in 0..20 {
            let mut script = Script::new(Kind::ALL[number % 4], number % 8 > 3, 9000 + number as u16);
            for (seat, frames) in script.next().into_iter().enumerate() {
                for frame in frames {
                    send(&sockets[seat / 2], &frame);
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        ip(&cable.near, "link delete extra0");
        thread::sleep(Duration::from_millis(300));
        count += 1;
    }
    count
}

/// Has another groups file read every second.
fn reload(pping: &Process, groups: &Path, is_over: &AtomicBool) -> usize {
    let mut count = 0;
    while !is_over.load(Relaxed) {
        thread::sleep(Duration::from_secs(1));
        count += 1;
        fs::write(groups, GROUPS[count % 2]).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pping.id() as i32), Signal::SIGHUP).unwrap();
    }
    count
}

/// Conversations of the kernels, begun while there is room.
fn converse<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    cable: &'scope Cable,
    servers: &'scope [Server; 2],
    length: Duration,
) {
    for has_timestamps in ["0", "1"] {
        for host in [&cable.near, &cable.far] {
            ok(host.sysctl("net.ipv4.tcp_timestamps", has_timestamps));
        }
        for family in 0..2 {
            for (client, server, address) in [
                (&cable.near, &servers[1], FAR_ADDRESSES[family]),
                (&cable.far, &servers[0], NEAR_ADDRESSES[family]),
            ] {
                let address = SocketAddr::new(address.parse().unwrap(), server.port());
                let chunks = (length.as_millis() / PAUSE.as_millis()) as u32;
                let pace = Pace { chunks, bytes: 100, pause: PAUSE };
                scope.spawn(move || ok(traffic::echo(client, address, pace)));
            }
        }
        // Until they are connected.
        thread::sleep(Duration::from_secs(2));
    }
    for address in FAR_ADDRESSES {
        let count = length.as_millis() / 100;
        scope.spawn(move || {
            let mut ping = cable.near.command("ping");
            ok(run(ping.args(["-q", "-i0.1", "-W5", "-c", &count.to_string(), address])));
        });
    }
}

/// The flows of a lane.
fn scripts(lane: usize) -> Vec<Script> {
    let mut scripts = Vec::new();
    for number in 0..FLOWS_PER_KIND {
        for (offset, kind) in (0..).zip(Kind::ALL) {
            for is_ipv6 in [false, true] {
                let port = 20_000 + 1000 * lane as u16 + 100 * offset + number;
                scripts.push(Script::new(kind, is_ipv6, port));
            }
        }
    }
    scripts
}

/// Whether a flow is one of a script.
fn is_of_script(host: Host) -> bool {
    let is_of = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets()[..3] == [192, 0, 2],
        IpAddr::V6(address) => address.segments()[..2] == [0x2001, 0xdb8],
    };
    is_of(host.0)
}

/// What is left when it is all over.
struct Outcome {
    samples: Vec<Sample>,
    summaries: Vec<Value>,
    packets: Vec<Packet>,
    before: Counted,
    after: Counted,
    /// What pping said last.
    said: String,
}

/// Everything at once for a time.
fn everything_at_once(ingress: &str, length: Duration) {
    let Some(cpus) = cpus() else { return };
    let cable = Cable::new(cpus);
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups.csv");
    fs::write(&groups, GROUPS[0]).unwrap();
    let arguments = format!(
        "-v -i {NEAR} -i extra* --ingress {ingress} --rate-limit 0 --max-flows {MAX_FLOWS} --format jsonl \
         --flow-summary --with-samples --include-local --groups {} {LISTEN}",
        groups.display()
    );
    let began = Instant::now();
    let mut pping = watch_with(pping(&cable.near, &arguments), NEAR);
    println!("pping watches after {:.1} s", began.elapsed().as_secs_f64());
    let capture = ok(Capture::start(&cable.near, NEAR, &directory.path().join("witness.pcap")));
    let before = Counted::quietly(&cable, None);
    let _steering = cable.steer(cpus, ingress);
    let servers = [&cable.near, &cable.far].map(|host| ok(Server::start(host, 0, Behaviour::Echo)));

    let ends = Ends { near: (&cable.near, NEAR), far: (&cable.far, FAR), is_by_queue: ingress == "xdp" };
    let (is_over, fills, progress) = (AtomicBool::new(false), Fills::default(), Progress::default());
    let began = Instant::now();
    thread::scope(|scope| {
        let (is_over, cable, fills, progress) = (&is_over, &cable, &fills, &progress);
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| scope.spawn(move || play(ends, scripts(lane), lane, cpus, is_over, progress)))
            .collect();
        // While there is room.
        wait_until("all flows have begun", || progress.opened.load(Relaxed) == LANES);
        println!("{:.1} s: all flows have begun", began.elapsed().as_secs_f64());
        converse(scope, cable, &servers, length);
        let comings = scope.spawn(|| come_and_go(cable, is_over));
        let reloads = scope.spawn(|| reload(&pping, &groups, is_over));
        scope.spawn(|| crowd(ends, cpus, &cable.near, is_over, fills));
        // A busy machine takes longer to have enough happen.
        let (least, most) = (Instant::now() + length, Instant::now() + length + LONGER);
        let is_enough = || progress.steps.load(Relaxed) >= FEWEST_STEPS && fills.filled.load(Relaxed) > 0;
        while Instant::now() < least || Instant::now() < most && !is_enough() {
            thread::sleep(Duration::from_millis(100));
        }
        is_over.store(true, Relaxed);
        for lane in lanes {
            lane.join().unwrap();
        }
        println!(
            "{:.1} s: {} steps, {} interfaces came and went, {} reloads, the table filled {} times and emptied {} times",
            began.elapsed().as_secs_f64(),
            progress.steps.load(Relaxed),
            comings.join().unwrap(),
            reloads.join().unwrap(),
            fills.filled.load(Relaxed),
            fills.emptied.load(Relaxed)
        );
    });
    drop(servers);
    let after = Counted::quietly(&cable, Some(&before));
    let file = ok(capture.finish());
    ok(pping.stop(Signal::SIGINT, PATIENCE));
    let (samples, summaries) = records(&ok(pping.stdout()));
    let said = ok(pping.stderr());
    let outcome = Outcome { samples, summaries, packets: seen::read(&file), before, after, said };
    outcome.assert_all_counted();
    outcome.assert_flows_agree();
    outcome.assert_samples_agree();
}

fn records(lines: &str) -> (Vec<Sample>, Vec<Value>) {
    let (mut samples, mut summaries) = (Vec::new(), Vec::new());
    for line in lines.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        match value["flow_event"].as_str() {
            Some("summary") => summaries.push(value),
            None if value["interface"] == NEAR => samples.push(serde_json::from_value(value).unwrap()),
            _ => {}
        }
    }
    (samples, summaries)
}

impl Outcome {
    /// The difference of a counter.
    fn of(&self, count: impl Fn(&Counted) -> usize) -> usize {
        count(&self.after) - count(&self.before)
    }

    fn contended(&self) -> usize {
        self.of(|it| it.skipped("contended"))
    }

    /// Asserts that pping has counted each packet, as the kernel and tcpdump have.
    fn assert_all_counted(&self) {
        let said = &self.said;
        let (counted, passed) = (self.after.counted(&self.before), self.after.passed(&self.before));
        assert_eq!(counted, passed, "packets received and sent, by pping and by the kernel; {said}");
        let tcp = [("interface", NEAR), ("protocol", "tcp")];
        let counted = self.of(|it| it.sum("pping_packets_total", &tcp) as usize);
        let captured =
            self.packets.iter().filter(|it| matches!(it.content, seen::Content::Segment(_))).count();
        assert_eq!(counted, captured, "segments by pping and by tcpdump; {said}");

        let samples = self.of(|it| it.sum("pping_samples_total", &[("interface", NEAR)]) as usize);
        let lost = self.of(|it| it.sum("pping_events_lost_total", &[]) as usize);
        assert_eq!(self.samples.len() + lost, samples, "samples written, lost and counted; {said}");
        let in_groups = self.of(|it| it.sum("pping_rtt_seconds_count", &[("interface", NEAR)]) as usize);
        let in_none = self.of(|it| it.sum("pping_unaggregated_samples_total", &[]) as usize);
        assert_eq!(in_groups + in_none, samples, "samples in groups, in none and counted; {said}");
    }

    /// Asserts that the packets of each flow are counted for it.
    fn assert_flows_agree(&self) {
        let mut differences: BTreeMap<(Host, Host), i64> = BTreeMap::new();
        for packet in &self.packets {
            if is_judged(packet) && !matches!(packet.content, seen::Content::Dns { .. }) {
                *differences.entry((packet.from, packet.to)).or_default() -= 1;
            }
        }
        let captured: i64 = differences.values().sum();
        for summary in self.summaries.iter().filter(|it| it["interface"] == NEAR) {
            let host = |address: &str, port: &str| -> Host {
                (summary[address].as_str().unwrap().parse().unwrap(), summary[port].as_u64().unwrap() as u16)
            };
            let (source, destination) = (host("src_ip", "src_port"), host("dest_ip", "dest_port"));
            for (way, packets) in
                [((destination, source), "sent_packets"), ((source, destination), "rec_packets")]
            {
                if let Some(difference) = differences.get_mut(&way) {
                    *difference += summary[packets].as_i64().unwrap();
                }
            }
        }
        let off: i64 = differences.values().map(|it| it.abs()).sum();
        let named: Vec<_> = differences.iter().filter(|(_, difference)| **difference != 0).collect();
        println!(
            "packets of flows: {} captured, {off} not in summaries, {} contended",
            -captured,
            self.contended()
        );
        assert!(off as usize <= self.contended(), "packets more or less than captured: {named:#?}");
    }

    /// Asserts that no sample is wrong, and that those that are missing were skipped.
    fn assert_samples_agree(&self) {
        let Verdict { samples, due, right, wrong, late, missing } =
            judge(&self.samples, &self.packets, is_of_script);
        let (contended, full) = (self.contended(), self.of(|it| it.skipped("slots_full")));
        let lost = self.of(|it| it.sum("pping_events_lost_total", &[("kind", "rtt")]) as usize);
        let missing = missing.into_iter().filter(|(flow, _)| is_judged_host(flow.0));
        let (of_scripts, of_conversations): (Vec<_>, Vec<_>) =
            missing.partition(|(flow, _)| is_of_script(flow.0));
        let count = |of: &[(_, Vec<Expected>)]| of.iter().map(|(_, missing)| missing.len()).sum::<usize>();
        // The fewest packets that were not matched and explain it: each of them is of one flow.
        let misses = |of: &[(_, Vec<Expected>)], most: usize| -> usize {
            of.iter().map(|(_, missing)| missing.len().div_ceil(most)).sum()
        };
        let refused =
            self.of(|it| it.sum("pping_untracked_packets_total", &[("reason", "map_full")]) as usize);
        let evicted = self.of(|it| it.sum("pping_flows_pushed_out_total", &[]) as usize);
        println!(
            "{} packets, {samples} samples: {right} right, {} wrong, {} late; of {due} due {} of scripts and {} of \
             conversations are missing; {contended} contended, {full} without a slot, {lost} lost, {refused} refused, \
             {evicted} evicted",
            self.packets.len(),
            wrong.len(),
            late.len(),
            count(&of_scripts),
            count(&of_conversations),
        );
        for (flow, missing) in of_scripts.iter().chain(&of_conversations).take(20) {
            let first = missing[0].recorded_at;
            let at = |it: &Expected| {
                let ms = |time: u64| (time as f64 - first as f64) / 1e6;
                format!("{} {} {:.1}..{:.1}", it.method, it.identifier, ms(it.recorded_at), ms(it.matched_at))
            };
            println!("missing of {flow:?}, in ms: {}", missing.iter().map(at).collect::<Vec<_>>().join(", "));
        }
        for late in late.iter().take(3) {
            println!("late: {late}");
        }
        assert!(
            wrong.is_empty(),
            "{} wrong samples: {}",
            wrong.len(),
            wrong[..wrong.len().min(5)].join("\n")
        );
        let skipped = contended + full + lost + late.len();
        let least = misses(&of_scripts, LOST_OF_SCRIPT);
        assert!(
            least <= skipped,
            "what is missing of scripts takes {least} packets that were not matched, and {skipped} are counted"
        );
        assert!(
            count(&of_conversations) <= right / OF_OTHER_ORDER + (skipped - least) * LOST_OF_CONVERSATION,
            "too many samples of conversations are missing, with {skipped} packets counted that were not matched"
        );
        assert!(right > 500 && refused > 0 && evicted > 0, "too little happened to judge by");
    }
}

/// Flows of scripts and conversations. The crowd is there to be in the way.
fn is_judged_host(host: Host) -> bool {
    let is_crowd = matches!(host.0, IpAddr::V4(address) if address.octets()[..3] == [192, 0, 2] && address.octets()[3] >= 20);
    !is_crowd
}

fn is_judged(packet: &Packet) -> bool {
    let (one, _) = flow_of(packet.from, packet.to);
    is_judged_host(one) && !matches!(packet.content, seen::Content::Other)
}

#[test]
fn a_moment_at_tc() {
    everything_at_once("tc", Duration::from_secs(15));
}

#[test]
fn a_moment_at_xdp() {
    everything_at_once("xdp", Duration::from_secs(15));
}

#[test]
fn minutes_at_tc() {
    everything_at_once("tc", Duration::from_mins(2));
}

#[test]
fn minutes_at_xdp() {
    everything_at_once("xdp", Duration::from_mins(2));
}
