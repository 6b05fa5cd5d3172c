//! Measures how long packets wait for a core that sweeps a million flows.
//!
//! Echo requests reach a host with a watched interface over a cable. One core handles all packets from it (receive
//! packet steering), and the kernel replies there. The sender polls for the reply on another core, so that nothing has
//! to be woken. Meanwhile the first core does nothing, reads the clock all the time, or sweeps: the difference between
//! the last two is how long packets wait.

use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    ops::Range,
    os::fd::{FromRawFd as _, OwnedFd},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use pping::kernel::{
    attach::{Attachment, FilterOwner, Wanted, attach},
    attach_point::AttachPoint,
    interfaces::Link,
    loaded::Kernel,
};
use pping_common::parse::{Direction, Protocol};
use pping_lab::{
    Namespace, run, stay_on,
    veth::{End, Offloads, connect},
};

use crate::{
    forwarding::ifindex,
    measure::Figure,
    report::Report,
    sweep::{FLOWS, send, with_room},
};

/// How often each kind of work is measured.
const ROUNDS: usize = 7;

/// How long a measurement lasts, if the work does not end by itself.
const ROUND: Duration = Duration::from_millis(400);

/// How long until a reply counts as missing.
const PATIENCE: Duration = Duration::from_secs(1);

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const INTERFACE: &str = "eth0";

/// What the core that handles the packets does.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Clock,
    /// One sweep after another, each over a share of the flows.
    Shares,
    /// One sweep over all flows.
    All,
}

impl Work {
    const ALL: [Self; 4] = [Self::Nothing, Self::Clock, Self::Shares, Self::All];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "idle",
            Self::Clock => "busy with the clock",
            Self::Shares => "sweeping shares, one after the other",
            Self::All => "sweeping all at once",
        }
    }

    /// Does the work once.
    fn go(self, kernel: &mut Kernel) -> Result<()> {
        let began = Instant::now();
        match self {
            Self::Nothing => thread::sleep(ROUND),
            Self::Clock => while began.elapsed() < ROUND {},
            Self::Shares => {
                while began.elapsed() < ROUND {
                    kernel.sweep()?;
                }
            }
            Self::All => kernel.sweep_all()?,
        }
        Ok(())
    }
}

/// Measures round-trip times of pings.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let cpus = thread::available_parallelism()?.get();
    ensure!(cpus > 1, "one core has the packets and another one sends them: this machine has one");
    let (client, host) = (Namespace::new("client")?, Namespace::new("host")?);
    let mut kernel = with_room()?;
    send(&kernel, true)?;
    kernel.sweep_all()?;
    let (_attachment, interface_id) = watch(&mut kernel, &client, &host, cpus - 1)?;
    client.sysctl("net.ipv4.ping_group_range", "0 0")?;
    let socket = client.enter(open)??;
    println!(
        "\nround-trip times, us, of pings that a core takes care of which follows {FLOWS} flows, by what else it does; {ROUNDS} rounds\n"
    );
    println!("{:<52} {:>7} {:>7} {:>7}", "", "median", "min", "max");
    let mut sent = 0;
    for work in Work::ALL {
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for round in 0..=ROUNDS {
            send(&kernel, false)?;
            let mut times = pings(&socket, work, &mut kernel, cpus - 1)?;
            sent += times.len() as u64;
            times.sort_unstable();
            // In the first round the hosts resolve their neighbours.
            if round > 0 {
                let last = times.len().checked_sub(1).context("no pings")?;
                for (of, thousandths) in rounds.iter_mut().zip([500, 999, 1000]) {
                    of.push(times[last * thousandths / 1000].as_secs_f64() * 1e6);
                }
            }
        }
        for (part, of) in ["median", "99.9 %", "longest"].into_iter().zip(rounds) {
            report.print_as(&format!("{}: {part}", work.name()), "us", &Figure::of(of)?);
        }
    }
    let counters = kernel.counters.of_cpus(interface_id);
    let seen: Vec<u64> = counters.map(|it| it.of(Direction::Ingress, Protocol::Icmp).packets()).collect();
    ensure!(
        seen.iter().sum::<u64>() == sent && seen[cpus - 1] == sent,
        "of {sent} pings the cores saw {seen:?}: the figures are of something else"
    );
    Ok(())
}

/// Connects both by a cable, makes one core handle the packets that reach the host, and makes the programs watch its
/// interface. Returns the attachment and the interface id.
fn watch(kernel: &mut Kernel, client: &Namespace, host: &Namespace, cpu: usize) -> Result<(Attachment, u16)> {
    let ends = [End::new(client, INTERFACE), End::new(host, INTERFACE)];
    connect(ends[0], ends[1], Offloads::On)?;
    for (end, address) in ends.into_iter().zip([CLIENT, HOST]) {
        end.add_address(address, 24)?;
    }
    // A namespace's part of /sys is visible only in a mount made there.
    let steer = format!(
        "mount -t sysfs sysfs /sys && echo {:x} > /sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus",
        1_u64 << cpu
    );
    run(host.command("unshare").args(["--mount", "sh", "-c", &steer]))?;
    host.enter(|| {
        let link = Link {
            name: INTERFACE.into(),
            ifindex: ifindex(INTERFACE)?,
            hardware_type: libc::ARPHRD_ETHER,
            ..Link::default()
        };
        let interface_id = link.register(kernel)?;
        Ok((
            attach(kernel, &link, Wanted::both(&[AttachPoint::Tcx]), None, &mut FilterOwner::default())?,
            interface_id,
        ))
    })?
}

/// Pings as long as the core has work to do, and returns how long each ping took.
fn pings(socket: &UdpSocket, work: Work, kernel: &mut Kernel, cpu: usize) -> Result<Vec<Duration>> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = stay_on(cpu).map_err(anyhow::Error::from).and_then(|()| work.go(kernel));
            is_done.store(true, Relaxed);
            result
        });
        let pinger = scope.spawn(|| {
            stay_on(0)?;
            let mut times = Vec::new();
            while !is_done.load(Relaxed) {
                times.push(ping(socket, times.len() as u16)?);
            }
            Ok(times)
        });
        let times = pinger.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        times
    })
}

/// A socket that sends echo requests to the host and receives the replies; the kernel fills in checksums and
/// identifiers.
fn open() -> Result<UdpSocket> {
    // SAFETY: takes numbers only.
    let socket =
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    ensure!(socket >= 0, "a socket for pings: {}", io::Error::last_os_error());
    // SAFETY: just opened, and nothing else owns it. `UdpSocket` works on any datagram socket.
    let socket = UdpSocket::from(unsafe { OwnedFd::from_raw_fd(socket) });
    socket.connect((HOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Pings once, and returns how long it took.
fn ping(socket: &UdpSocket, sequence: u16) -> Result<Duration> {
    const ECHO_REQUEST: u8 = 8;
    const SEQUENCE: Range<usize> = 6..8;
    let mut request = [0; 64];
    request[0] = ECHO_REQUEST;
    request[SEQUENCE].copy_from_slice(&sequence.to_be_bytes());
    let mut reply = [0; 64];
    let began = Instant::now();
    socket.send(&request)?;
    while began.elapsed() < PATIENCE {
        if socket.recv(&mut reply).is_ok() && reply[SEQUENCE] == request[SEQUENCE] {
            return Ok(began.elapsed());
        }
    }
    bail!("no reply to a ping within {PATIENCE:?}")
}
