//! Forwarding and queueing together, against captures on both sides of a router.

use std::{collections::HashMap, fs, path::Path, process::Command, time::Duration};

use pping::kernel::{
    attach::{FilterOwner, Wanted, attach},
    attach_point::AttachPoint,
    load,
    load_options::LoadOptions,
};
use pping_common::{
    abi::{Part, Residence},
    hist,
};
use pping_lab::{
    Capture, Topology, run,
    traffic::{Behaviour, Pace, Server, echo},
};

use super::{EVERY_PACKET, count, link};

/// How far captures and pping may differ, in seconds.
const TOLERANCE: f64 = 20e-6;

/// What captures and pping found about the packets from client to server.
struct Found {
    forwarding: Residence,
    queue: Residence,
    /// Seconds between a packet's times in the two captures, ascending.
    captured: Vec<f64>,
}

impl Found {
    fn mean(residence: &Residence) -> f64 {
        if count(residence) == 0 { 0.0 } else { residence.sum as f64 / count(residence) as f64 / 1e9 }
    }

    fn captured_mean(&self) -> f64 {
        self.captured.iter().sum::<f64>() / self.captured.len() as f64
    }
}

/// Returns the times of a capture's packets, by their content as tcpdump prints it.
fn times(file: &Path) -> HashMap<String, f64> {
    let mut tcpdump = Command::new("tcpdump");
    tcpdump.args(["-nn", "-S", "-tt", "--time-stamp-precision=nano", "-r"]).arg(file);
    let text = run(tcpdump.arg(format!("tcp and src host {}", Topology::CLIENT_IPV4))).unwrap();
    let line = |line: &str| {
        let (time, packet) = line.split_once(' ').unwrap();
        (packet.to_owned(), time.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// Lets a client talk to a server while pping times the packets on a router with this qdisc.
fn talk(qdisc: Option<&str>, ingress: &'static [AttachPoint], pace: Pace) -> Found {
    let topology = Topology::builder().build().unwrap();
    let router = topology.router();
    let directory = tempfile::tempdir().unwrap();
    let files = [Topology::LAN, Topology::WAN].map(|name| directory.path().join(name));
    // Packets of the router itself would be in one capture only. So the router resolves its neighbours now, and does
    // not use IPv6.
    let ipv6_is_off = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", Topology::WAN);
    router.enter(|| fs::write(ipv6_is_off, "1")).unwrap().unwrap();
    run(topology.client().command("ping").args(["-c1", "-W5", &Topology::SERVER_IPV4.to_string()])).unwrap();
    if let Some(qdisc) = qdisc {
        let mut tc = router.command("tc");
        run(tc.args(["qdisc", "replace", "dev", Topology::WAN, "root"]).args(qdisc.split_whitespace()))
            .unwrap();
    }
    let (kernel, ids, attachments) = router
        .enter(|| {
            let options = LoadOptions { residence: Some(1), ..EVERY_PACKET };
            let mut kernel = load::load(&options, ingress != [AttachPoint::Tcx]).unwrap();
            let links = [Topology::LAN, Topology::WAN].map(link);
            let ids = [0, 1].map(|side| links[side].register(&mut kernel).unwrap());
            let attachments = links.map(|link| {
                attach(&mut kernel, &link, Wanted::both(ingress), None, &mut FilterOwner::default()).unwrap()
            });
            (kernel, ids, attachments)
        })
        .unwrap();
    let captures = [0, 1].map(|side| {
        let interface = [Topology::LAN, Topology::WAN][side];
        Capture::start(router, interface, &files[side]).unwrap()
    });
    let server = Server::start(topology.server(), 0, Behaviour::Echo).unwrap();
    echo(topology.client(), (Topology::SERVER_IPV4, server.port()), pace).unwrap();
    let [lan, wan] = captures.map(|capture| times(&capture.finish().unwrap().file));
    let mut captured: Vec<_> =
        lan.iter().filter_map(|(packet, came)| Some(wan.get(packet)? - came)).collect();
    captured.sort_by(f64::total_cmp);
    drop(attachments);
    let residence = kernel.residence.as_ref().unwrap();
    let read = |part| residence.read(part, ids[1]).unwrap();
    Found { forwarding: read(Part::Forwarding), queue: read(Part::Queue), captured }
}

/// One segment per chunk: each passes alone and has its own timestamp.
const SEPARATE: Pace = Pace { chunks: 300, bytes: 1000, pause: Duration::from_millis(3) };

fn median(residence: &Residence) -> f64 {
    let (mut before, middle) = (0, count(residence).div_ceil(2));
    let bin = residence.bins.iter().position(|&count| {
        before += count;
        before >= middle
    });
    hist::middle(bin.unwrap()) as f64 / 1e9
}

fn is_forwarded_as_captured(ingress: &'static [AttachPoint]) {
    let found = talk(None, ingress, SEPARATE);
    let captured = found.captured[found.captured.len() / 2];
    let median = median(&found.forwarding);
    eprintln!(
        "{} segments, median {:.1} us, between {} captures {:.1} us",
        count(&found.forwarding),
        median * 1e6,
        found.captured.len(),
        captured * 1e6
    );
    assert!(count(&found.forwarding) >= 250, "{:?}", found.forwarding);
    // Between a hook and the capture next to it the kernel does about as much as between the hooks. On a slow machine both
    // take longer.
    let tolerance = TOLERANCE.max(3.0 * median.min(captured));
    assert!((median - captured).abs() < tolerance, "{median} s, between captures {captured} s");
    assert_eq!(count(&found.queue), 0, "there is no queue");
}

#[test]
fn forwarding_takes_as_long_as_between_two_captures() {
    is_forwarded_as_captured(&[AttachPoint::Tcx]);
}

#[test]
fn forwarding_begins_at_xdp_where_that_is_the_hook() {
    is_forwarded_as_captured(&[AttachPoint::XdpNative]);
}

#[test]
fn forwarding_and_queueing_add_up() {
    // On a busy machine the queue may not grow, and the kernel may miss the ends of many packets.
    const ATTEMPTS: u32 = 5;
    for attempt in 1.. {
        // A third more arrives than leaves, so the queue grows to a tenth of a second, or less if this machine is busy.
        let qdisc = "tbf rate 260kbps burst 1600 limit 1000000";
        let found = talk(Some(qdisc), &[AttachPoint::Tcx], SEPARATE);
        let (forwarding, queue) = (Found::mean(&found.forwarding), Found::mean(&found.queue));
        let captured = found.captured_mean();
        let [timed, followed, seen] =
            [count(&found.queue), found.queue.followed, found.captured.len() as u64];
        eprintln!(
            "forwarding {:.1} us of {} and queueing {:.1} us of {timed} (followed {followed}) are {:.1} us, between captures {:.1} us of {seen}",
            forwarding * 1e6,
            count(&found.forwarding),
            queue * 1e6,
            (forwarding + queue) * 1e6,
            captured * 1e6,
        );
        // The kernel rarely runs no program at a tracepoint. A packet without a time changes the mean by its share of
        // the longest time at most.
        let missed = followed.abs_diff(seen).max(seen.abs_diff(timed)) as f64 / seen as f64;
        let longest = found.captured.last().unwrap();
        // Other work may come between a hook and the capture next to it, now and then for milliseconds.
        let tolerance = TOLERANCE + 0.001 * captured + missed * longest;
        let are_enough = count(&found.forwarding) >= 250 && queue > 0.005 && missed < 0.02;
        if are_enough && (forwarding + queue - captured).abs() < tolerance {
            return;
        }
        assert!(attempt < ATTEMPTS, "{forwarding} + {queue}, not {captured}");
    }
}
