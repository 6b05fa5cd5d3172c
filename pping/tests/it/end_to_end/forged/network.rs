//! The network of the lab, and the attacker in it.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use pping_lab::{
    Namespace, PacketSocket, Topology,
    veth::{self, End, Offloads},
};
use serde_json::Value;

use super::{
    super::{ok, topology},
    FAMILY, PATIENCE,
};
use crate::frames::{Ip, RST, SYN, TCP, Tcp};

/// The interface of the attacker, and the router's towards him.
const SIDE: &str = "side0";
/// Where the segment begins: behind Ethernet and IPv6 without extension headers.
const TRANSPORT: usize = 14 + 40;

/// The network of the lab, and somebody in it.
pub(super) struct Network {
    pub(super) topology: Topology,
    attacker: Namespace,
}

/// What an observer knows of a connection, and the attacker does not.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    /// The next number of each end, when the connection began: client, server.
    pub(super) begin: [u32; 2],
}

impl Network {
    pub(super) fn new() -> Self {
        let topology = topology();
        let attacker = ok(Namespace::new("attacker"));
        let ends = [End::new(&attacker, Topology::ETH), End::new(topology.router(), SIDE)];
        ok(veth::connect(ends[0], ends[1], Offloads::Off));
        Self { topology, attacker }
    }

    /// Where forged packets are sent: a socket, and the address of the router's interface there.
    pub(super) fn places(&self) -> [(PacketSocket, [u8; 6]); 2] {
        let router = self.topology.router();
        [(&self.attacker, SIDE), (self.topology.client(), Topology::LAN)].map(|(host, opposite)| {
            (ok(host.enter(|| PacketSocket::sender(Topology::ETH))).unwrap(), mac(router, opposite))
        })
    }
}

pub(super) fn mac(host: &Namespace, interface: &str) -> [u8; 6] {
    let mut ip = host.command("ip");
    let said: Value =
        serde_json::from_str(&ok(pping_lab::run(ip.args(["-j", "link", "show", interface])))).unwrap();
    let address = said[0]["address"].as_str().unwrap();
    let mut bytes = address.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap());
    [(); 6].map(|()| bytes.next().unwrap())
}

/// Sends a frame to this address.
pub(super) fn send((socket, router): &(PacketSocket, [u8; 6]), frame: &[u8]) {
    let mut frame = frame.to_vec();
    frame[..6].copy_from_slice(router);
    socket.send(&frame).unwrap();
}

/// A segment in the name of the client or the server. Its checksum is wrong, so no host takes it.
pub(super) fn forged(is_client: bool, port: u16, server: u16, tcp: &Tcp) -> Vec<u8> {
    let [client, server_ip] = [FAMILY.client(), FAMILY.server()];
    let (from, to, ports) =
        if is_client { (client, server_ip, (port, server)) } else { (server_ip, client, (server, port)) };
    Ip::between(from, to).frame(TCP, &Tcp { ports, ..tcp.clone() }.bytes())
}

/// Reads the numbers of connections off the segments that reach the server, until each has begun.
pub(super) fn numbers(socket: &mut PacketSocket, count: usize) -> BTreeMap<u16, Numbers> {
    let mut found = BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    while found.len() < count {
        assert!(Instant::now() < deadline, "{} of {count} connections have begun", found.len());
        let Some(received) = socket.receive().unwrap() else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let frame = received.frame;
        if frame.len() < TRANSPORT + 20 || frame[14 + 6] != TCP {
            continue;
        }
        let word = |at: usize| u32::from_be_bytes(frame[TRANSPORT + at..][..4].try_into().unwrap());
        let port = u16::from_be_bytes([frame[TRANSPORT], frame[TRANSPORT + 1]]);
        if frame[TRANSPORT + 13] & (SYN | RST) == 0 {
            found.entry(port).or_insert(Numbers { begin: [word(4), word(8)] });
        }
    }
    found
}
