//! The reasons why a packet is not measured.

use crate::layout::numbered;

numbered! {
    /// The reason why a packet's flow is not measured.
    pub enum Untracked {
        /// The packet is not IP.
        NonIp,
        /// A fragment other than the first, which has no ports.
        Fragment,
        /// The frame ends inside a header.
        Truncated,
        /// A header contradicts itself: it has an impossible version, header length or data offset.
        Malformed,
        /// No method measures it: another protocol, an ICMP message other than echo, or more VLAN tags, MPLS labels or
        /// extension headers than are parsed.
        Unsupported,
        /// A TCP segment without timestamps, of a new flow that no other method would measure.
        NoTimestamp,
        /// A segment of an end whose timestamps stand still or are zero, of a flow that no other method would measure.
        UnusableTimestamp,
        /// A packet of no known flow that begins none: an echo reply, a RST.
        NoFlow,
        /// The packet would begin a flow, but the flow table is full.
        MapFull,
        /// A tunnel is inside a tunnel.
        NestedTunnel,
        /// One of the packet's hosts is excluded.
        Excluded,
        /// The program of the next stage is not loaded (yet, or any more).
        NotLoaded,
        /// The packet passed the other hook of its interface than those of its sender that count: it is a copy.
        OtherHook,
        /// A TCP segment that the other end would not take: its numbers are not those of the connection.
        OutOfWindow,
        /// Both hosts of the flow send by the same hook of an interface that leads to one of them only.
        SameHook;
        /// The packet is a copy of one that passed a moment ago, as a mirror of several ports shows them.
        Duplicate,
    }
}
