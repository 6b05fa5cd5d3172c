//! Hosts that talk roughly as real ones do.

use std::net::IpAddr;

use super::{
    frames::{
        ACK, DESTINATION_OPTIONS, Extension, FIN, FRAGMENT, HOP_BY_HOP, Ip, PSH, ROUTING, RST, SERVICE_VLAN,
        SYN, TCP, Tcp, VLAN, echo, ethernet, timestamps,
    },
    random::Random,
    rig::Program,
};

/// How two hosts behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// Data and acknowledgements, without faults.
    Calm,
    /// Everything that can happen to a connection, far more often than in reality.
    Wild,
}

/// One end of a connection.
struct Host {
    address: IpAddr,
    port: u16,
    clock: u32,
    /// The newest `TSval` of the other end.
    heard: u32,
    /// The number of the next byte, and that of the latest SYN.
    next: u32,
    syn: u32,
}

/// TCP connections, one after the other between the same ports.
pub(super) struct Connection {
    hosts: [Host; 2],
    temper: Temper,
    /// The sender of the last packet, and how many packets it has sent in a row.
    run: (usize, usize),
}

/// How many packets a calm host sends in a row at most: fewer than can be pending.
const LONGEST_RUN: usize = 6;

impl Connection {
    /// A connection between two hosts, the first of which has `port`.
    pub(super) fn new(hosts: [IpAddr; 2], port: u16, temper: Temper, random: &mut Random) -> Self {
        let [client, server] = hosts;
        let mut host = |address, port| {
            // Some clocks are about to wrap around.
            let clock = if random.chance(30) { u32::MAX - 20 } else { random.next() as u32 };
            Host { address, port, clock, heard: 0, next: random.next() as u32, syn: 0 }
        };
        Self { hosts: [host(client, port), host(server, 443)], temper, run: (0, 0) }
    }

    /// Returns the next packet: the index of its sender, and the frame.
    pub(super) fn next(&mut self, random: &mut Random) -> (usize, Vec<u8>) {
        let is_wild = self.temper == Temper::Wild;
        let from = if self.run.1 < LONGEST_RUN || is_wild { random.below(2) } else { 1 - self.run.0 };
        self.run = (from, if from == self.run.0 { self.run.1 + 1 } else { 1 });
        let flags = match random.below(100) {
            0..4 if is_wild => SYN,
            4..8 if is_wild => SYN | ACK,
            8..11 if is_wild => FIN | ACK,
            11..13 if is_wild => RST,
            13..14 if is_wild => RST | ACK,
            14..17 if is_wild => PSH,
            0..70 => ACK | PSH,
            _ => ACK,
        };
        let payload = if flags & PSH != 0 { 1 + random.below(200) } else { 0 };
        let sender = &mut self.hosts[from];
        let is_sent_again = is_wild && random.chance(10);
        sender.clock = sender.clock.wrapping_add(random.below(3) as u32);
        let (mut tsval, mut tsecr) = (sender.clock, sender.heard);
        let back = if is_sent_again { 1 + random.below(400) as u32 } else { 0 };
        let sequence =
            if flags & SYN != 0 && is_sent_again { sender.syn } else { sender.next.wrapping_sub(back) };
        if flags & SYN != 0 {
            sender.syn = sequence;
        }
        let sequence = if is_wild && flags & SYN == 0 && random.chance(2) {
            sequence ^ 1 << (16 + random.below(16))
        } else {
            sequence
        };
        let len = payload as u32 + u32::from(flags & (SYN | FIN) != 0);
        if flags & RST == 0 && sequence.wrapping_add(len).wrapping_sub(sender.next) < 1 << 31 {
            sender.next = sequence.wrapping_add(len);
        }
        if is_wild && random.chance(5) {
            tsval = tsval.wrapping_sub(random.below(5) as u32);
        }
        if is_wild && random.chance(15) {
            tsecr = tsecr.wrapping_sub(random.below(5) as u32);
        }
        let [sender, receiver] = [&self.hosts[from], &self.hosts[1 - from]];
        let is_stray = is_wild && random.chance(3);
        let acknowledgement = if is_stray { random.next() as u32 } else { receiver.next };
        let segment = Tcp {
            ports: (sender.port, receiver.port),
            flags,
            sequence,
            acknowledgement,
            payload,
            ..Tcp::with_options(if is_wild && random.chance(4) {
                Vec::new()
            } else {
                options(tsval, tsecr, random)
            })
        };
        let frame = dressed(Ip::between(sender.address, receiver.address), &segment.bytes(), random);
        let is_lost = is_wild && random.chance(5);
        if !is_lost {
            self.hosts[1 - from].heard = tsval;
        }
        (from, frame)
    }
}

/// Builds the timestamps option, sometimes with other options around it.
fn options(tsval: u32, tsecr: u32, random: &mut Random) -> Vec<u8> {
    let before: &[&[u8]] = &[&[1, 1], &[1, 1], &[1, 1], &[], &[2, 4, 5, 180, 4, 2], &[3, 3, 7, 1, 1, 1]];
    let behind: &[&[u8]] = &[&[], &[], &[], &[1, 3, 3, 7], &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2]];
    [random.pick(before), &timestamps(tsval, tsecr), random.pick(behind)].concat()
}

/// Builds a frame, sometimes with other headers around the segment.
fn dressed(mut ip: Ip, segment: &[u8], random: &mut Random) -> Vec<u8> {
    ip.traffic_class = random.next() as u8;
    if random.chance(20) {
        ip.options = vec![1; 4 * random.below(11)];
        let numbers = [HOP_BY_HOP, DESTINATION_OPTIONS, ROUTING, FRAGMENT];
        let count = random.below(7);
        ip.extensions = (0..count).map(|_| Extension::of(random.pick(&numbers), 1)).collect();
    }
    let tags = [(SERVICE_VLAN, random.next() as u16), (VLAN, random.next() as u16), (VLAN, 3), (VLAN, 4)];
    let count = if random.chance(20) { 1 + random.below(4) } else { 0 };
    ethernet(&tags[..count], ip.ethertype(), &ip.packet(TCP, segment))
}

/// A host that pings another.
pub(super) struct Ping {
    hosts: [IpAddr; 2],
    id: u16,
    sequence: u16,
}

impl Ping {
    pub(super) fn new(hosts: [IpAddr; 2], id: u16) -> Self {
        Self { hosts, id, sequence: 0xfff0 }
    }

    /// Returns the next packet: the index of its sender, and the frame. Replies come late, twice, or never.
    pub(super) fn next(&mut self, random: &mut Random) -> (usize, Vec<u8>) {
        let [pinging, pinged] = self.hosts;
        if random.chance(50) {
            let is_new = random.chance(90);
            self.sequence = self.sequence.wrapping_add(u16::from(is_new));
            (0, echo(pinging, pinged, self.id, self.sequence, false))
        } else {
            let late = if random.chance(30) { random.below(10) as u16 } else { 0 };
            (1, echo(pinged, pinging, self.id, self.sequence.wrapping_sub(late), true))
        }
    }
}

/// Returns the program for a packet from one of two hosts. The first host is on this side of the interface.
pub(super) fn program(from: usize, ingress: Program) -> Program {
    if from == 0 { Program::Egress } else { ingress }
}
