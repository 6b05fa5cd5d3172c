//! Traffic and changes beside the flows that are compared.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use pping_lab::{
    Namespace, Process, Signal, run, stay_on,
    traffic::{self, Pace, Server},
};

use super::{
    super::{
        frames::{ACK, Ip, RST, SYN, TCP, Tcp, v4},
        http::scrape,
        monitor::ok,
        net::ip,
    },
    MAX_FLOWS,
    cable::{Cable, FAR_ADDRESSES, NEAR_ADDRESSES},
    lanes::{Ends, Random, send},
    scripts::{Kind, Script},
};

/// More flows than the table has room for.
const SHORT_FLOWS: u16 = 300;

/// The longest pause in a conversation.
const PAUSE: Duration = Duration::from_millis(60);

pub(super) const GROUPS: [&str; 2] = [
    "prefix,group\n192.0.2.0/25,script\n10.12.0.0/16,host\nfd00:12::/64,host-6\n",
    "prefix,group\n192.0.2.0/24,script\n192.0.2.2/32,far\n10.12.0.2/32,far-host\n2001:db8::/32,script-6\n",
];

/// How often the table has filled and emptied.
#[derive(Debug, Default)]
pub(super) struct Fills {
    pub(super) filled: AtomicUsize,
    pub(super) emptied: AtomicUsize,
}

/// Fills and empties the table, and makes pping evict unanswered flows.
pub(super) fn crowd(ends: Ends<'_>, cpus: usize, near: &Namespace, is_over: &AtomicBool, fills: &Fills) {
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
            // A flow stays once both ends have sent a segment after their SYN.
            let segments = [(true, SYN), (false, SYN | ACK), (true, ACK), (false, ACK), (true, RST | ACK)];
            for (is_near, flags) in segments {
                send(&sockets[usize::from(!is_near)], &segment(port, is_near, flags));
            }
            if is_over.load(Relaxed) {
                return;
            }
            // This SYN is never answered.
            let unanswered = Ip::between(v4(30), v4(31));
            let syn = Tcp { ports: (port, 81), flags: SYN, ..Tcp::with_options([]) };
            send(&sockets[random.below(2)], &unanswered.frame(TCP, &syn.bytes()));
        }
        let is_half_full = || {
            let entries = scrape(near).sum("pping_map_entries", &[("map", "FLOWS_V4")]);
            entries.unwrap_or_default() > f64::from(MAX_FLOWS) / 2.0
        };
        // Waits until the agent publishes the number of flows. Closed flows expire after ten seconds, and leave room
        // for the next.
        for (count, is_awaited) in [(&fills.filled, true), (&fills.emptied, false)] {
            while !is_over.load(Relaxed) && is_half_full() != is_awaited {
                thread::sleep(Duration::from_millis(500));
            }
            if !is_over.load(Relaxed) {
                count.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Creates and deletes interfaces, with a few packets on each. Returns how many.
pub(super) fn come_and_go(cable: &Cable, is_over: &AtomicBool) -> u64 {
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

/// Makes pping read another groups file every second. Returns how often.
pub(super) fn reload(pping: &Process, groups: &Path, is_over: &AtomicBool) -> usize {
    let mut count = 0;
    while !is_over.load(Relaxed) {
        thread::sleep(Duration::from_secs(1));
        count += 1;
        fs::write(groups, GROUPS[count % 2]).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pping.id() as i32), Signal::SIGHUP).unwrap();
    }
    count
}

/// Starts conversations between the kernels, while the table has room.
pub(super) fn converse<'scope>(
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
        // Waits until they are connected.
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
