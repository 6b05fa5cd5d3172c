//! The tracker, driven by the time of the packets.

use pping_common::matcher::Clock;

use super::{settings::Settings, tracker::Tracker};
use crate::capture::Packet;

/// Measures the packets of a capture, whose timestamps are the clock:
///
/// - Idle time is counted in whole seconds from the first packet of the capture to the newest so far. Flows expire by the
///   kernel's limits, exactly: a packet of a flow that has been idle too long begins a new one.
/// - A packet that is more than a second older than the newest of its flow sets the flow's clock back: pending timestamps are
///   discarded, and the flow goes on from there. An echo that is older than what it echoes gives no sample.
/// - A packet that is more than a minute older than the newest of the capture restarts the count of seconds from its own
///   time. No flow gets older by that.
pub struct Engine {
    /// The tracker of flows, with its report.
    pub tracker: Tracker,
    clock: Clock,
    /// The times of the oldest and the newest packet.
    span: Option<(u64, u64)>,
}

impl Engine {
    /// Creates an engine without flows. A capture does not tell which addresses were local, so `settings.rules.include_local` is
    /// taken as set.
    pub fn new(mut settings: Settings) -> Self {
        settings.rules.include_local = true;
        Self { tracker: Tracker::new(settings), clock: Clock::default(), span: None }
    }

    /// Takes the next packet.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let (oldest, newest) = self.span.unwrap_or((packet.time, packet.time));
        self.span = Some((oldest.min(packet.time), newest.max(packet.time)));
        let (second, is_due) = self.clock.packet(packet.time, self.tracker.flows());
        if is_due {
            self.tracker.sweep(packet.time, second);
        }
        self.tracker.packet(packet, second);
    }

    /// Brings the series up to date at the end of an interval. Expired flows are removed first, so the time that this takes
    /// depends only on the flows of the last minutes.
    pub fn flush(&mut self, time: u64) {
        let second = self.clock.sweep(time);
        self.tracker.sweep(time, second);
        self.tracker.flush();
    }

    /// The times of the oldest and the newest packet, ns since 1970; `None` without packets.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Nanoseconds between the oldest and the newest packet.
    pub fn span(&self) -> u64 {
        self.span.map_or(0, |(oldest, newest)| newest - oldest)
    }
}
