//! The numbers that kernel programs and agent share.

/// Pending timestamps per flow direction.
pub const PENDING_PER_DIRECTION: usize = 8;

/// Nanoseconds after which a newer identifier may replace a pending one. A timeout of a few smoothed RTTs would lose
/// exactly the samples that show bufferbloat.
pub const PENDING_LIFETIME: u64 = 10 * SECOND;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// The latest time of a packet, ns: one nanosecond below the limit of a signed 64-bit time, as the kernel's `ktime_t` is.
/// Counted from 1970 it lies in the year 2262. Later times in a capture count as this one.
pub const LATEST: u64 = i64::MAX as u64 - 1;

/// VLAN tags that are parsed before a frame counts as unsupported.
pub const MAX_VLAN_TAGS: usize = 4;

/// MPLS labels that are parsed before a frame counts as unsupported.
pub const MAX_MPLS_LABELS: usize = 4;

/// GTP-U extension headers that are parsed before a packet counts as unsupported.
pub const MAX_GTP_EXTENSION_HEADERS: usize = 4;

/// Tagged fields of TZSP that are parsed before a packet counts as unsupported.
pub const MAX_TZSP_FIELDS: usize = 8;

/// IPv6 extension headers that are parsed before a packet counts as unsupported.
pub const MAX_EXTENSION_HEADERS: usize = 6;

/// Bytes that TCP options can occupy (RFC 9293, 3.1: the data offset counts to 15 words).
pub const MAX_TCP_OPTION_BYTES: usize = 40;

/// Flows per address family, unless `--max-flows` says otherwise.
pub const DEFAULT_MAX_FLOWS: u32 = 131_072;

/// Interfaces that have an id, unless `--max-interfaces` says otherwise: those being watched, and those that were watched until a
/// moment ago.
pub const DEFAULT_MAX_INTERFACES: u32 = 256;

/// The highest `--max-interfaces`: an [`Arm`](crate::arm::Arm) tells as many apart.
pub const HIGHEST_MAX_INTERFACES: u32 = 16_384;

/// One packet in this many is timed, per program and CPU; a power of two. Timing that few costs next to nothing, and a
/// core with a million packets a second still has a mean of some hundred within seconds.
pub const TIMED_EVERY: u64 = 1 << 16;

/// Entries tried for an interface before it counts as not watched.
///
/// With 256 interfaces in four runs of neighbours that all want the same entries, one in some 2,000 finds all of its entries
/// taken. Two more probes would find one for nearly all of these, but more than double the instructions to verify in the
/// program that follows packets out of queues.
pub const INTERFACE_PROBES: u32 = 4;

/// Addresses of this host that the kernel programs can hold.
pub const MAX_LOCAL_ADDRESSES: u32 = 16_384;

/// Bytes of the ring buffer through which events reach the agent; a power of two.
pub const RING_BYTES: u32 = 4 << 20;

/// The same with `--profile small`. It holds more than [`RING_WAKE_BYTES`].
pub const SMALL_RING_BYTES: u32 = 1 << 20;

/// Bytes of waiting events at which the kernel wakes the agent. Below that, the agent polls every [`DRAIN_INTERVAL_MS`]:
/// one wake-up per event would cost more than the event.
pub const RING_WAKE_BYTES: u64 = (RING_BYTES / 8) as u64;

/// Milliseconds between two polls of the ring buffer by the agent.
pub const DRAIN_INTERVAL_MS: u64 = 50;

/// Seconds between two sweeps of the flow maps, and the unit of [`crate::table::Bucket::seen`].
pub const SWEEP_INTERVAL_SECONDS: u32 = 1;

/// Flows that one run of the sweep visits at most: its CPU does nothing else meanwhile.
pub const MAX_DUE: u32 = 512;

/// Seconds for which programs keep working without their agent, where they outlive it (before Linux 6.6). It spans a few
/// sweeps, so that an agent short of CPU time does not count as dead.
pub const LEASE_SECONDS: u64 = 5;

/// The number of groups, unless `--max-groups` says otherwise.
pub const DEFAULT_MAX_GROUPS: u32 = 16_384;

/// The share of groups that flows may make before they are proved: one in this many. Further ones count in the group
/// `other` until they are.
pub const UNPROVED_GROUPS_SHARE: u32 = 8;

/// Groups that flows may make before they are proved, however few there are in all.
const FEW_GROUPS: u32 = 8;

/// Returns how many of `max_groups` groups flows may make before they are proved.
pub const fn max_unproved_groups(max_groups: u32) -> u32 {
    let groups = max_groups / UNPROVED_GROUPS_SHARE;
    if groups < FEW_GROUPS { FEW_GROUPS } else { groups }
}

/// Series per group, on average. Most groups have samples of two methods (the handshake, and one for the rest), each in
/// one or two directions. A group that needs more uses the room of others.
pub const SERIES_PER_GROUP: u32 = 4;

/// Returns the series besides those of groups: without groups, or of the group `other`, one per interface, method and direction.
pub const fn reserved_series(max_interfaces: u32) -> u32 {
    max_interfaces * crate::method::Method::ALL.len() as u32 * 2
}

/// [`reserved_series`] of as many interfaces as there are by default.
pub const RESERVED_SERIES: u32 = reserved_series(DEFAULT_MAX_INTERFACES);

/// Blocks of bins (one octave each) per group, on average: enough for samples in this many octaves in one second, shared
/// by all series of the group. A group that needs more uses the room of others.
pub const BLOCKS_PER_GROUP: u32 = 10;

/// Blocks of bins per series of no group or of the group `other`, on average. These series are reserved for
/// [`DEFAULT_MAX_INTERFACES`] interfaces, so the few interfaces of a real machine have room for all octaves.
pub const BLOCKS_PER_RESERVED_SERIES: u32 = 6;

/// Prefixes of a groups file. The map allocates memory only for prefixes it holds. During a reload it holds those of the
/// old and of the new file.
pub const MAX_LABELLED_PREFIXES: u32 = 1 << 24;

/// The same for the programs of kernels before Linux 5.12. Until 5.11 a kernel charges the memory of all possible prefixes
/// against a limit.
pub const MAX_LABELLED_PREFIXES_COUNTED: u32 = 1 << 20;

/// Prefixes of networks at the other end. The map allocates memory only for prefixes it holds.
pub const MAX_NETWORK_PREFIXES: u32 = 1 << 22;

/// The networks at the other end that have their own series, unless `--max-networks` says otherwise.
pub const DEFAULT_MAX_NETWORKS: u32 = 2048;

/// Prefixes whose hosts are inside the network.
pub const MAX_INSIDE_PREFIXES: u32 = 65_536;

/// Prefixes that can be excluded.
pub const MAX_EXCLUDED_PREFIXES: u32 = 65_536;

/// Seconds an answered flow may be idle before it is swept.
pub const IDLE_SECONDS: u32 = 300;

/// Seconds a flow of echoes, or an unanswered one, may be idle.
pub const UNANSWERED_IDLE_SECONDS: u32 = 30;

/// Seconds a closed flow is kept, so that its last ACK does not begin a new flow.
pub const CLOSED_IDLE_SECONDS: u32 = 10;

/// Seconds that a QUIC flow may be idle. It has no visible end: the close is encrypted.
pub const QUIC_IDLE_SECONDS: u32 = 60;

/// The share of flows that need not be proved: one in this many. Beyond it the oldest of them is evicted, so that a flood
/// does not keep other flows out.
pub const UNPROVED_SHARE: u32 = 8;

/// Returns how many of `max_flows` flows need not be proved. They never take more than half of the pool of `max_pending`
/// entries for pending timestamps.
pub const fn max_unproved(max_flows: u32, max_pending: u32) -> u32 {
    let (share, half) = (max_flows / UNPROVED_SHARE, max_pending / 2);
    if share < half { share } else { half }
}

/// Segments without timestamps after which a flow counts as one without, if its SYN was not seen.
pub const SEGMENTS_WITHOUT_TIMESTAMPS: u8 = 3;

/// Segments that an end of a flow must have sent for its timestamps to count as still. Fewer may well fit into one tick.
pub const MANY_SEGMENTS: u64 = 4;

/// Nanoseconds for which the clock behind an end's timestamps may stand still. Its ticks take at most one second (RFC 7323,
/// 5.4).
pub const STILL_CLOCK: u64 = 2 * SECOND;

/// How far a segment's numbers may be ahead of what was sent before, whatever the window: packets that are lost or missed at
/// once may leave such a gap. After a larger one, the other end confirms where the connection continues.
pub const AHEAD: u32 = 1 << 20;

/// The same if the other end is not seen: nobody could confirm it.
pub const AHEAD_ALONE: u32 = 1 << 24;

/// The largest window (RFC 7323, 2.3).
pub const LARGEST_WINDOW: u32 = 1 << 30;

/// How large a window is taken to be that is not known: twice the largest that today's systems offer by default, which is
/// 32 MiB, of Linux.
pub const UNKNOWN_WINDOW: u32 = 1 << 26;

/// How far the acknowledgement of a segment may be behind what the other end has sent, if it shows that its sender knows that:
/// what is under way in most connections.
pub const UNDER_WAY: u32 = 1 << 20;

/// The ticks by which a clock may advance at any time: two seconds of the fastest one, with a tick of 1 us.
pub const TSVAL_SLACK: u32 = 1 << 21;

/// How far the number of a RST may be from what was sent or acknowledged last. An endpoint takes only a RST with exactly the
/// number that it expects (RFC 5961, 3.2), which pping knows only if it has seen every packet.
pub const RST_WITHIN: u32 = 1 << 16;

/// Nanoseconds within which a segment that passes again is a copy, as of a mirror port or a router with one arm, and not a
/// retransmission. It must be sooner than the lowest RTT, too.
pub const COPY_WITHIN: u64 = 1 << 20;

/// Nanoseconds after which a SYN without timestamps begins a connection although it has the sequence number of the
/// connection before, as those of simple devices may.
pub const SAME_SYN: u64 = 10 * SECOND;

/// The port of DNS servers (RFC 1035, 4.2).
pub const DNS_PORT: u16 = 53;

/// Ports that can be given as those of DNS servers.
pub const MAX_DNS_PORTS: usize = 7;

/// DNS queries per address family that can be pending at the same time. Beyond that, the oldest one of a ring is given up.
pub const MAX_QUERIES: u32 = 32_768;

/// Seconds after which a DNS query counts as unanswered. Resolvers give up after five to ten (resolv.conf(5)).
pub const DNS_TIMEOUT_SECONDS: u64 = 10;

/// Pairs of entries for packets that are followed through queues, a power of two. By default one packet in 64 is
/// followed, and a packet is lost only if three share a pair: fewer than one in a thousand, of a queue of 10,000 packets.
pub const FOLLOWED_PAIRS: u32 = 4_096;

/// Packets that can be under way between two watched interfaces at the same time, a power of two. Most take some
/// microseconds.
pub const MAX_PASSING: u32 = 8_192;

/// Packets of one dequeue that are examined. A driver with a long ring may dequeue more at a time: followed packets
/// beyond the limit get no time.
pub const MAX_BULK: u32 = 16;
