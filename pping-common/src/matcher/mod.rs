//! The matcher: takes packets, returns round-trip times.
//!
//! A [`Matcher`] keeps the flows and the pending DNS queries of the packets that it was given. It does no I/O and reads no
//! clock: time is what the packets say. Memory is bounded by [`Settings`].

mod clock;
mod flows;
mod observer;
mod packet;
mod queries;
mod rings;
mod samples;
mod settings;
mod table;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use self::samples::Collected;
#[doc(hidden)]
pub use self::{
    clock::Clock,
    flows::Flows,
    observer::{DnsMessage, Observer},
    packet::PacketMetadata,
    queries::{Elapsed, Others, Queries},
};
pub use self::{
    packet::Packet,
    samples::{RttSample, Samples},
    settings::Settings,
};
use crate::{bytes::Captured, limits::LATEST, parse::LinkType, rtt::Rules};

/// Measures round-trip times from packets.
///
/// # Time
///
/// Times are nanoseconds since any moment, the same for all packets, up to 2^63 - 2; a later time counts as that.
/// Packets should come in the order of their times. A packet that is more than a second older than the newest of its flow sets the
/// flow's clock back: what was pending is discarded. An answer that is older than what it answers gives no sample.
///
/// # Memory
///
/// A flow takes about half a kibibyte. It is removed once no packet of it has come for 300 s; for 30 s if nobody has
/// answered or it is a flow of ICMP echoes, for 10 s if it was closed, and for 60 s if it is of QUIC. A DNS query is given
/// up after 10 s. [`Settings`] bounds the numbers of flows and queries. Beyond the bound, a flow that is not proved gives
/// way to a new one. A flow that is proved never does, so new flows may find no room
/// ([`Untracked::MapFull`](crate::parse::Untracked)).
///
/// Tables are hashed with random keys, so no packets can be chosen to collide.
pub struct Matcher {
    flows: Flows,
    clock: Clock,
}

impl Matcher {
    /// Creates a matcher with the default limits.
    ///
    /// Unless [`Rules::include_local`] is set, packets to addresses of this host are not timed: loopback addresses, and
    /// those of [`Matcher::add_local`]. Set it to measure a capture.
    pub fn new(rules: Rules) -> Self {
        Self::with_settings(Settings::new(rules))
    }

    /// Creates a matcher with other limits.
    pub fn with_settings(settings: Settings) -> Self {
        Self { flows: Flows::new(settings), clock: Clock::default() }
    }

    /// Treats an address as one of this host.
    pub fn add_local(&mut self, address: IpAddr) {
        let mapped = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        self.flows.add_local(mapped.octets());
    }

    /// Takes a whole packet, in nanoseconds and from its link header on, and returns the samples that it gives. The bytes may be
    /// anything: what is no packet gives no sample.
    pub fn packet(&mut self, time: u64, link: LinkType, bytes: &[u8]) -> Samples {
        let bytes = Captured { bytes, frame_len: bytes.len() };
        self.packet_with(&Packet { time, interface: 0, link, direction: None, bytes })
    }

    /// Takes a packet of which more is known: a direction, an interface, or that the capture has cut it off.
    pub fn packet_with(&mut self, packet: &Packet<'_>) -> Samples {
        let packet = Packet { time: packet.time.min(LATEST), ..*packet };
        let mut found = Collected::default();
        let (second, is_due) = self.clock.packet(packet.time, self.flows.flows());
        if is_due {
            self.flows.sweep(packet.time, second, &mut found);
        }
        let tracked = self.flows.parse(&packet).and_then(|()| self.flows.track(&packet, second, &mut found));
        found.into_samples(tracked.err())
    }

    /// Removes the flows and queries that have been idle too long by this time, ns. Packets do that too, so this is for when none
    /// come.
    pub fn expire(&mut self, time: u64) {
        let time = time.min(LATEST);
        let second = self.clock.sweep(time);
        self.flows.sweep(time, second, &mut Collected::default());
    }

    /// The number of flows.
    pub fn flows(&self) -> usize {
        self.flows.flows()
    }

    /// The number of pending DNS queries.
    pub fn pending_queries(&self) -> usize {
        self.flows.queries()
    }
}
