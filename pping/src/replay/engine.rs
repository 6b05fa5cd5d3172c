//! The tracker with the time of the packets.

use super::{clock::IdleClock, settings::Settings, tracker::Tracker};
use crate::capture::Packet;

/// A sweep looks at all flows, so it waits until at least one packet per this many flows came since the last: in a capture of
/// months there may be a packet a second.
const FLOWS_SWEPT_PER_PACKET: u64 = 8;

/// Measures the packets of a capture, whose timestamps are the clock:
///
/// - Idle time is counted in whole seconds from the first packet of the capture to the newest so far. Flows expire by the
///   kernel's limits, exactly: a packet of a flow that has been idle too long begins a new one.
/// - A packet that is more than a second older than the newest of its flow sets the flow's clock back: what is pending is
///   discarded, and the flow goes on from there. An echo that is older than what it echoes gives no sample.
/// - A packet that is more than a minute older than the newest of the capture sets the count of seconds back: it goes
///   on from there, and no flow gets older by it.
pub struct Engine {
    /// The tracker of flows, with its report.
    pub tracker: Tracker,
    clock: IdleClock,
    swept: u32,
    packets_since_sweep: u64,
    /// The times of the oldest and the newest packet.
    span: Option<(u64, u64)>,
}

impl Engine {
    /// Without any packets yet. Nothing is local to a capture: `settings.rules.include_local` is taken as set.
    pub fn new(mut settings: Settings) -> Self {
        settings.rules.include_local = true;
        Self {
            tracker: Tracker::new(settings),
            clock: IdleClock::default(),
            swept: 0,
            packets_since_sweep: 0,
            span: None,
        }
    }

    /// Takes the next packet.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let (oldest, newest) = self.span.unwrap_or((packet.time, packet.time));
        self.span = Some((oldest.min(packet.time), newest.max(packet.time)));
        let second = self.clock.advance(packet.time);
        self.packets_since_sweep += 1;
        if second != self.swept
            && self.packets_since_sweep * FLOWS_SWEPT_PER_PACKET >= self.tracker.flows() as u64
        {
            self.tracker.sweep(packet.time, second);
            self.swept = second;
            self.packets_since_sweep = 0;
        }
        self.tracker.packet(packet, second);
    }

    /// Brings the series up to date at the end of an interval. Expired flows are removed first, so that the time this takes
    /// depends on the flows of the last minutes only.
    pub fn fold(&mut self, time: u64) {
        let second = self.clock.advance(time);
        self.tracker.sweep(time, second);
        (self.swept, self.packets_since_sweep) = (second, 0);
        self.tracker.fold();
    }

    /// The times of the oldest and the newest packet, if there were any.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Nanoseconds between the oldest and the newest packet.
    pub fn span(&self) -> u64 {
        self.span.map_or(0, |(oldest, newest)| newest - oldest)
    }
}
