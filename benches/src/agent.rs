//! Measures what the agent costs at 100,000 samples a second: aggregated in the kernel, and reported one by one.
//!
//! Two hosts are joined by a cable. One sends segments, each of which echoes the one before. pping watches the other end.

use std::{
    fs, io, mem,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{
    Namespace, Signal,
    veth::{End, Offloads, connect},
};

use crate::{forwarding::ifindex, frames, report::Report, watcher};

/// Segments and therefore samples a second.
const RATE: u64 = 100_000;

/// How long each way of reporting is measured.
const TIME: Duration = Duration::from_secs(8);

/// The highest number of segments sent at once.
const BURST: u64 = 200;

const INTERFACE: &str = "bench0";

/// Measures each way of reporting in turn.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let (sender, receiver) = (Namespace::new("bench")?, Namespace::new("bench")?);
    connect(End::new(&sender, INTERFACE), End::new(&receiver, INTERFACE), Offloads::On)?;
    println!(
        "\nthe agent's CPU time at {RATE} segments a second, each of which is to be a sample ({TIME:?} each)"
    );
    println!("{:<46} {:>10} {:>10} {:>10} {:>8}", "", "samples/s", "CPU", "us/sample", "lost");
    // Without traffic the agent still wakes up and sweeps the flow maps.
    let idle = watch(&sender, &receiver, "--format none", 0)?;
    let share = 100.0 * idle.cpu.as_secs_f64() / TIME.as_secs_f64();
    let name = "--format none, no packets at all";
    println!("{name:<46} {:>10} {share:>8.2} %", 0);
    report.take_one(format!("{name}: CPU"), "%", share)?;
    let by_host = "--format none --group-by /32,/128 --listen 127.0.0.1:0";
    for (name, arguments, connections) in [
        ("--format none", "--format none", 100),
        ("--aggregate 1s", "--format jsonl --aggregate 1s", 100),
        ("--format none, 100 groups, metrics", by_host, 100),
        ("--format none, 16,000 groups, metrics", by_host, 16_000),
        ("pushed one by one: --format jsonl", "--format jsonl", 100),
    ] {
        let Cost { samples, cpu, lost } = watch(&sender, &receiver, arguments, connections)?;
        let (seconds, cpu) = (TIME.as_secs_f64(), cpu.as_secs_f64());
        let (rate, share, each) =
            (samples as f64 / seconds, 100.0 * cpu / seconds, 1e6 * cpu / samples as f64);
        println!("{name:<46} {rate:>10.0} {share:>8.2} % {each:>10.3} {lost:>8}");
        report.take_one(format!("{name}: samples"), "1/s", rate)?;
        report.take_one(format!("{name}: CPU"), "%", share)?;
        report.take_one(format!("{name}: CPU for a sample"), "us", each)?;
        report.take_one(format!("{name}: lost"), "events", lost as f64)?;
    }
    Ok(())
}

/// The cost of a way of reporting.
struct Cost {
    samples: u64,
    cpu: Duration,
    lost: u64,
}

fn watch(sender: &Namespace, receiver: &Namespace, arguments: &str, connections: u16) -> Result<Cost> {
    let mut command = receiver.command(watcher::pping()?);
    command.args(["-v", "-i", INTERFACE, "--rate-limit", "0", "-w", "/dev/null"]);
    command.args(arguments.split_whitespace());
    let mut pping = watcher::start(command, INTERFACE)?.process;
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let cpu = thread::scope(|scope| {
        let sending = scope.spawn(|| sender.enter(|| send(connections, &stop, &sent)));
        // The flows open during this time.
        thread::sleep(Duration::from_secs(2));
        let before = cpu_time(pping.id());
        sent.store(0, Ordering::Relaxed);
        thread::sleep(TIME);
        let samples = sent.load(Ordering::Relaxed);
        let cpu = before.and_then(|before| Ok((cpu_time(pping.id())?.saturating_sub(before), samples)));
        stop.store(true, Ordering::Relaxed);
        sending.join().map_err(|_| anyhow::anyhow!("the sender panicked"))???;
        cpu
    });
    let (cpu, samples) = cpu?;
    pping.stop(Signal::SIGINT, Duration::from_secs(10))?;
    let summary = pping.stderr()?;
    let measured: u64 = number(&summary, " samples").context("no summary")?;
    ensure!(measured >= samples * 9 / 10, "{measured} samples of {samples} segments: {summary}");
    let lost = number(&summary, " events").unwrap_or(0);
    Ok(Cost { samples, cpu, lost })
}

/// The number before the first `word` in a text.
fn number(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(word)?;
    before.rsplit([' ', '\n']).next()?.parse().ok()
}

/// The CPU time of all threads of a process, to the nanosecond (`/proc/PID/task/TID/schedstat`).
pub(crate) fn cpu_time(process: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let stat = fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += stat.split(' ').next().context("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Sends [`RATE`] segments a second, on `connections` connections in turn, until stopped.
fn send(connections: u16, stop: &AtomicBool, sent: &AtomicU64) -> Result<()> {
    let socket = packet_socket()?;
    let mut frames: Vec<[Vec<u8>; 2]> = (0..connections).map(frames::volley).collect();
    let (began, mut number) = (Instant::now(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        if frames.is_empty() {
            thread::sleep(Duration::from_millis(100));
            continue;
        }
        let due = began.elapsed().as_micros() as u64 * RATE / 1_000_000;
        for _ in 0..due.saturating_sub(number).min(BURST) {
            let (connection, round) =
                (number % u64::from(connections), (number / u64::from(connections)) as u32);
            let frame = &mut frames[connection as usize][round as usize % 2];
            frames::stamp(frame, round + 2, round + 1);
            socket.send(frame)?;
            number += 1;
            sent.fetch_add(1, Ordering::Relaxed);
        }
        if due <= number {
            thread::sleep(Duration::from_micros(200));
        }
    }
    Ok(())
}

/// A socket that sends raw frames.
struct PacketSocket(OwnedFd);

fn packet_socket() -> Result<PacketSocket> {
    // SAFETY: takes numbers only.
    let descriptor = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    ensure!(descriptor >= 0, "no packet socket: {}", io::Error::last_os_error());
    // SAFETY: just opened, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: plain numbers, for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex(INTERFACE)? as i32;
    // SAFETY: the length is that of the address.
    let bound = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    ensure!(bound == 0, "binding to {INTERFACE}: {}", io::Error::last_os_error());
    Ok(PacketSocket(socket))
}

impl PacketSocket {
    fn send(&self, frame: &[u8]) -> Result<()> {
        // SAFETY: the length is that of the buffer.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        ensure!(sent == frame.len() as isize, "sending: {}", io::Error::last_os_error());
        Ok(())
    }
}
