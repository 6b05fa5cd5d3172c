//! A router that sends copies of what it forwards to a probe, as switches do in ERSPAN and routers in TZSP.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use nix::{
    net::if_::if_nametoindex,
    sys::{
        socket::{
            AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket, sockopt,
        },
        time::{TimeVal, TimeValLike as _},
    },
};
use pping_lab::{
    Namespace, PacketSocket, Topology, run,
    traffic::{self, Behaviour, Pace, Server},
    veth::{End, Offloads, connect},
};

use super::{
    Family, HOLD, capture::Capture, ok, ping::ping, records::Tuple, reference::expected_samples,
    statistics::median, topology, watch::Watch,
};
use crate::frames::{Ip, UDP, udp_to, v4};

const GRE: u8 = 47;
const CONVERSATION: Pace = Pace { chunks: 100, bytes: 100, pause: Duration::from_millis(3) };
/// The interfaces between router and probe, and their MTU: a copy is longer than its frame.
const TO_PROBE: &str = "mirror0";
const PROBE: &str = "probe0";
const MTU: &str = "2000";
/// How long the router waits for a frame before it looks whether to stop.
const PATIENCE: i64 = 50;
/// How much the medians may differ: the router makes copies in user space, and may have to wait for its CPU.
const LATE: Duration = Duration::from_millis(5);
/// A median of fewer samples says nothing: any single copy may be late.
const MANY: usize = 20;

/// A name, the value of `--decap`, and what puts a frame into an IP packet with this protocol number.
type Kind = (&'static str, &'static str, fn(&[u8]) -> (u8, Vec<u8>));

const KINDS: [Kind; 4] = [
    ("ERSPAN I", "erspan", |frame| (GRE, [&[0, 0, 0x88, 0xbe], frame].concat())),
    ("ERSPAN II", "erspan", |frame| {
        (GRE, [&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, 0, 5, 0, 0, 0, 3], frame].concat())
    }),
    ("ERSPAN III", "erspan", |frame| {
        let header = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 5, 0, 0, 0, 1, 0, 2, 0x80, 0];
        (GRE, [&header, frame].concat())
    }),
    ("TZSP", "tzsp", |frame| (UDP, udp_to(37008, &[&[1, 0, 0, 1, 1], frame].concat()))),
];

/// Sends copies of the frames of the router's interface to the client, of both directions, until it shall stop.
fn mirror(kind: Kind, is_over: &AtomicBool) {
    let (_, _, wrap) = kind;
    let lan = if_nametoindex(Topology::LAN).unwrap() as usize;
    let frames =
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll).unwrap();
    setsockopt(&frames, sockopt::ReceiveTimeout, &TimeVal::milliseconds(PATIENCE)).unwrap();
    let copies = PacketSocket::sender(TO_PROBE).unwrap();
    let outer = Ip::between(v4(101), v4(102));
    let mut buffer = vec![0; 65_536];
    while !is_over.load(Relaxed) {
        // An error means that there was nothing to receive.
        let Ok((length, Some(from))) = recvfrom::<LinkAddr>(frames.as_raw_fd(), &mut buffer) else {
            continue;
        };
        if from.ifindex() == lan {
            let (protocol, bytes) = wrap(&buffer[..length]);
            copies.send(&outer.frame(protocol, &bytes)).unwrap();
        }
    }
}

/// Stops the router's copies, also after a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The times of the samples of each method and flow direction.
fn by_flow(samples: impl Iterator<Item = (String, Tuple, u64)>) -> BTreeMap<(String, Tuple), Vec<u64>> {
    let mut flows: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (method, tuple, rtt) in samples {
        flows.entry((method, tuple)).or_default().push(rtt);
    }
    flows
}

/// Has hosts talk while the router sends copies. What pping finds in the copies must equal what a capture of the copies
/// has, and what a capture of the traffic itself has.
fn copies_are_timed(topology: &Topology, probe: &Namespace, ingress: &str, kind: Kind) {
    let (name, decap, _) = kind;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("itself.pcap");
    let watch =
        Watch::start(probe, PROBE, &format!("--ingress {ingress} --rate-limit 0 --arms one --decap {decap}"));
    let itself = ok(Capture::start(topology.router(), Topology::LAN, &file, "tcp or icmp6"));
    let server = ok(Server::start(topology.server(), 0, Behaviour::Echo));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = Stop(&is_over);
        let mirror = scope.spawn(|| topology.router().enter(|| mirror(kind, &is_over)));
        // It opens its socket.
        thread::sleep(Duration::from_millis(200));
        let address: SocketAddr = Family::Ipv4.address_of(&server);
        ok(traffic::echo(topology.client(), address, CONVERSATION));
        let to: IpAddr = Family::Ipv6.server();
        ping(topology.client(), to);
        thread::sleep(2 * HOLD + Duration::from_millis(200));
        drop(stop);
        ok(mirror.join().unwrap());
    });
    let itself = expected_samples(&ok(itself.finish()), 8, "");
    let seen = watch.finish();
    seen.assert_agreement();

    let found = seen.records.samples.iter();
    let found = by_flow(found.map(|sample| (sample.method.clone(), sample.tuple.clone(), sample.rtt)));
    let itself = by_flow(itself.into_iter().map(|sample| (sample.method, sample.tuple, sample.rtt)));
    assert!(found.keys().eq(itself.keys()), "{name}: {found:#?} of {itself:#?}");
    assert!(found.values().map(Vec::len).sum::<usize>() > 100, "{name}: {found:#?}");
    for (flow, expected) in &itself {
        let rtts = &found[flow];
        assert!(
            rtts.len().abs_diff(expected.len()) <= 2 + expected.len() / 50,
            "{name}: {flow:?}: {rtts:?} of {expected:?}"
        );
        if expected.len() >= MANY {
            let [copied, original] = [rtts, expected].map(|rtts| median(rtts.iter().copied()));
            assert!(
                copied.abs_diff(original) <= LATE.as_nanos() as u64,
                "{name}: {flow:?}: {copied}, {original}"
            );
        }
    }
}

fn all_copies_are_timed(ingress: &str) {
    let topology = topology();
    let probe = ok(Namespace::new("probe"));
    ok(connect(End::new(topology.router(), TO_PROBE), End::new(&probe, PROBE), Offloads::Off));
    for (host, interface) in [(topology.router(), TO_PROBE), (&probe, PROBE)] {
        ok(run(host.command("ip").args(["link", "set", interface, "mtu", MTU])));
    }
    for kind in KINDS {
        copies_are_timed(&topology, &probe, ingress, kind);
    }
}

#[test]
fn flows_in_copies_are_timed_at_tc() {
    all_copies_are_timed("tc");
}

#[test]
fn flows_in_copies_are_timed_at_xdp() {
    all_copies_are_timed("xdp");
}
