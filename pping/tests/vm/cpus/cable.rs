//! Two hosts, and the cable between them.

use std::{fs, net::SocketAddr, process::Command, time::Duration};

use pping_lab::{
    Namespace, Process, run,
    traffic::{self, Behaviour, Pace, Server},
};

use super::super::{
    monitor::{ok, ping},
    net::ip,
};

pub(super) const NEAR: &str = "cpu0";
pub(super) const FAR: &str = "cpu1";
pub(super) const NEAR_ADDRESSES: [&str; 2] = ["10.12.0.1", "fd00:12::1"];
pub(super) const FAR_ADDRESSES: [&str; 2] = ["10.12.0.2", "fd00:12::2"];

/// Two hosts, with a cable that has a queue for each CPU.
pub(super) struct Cable {
    pub(super) near: Namespace,
    pub(super) far: Namespace,
}

impl Cable {
    pub(super) fn new(cpus: usize) -> Self {
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
        // Steers once here, because the kernel patches its code the first time. The emulator does not survive that
        // while other CPUs are running.
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
        // With 0, tcpdump's times are those of the CPU that handles a packet, not of the CPU that queued it.
        fs::write("/proc/sys/net/core/netdev_tstamp_prequeue", "0").unwrap();
        Self { near, far }
    }

    /// Keeps moving the received packets of flows to other CPUs: always at the far end, and at the near end if pping is
    /// at tc. XDP runs before this steering and tcpdump after it, possibly much later, so with XDP the sender's queues
    /// spread the packets.
    pub(super) fn steer(&self, cpus: usize, ingress: &str) -> Vec<Process> {
        let all = (1_u64 << cpus) - 1;
        let masks = [0, all, 0x5555 & all, 0, 0xaaaa & all, 0x3333 & all].map(|mask| format!("{mask:x}"));
        let script = format!(
            "while :; do for mask in {}; do for queue in /sys/class/net/cpu*/queues/rx-*/rps_cpus; do \
             echo $mask >$queue; done; sleep 0.3; done; done",
            masks.join(" ")
        );
        // Unlike nsenter, `ip netns exec` shows the interfaces of the namespace in /sys.
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

    /// Returns the packets received and sent at the near end, as the kernel has counted them.
    pub(super) fn counted(&self) -> [u64; 2] {
        let text = ok(self.near.enter(|| fs::read_to_string("/proc/thread-self/net/dev"))).unwrap();
        let line =
            text.lines().find_map(|line| line.trim_start().strip_prefix(NEAR)?.strip_prefix(':')).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|it| it.parse().unwrap()).collect();
        [numbers[1], numbers[9] + numbers[11]]
    }
}

/// Sets which CPUs handle the received packets of an interface.
fn steer_once(host: &Namespace, interface: &str, mask: &str) {
    let file = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
    let mut shell = Command::new("ip");
    ok(run(shell.args(["netns", "exec", host.name(), "sh", "-c", &format!("echo {mask} >{file}")])));
}
