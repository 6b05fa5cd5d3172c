//! What selects the series of a sample, or of what a flow sent.

use crate::{
    flow::{Endpoint, FlowKey, Hot, Locked},
    group::{GroupKey, Grouping, Side},
    method::Method,
    parse::{Address, Frame, IpAddress},
    rtt::Rules,
    series::{Purpose, SeriesKey},
};

/// All that decides the series of a flow direction.
#[derive(Clone, Copy, Debug)]
pub struct SeriesSelector {
    /// Interface id.
    pub interface_id: u16,
    /// The [`Method`] as a number, or [`SeriesKey::QUEUE`].
    pub method: u8,
    /// The number of the [`Direction`](crate::parse::Direction) that matches, or [`SeriesKey::NO_DIRECTION`].
    pub direction: u8,
    /// Differentiated services codepoint of the echoes.
    pub dscp: u8,
    /// Whether the flow is proved. Those that are not can make only some of the groups.
    pub is_proved: bool,
    /// The host that replies.
    pub source: IpAddress,
    /// The host whose packets are timed.
    pub destination: IpAddress,
}

impl SeriesSelector {
    /// Returns the selector of a sample by the packet in `frame`.
    #[inline(always)]
    pub fn of_sample(
        interface_id: u16,
        method: Method,
        direction: u8,
        frame: &Frame,
        is_proved: bool,
    ) -> Self {
        Self {
            interface_id,
            method: method as u8,
            direction,
            dscp: frame.traffic_class >> 2,
            is_proved,
            source: frame.source,
            destination: frame.destination,
        }
    }

    /// Returns the selector for what a flow sent, in the series of `timed`; `None` if what `timed` sends has no samples.
    /// `has_reply` says whether the other endpoint sent anything.
    #[inline(always)]
    pub fn of_flow<A: Address>(
        key: &FlowKey<A>,
        (hot, locked): (&Hot, &Locked),
        timed: Endpoint,
        has_reply: bool,
        rules: &Rules,
    ) -> Option<Self> {
        if !locked.may_have_samples(timed, rules.include_local) {
            return None;
        }
        let (source, destination) = match timed {
            Endpoint::Low => (key.high, key.low),
            Endpoint::High => (key.low, key.high),
        };
        Some(Self {
            interface_id: key.interface,
            method: hot.method(key.protocol, rules.methods) as u8,
            direction: hot.matching_direction(timed, has_reply),
            dscp: hot.latest(timed.other()).dscp(),
            is_proved: hot.is_proved(key.protocol),
            source: source.to_address(),
            destination: destination.to_address(),
        })
    }

    /// Returns the selector of a packet in the queue of the interface that it leaves by. Its group is that of the round
    /// trips that it begins, in which its destination replies.
    #[inline(always)]
    pub fn of_queue(interface_id: u16, from: IpAddress, to: IpAddress, dscp: u8) -> Self {
        let SeriesKey { method, direction, .. } = SeriesKey::of_queue(GroupKey::ALL, interface_id);
        Self { interface_id, method, direction, dscp, is_proved: true, source: to, destination: from }
    }

    /// Returns the purpose of a flow direction's reference to the series: the reference holds for no other.
    #[inline(always)]
    pub fn purpose(&self, grouping: Grouping, epoch: u32) -> Purpose {
        let dscp = if grouping.by_dscp == 0 { 0 } else { self.dscp };
        Purpose::new(epoch, self.method, self.direction, dscp, self.is_proved)
    }

    /// Writes the key of the series. The group is that of the host that replies; if sides are told apart, and only the other host is
    /// inside, that of the other: so both sides of a customer are in one group. `label` is that of [`Grouping::key`], `is_listed` that of [`Grouping::side`].
    // Written in place: with a copy on the stack, the verifier's paths to this point would differ in one more thing.
    #[inline(always)]
    pub fn write_key(
        &self,
        key: &mut SeriesKey,
        grouping: Grouping,
        label: impl Fn(IpAddress) -> u32,
        is_listed: impl Fn(IpAddress) -> bool,
    ) {
        let side = grouping.side(self.source, &label, &is_listed);
        let is_turned = side == Side::Outside as u32
            && grouping.by_destination == 0
            && grouping.side(self.destination, &label, is_listed) == Side::Inside as u32;
        let (one, other) =
            if is_turned { (self.destination, self.source) } else { (self.source, self.destination) };
        key.group = grouping.key(one, other, self.dscp, &label);
        key.interface = self.interface_id;
        key.method = self.method;
        key.direction = self.direction;
        // The series of a queue are those of an interface, whichever way its packets go.
        key.side = if self.method == SeriesKey::QUEUE { Side::UNKNOWN } else { side };
    }

    /// Writes the key of the series of the network at the other end. `network` is the number of an address' network; the other
    /// arguments are those of [`SeriesSelector::write_key`].
    #[inline(always)]
    pub fn write_network_key(
        &self,
        key: &mut SeriesKey,
        grouping: Grouping,
        label: impl Fn(IpAddress) -> u32,
        is_listed: impl Fn(IpAddress) -> bool,
        network: impl Fn(IpAddress) -> u32,
    ) {
        let other_end = grouping.other_end(self.source, self.destination, &label, &is_listed);
        key.group = GroupKey::of_network(network(other_end));
        key.interface = self.interface_id;
        key.method = self.method;
        key.direction = self.direction;
        key.side = grouping.side(self.source, label, is_listed);
    }
}
