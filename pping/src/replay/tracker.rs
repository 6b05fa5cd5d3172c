//! What the kernel programs do with a packet, in user space: the same parsing and matching of `pping-common`, the same
//! counters and events.

use std::{collections::HashSet, hash::Hash};

use pping_common::{
    abi::Hook,
    flow::{Address, Flow, FlowKey, Side},
    parse::{Decap, Family, Frame, IpAddress, Protocol, Untracked, Vlan},
    rtt::Rules,
};

use super::{
    report::{Report, Seen, endpoints},
    table::{Entry, Table, Tables},
};
use crate::capture::Packet;

/// What is fixed before the first packet.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often to record.
    pub rules: Rules,
    /// Flows per address family.
    pub max_flows: u32,
    /// The tunnels of which the inside is measured.
    pub decap: Decap,
}

/// Follows flows. It knows no time but what it is told.
pub struct Tracker {
    /// What it counts and reports.
    pub report: Report,
    settings: Settings,
    local: HashSet<[u8; 16]>,
    frame: Frame,
    tables: Tables,
}

impl Tracker {
    /// Without any flows yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            report: Report::new(),
            settings,
            local: HashSet::new(),
            frame: Frame::EMPTY,
            tables: Tables::default(),
        }
    }

    /// Takes an address for one of the host that captured. Loopback addresses always are; a capture tells no others.
    pub fn add_local(&mut self, address: [u8; 16]) {
        self.local.insert(address);
    }

    /// How many flows there are.
    pub fn flows(&self) -> usize {
        self.tables.v4.len() + self.tables.v6.len()
    }

    /// Takes a packet, in the second `second` of the count that flows are idle by.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, second: u32) {
        let Self { report, settings, local, frame, tables } = self;
        let parsed = frame.parse(&packet.octets, packet.link, Vlan::NONE, settings.decap);
        let (hook, protocol) = (packet.hook.unwrap_or(Hook::Ingress) as usize, frame.protocol as usize);
        let counters = &mut report.counters;
        counters.packets[hook][protocol] += 1;
        counters.bytes[hook][protocol] += packet.octets.frame_len as u64;
        if frame.protocol != Protocol::NonIp {
            counters.ecn[hook][usize::from(frame.traffic_class & 3)] += 1;
        }
        let seen =
            Seen { hook: packet.hook, place: packet.interface, now: packet.time.saturating_add(1), second };
        let family = frame.family;
        let mut packet = Tracked { frame, seen, settings, local, report };
        let tracked = parsed.and_then(|()| match family {
            Family::V4 => packet.track(&mut tables.v4),
            Family::V6 => packet.track(&mut tables.v6),
        });
        if let Err(reason) = tracked {
            self.report.counters.untracked[reason as usize] += 1;
        }
    }

    /// Forgets the flows that have been idle too long by this second, and says so as of `time`.
    pub fn sweep(&mut self, time: u64, second: u32) {
        let now = time.saturating_add(1);
        self.tables.v4.sweep(now, second, &mut self.report);
        self.tables.v6.sweep(now, second, &mut self.report);
    }
}

/// A packet on its way to its flow.
struct Tracked<'a> {
    frame: &'a Frame,
    seen: Seen,
    settings: &'a Settings,
    local: &'a HashSet<[u8; 16]>,
    report: &'a mut Report,
}

impl Tracked<'_> {
    /// Counts the packet to its flow, matches it and records it. An error says why it has no flow.
    #[inline]
    fn track<A: Address + Eq + Hash>(&mut self, table: &mut Table<A>) -> Result<(), Untracked> {
        let transport = &self.frame.transport;
        let Seen { now, second, .. } = self.seen;
        let (key, from) = FlowKey::<A>::new(self.seen.place, self.frame);
        let index = match table.find(&key, now, second, self.report) {
            Some(index) => index,
            None => self.begin(table, key)?,
        };
        let entry = table.get(index).ok_or(Untracked::MapFull)?;
        entry.see(now, second);
        let direction = match from {
            Side::Low => &mut entry.flow.low,
            Side::High => &mut entry.flow.high,
        };
        direction.packets += 1;
        direction.bytes += u64::from(transport.payload());
        if entry.flow.concerns(from, transport) {
            self.step::<A>(&mut entry.flow, from);
        }
        // Asked for last, so that RST and FIN of a flow that lost its timestamps still close it.
        match transport.begins_flow() {
            Err(Untracked::NoTimestamp) => Err(Untracked::NoTimestamp),
            _ => Ok(()),
        }
    }

    /// Makes the entry of a flow, if a flow can begin with this packet and there is room.
    fn begin<A: Address + Eq + Hash>(
        &mut self,
        table: &mut Table<A>,
        key: FlowKey<A>,
    ) -> Result<usize, Untracked> {
        self.frame.transport.begins_flow()?;
        let Seen { now, second, .. } = self.seen;
        let local = u32::from(self.is_local(key.low.to_address()))
            | u32::from(self.is_local(key.high.to_address())) << 1;
        let entry = Entry::new(local, now);
        let max_flows = self.settings.max_flows as usize;
        let index =
            table.insert(key, entry, max_flows, (now, second), self.report).ok_or(Untracked::MapFull)?;
        self.report.counters.entries_made[A::FAMILY as usize] += 1;
        Ok(index)
    }

    fn is_local(&self, address: IpAddress) -> bool {
        address.is_loopback() || self.local.contains(&address.to_octets())
    }

    /// The rare packet that matches, records, opens or closes.
    fn step<A: Address>(&mut self, flow: &mut Flow, from: Side) {
        let (frame, now) = (self.frame, self.seen.now);
        let outcome = flow.step(from, &frame.transport, now, &self.settings.rules);
        let endpoints = endpoints::<A>(self.seen.place, frame);
        self.report.counters.slots_full += u64::from(outcome.measured.slots_full);
        self.report.opened(&outcome.changes, endpoints);
        if let Some(sample) = outcome.measured.sample() {
            self.report.sample(&sample, (flow, from), frame, self.seen, endpoints);
        }
        self.report.closed(&outcome.changes, endpoints, now);
    }
}
