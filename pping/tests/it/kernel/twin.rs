//! The user-space twin: the tracker of replays, fed with the same packets.

use std::ops::{Deref, DerefMut};

use pping::{
    capture::Packet,
    event::Event,
    groups::Networks,
    kernel::load_options::LoadOptions,
    replay::{self, Report, Tracker},
};
use pping_common::{
    abi::Lost,
    bytes::Captured,
    parse::{Direction, LinkType},
};

/// The tracker with which the kernel programs are compared.
pub(super) struct Twin {
    pub(super) tracker: Tracker,
    pub(super) link: LinkType,
    pub(super) interface_id: u16,
    sweeps: u32,
}

impl Twin {
    pub(super) fn new(settings: LoadOptions, link: LinkType, interface_id: u16) -> Self {
        Self::with_networks(settings, link, interface_id, Networks::default())
    }

    /// A twin that tells these networks apart.
    pub(super) fn with_networks(
        settings: LoadOptions,
        link: LinkType,
        interface_id: u16,
        networks: Networks,
    ) -> Self {
        let LoadOptions { rules, dns_ports, max_flows, max_unproved, max_queries, .. } = settings;
        let LoadOptions { decap, emit, grouping, max_groups, .. } = settings;
        let replay = replay::Settings::new(rules, max_flows, decap);
        let tracker = Tracker::new(replay::Settings {
            dns_ports,
            max_unproved,
            max_queries,
            copies_within: settings.copies_within,
            ring_keys: settings.table_keys.unwrap_or(replay.ring_keys),
            emit,
            grouping,
            max_groups,
            networks,
            max_networks: settings.max_networks,
            worst: Some((usize::MAX, 0)),
            ..replay
        });
        Self { tracker, link, interface_id, sweeps: 0 }
    }

    /// Handles a packet at `now`, in ns.
    pub(super) fn packet(&mut self, direction: Direction, bytes: &[u8], now: u64) {
        let packet = Packet {
            time: now,
            interface: self.interface_id,
            link: self.link,
            direction: Some(direction),
            bytes: Captured { bytes, frame_len: bytes.len() },
        };
        self.tracker.packet(&packet, self.sweeps.into());
    }

    /// Begins the next sweep.
    pub(super) fn sweep(&mut self, now: u64) {
        self.sweeps += 1;
        self.tracker.sweep(now, self.sweeps.into());
    }

    /// Counts an event that found no room on the ring.
    pub(super) fn lose(&mut self, event: &Event) {
        let lost = match event {
            Event::Rtt(_) => Lost::Rtt,
            Event::Flow(_) => Lost::Flow,
            Event::End(_) => Lost::End,
        };
        self.counters.lost[lost as usize] += 1;
    }
}

impl Deref for Twin {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.tracker.report
    }
}

impl DerefMut for Twin {
    fn deref_mut(&mut self) -> &mut Report {
        &mut self.tracker.report
    }
}
