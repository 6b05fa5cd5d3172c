//! The numbers that kernel programs and agent share.

/// Identifiers of one flow direction that can be pending at the same time.
pub const PENDING_PER_DIRECTION: usize = 8;

/// Nanoseconds after which a newer identifier may replace a pending one. No shorter: a time-out of a few smoothed RTTs would throw
/// away exactly the samples that show bufferbloat.
pub const PENDING_LIFETIME: u64 = 10 * SECOND;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

/// The latest time that a packet has, ns, so that one more still has a sign: the kernel's times have one too (`ktime_t`). Counted from
/// 1970 it is in 2262; what a capture says is later counts as then.
pub const LATEST: u64 = i64::MAX as u64 - 1;

/// VLAN tags that are parsed before a frame counts as unsupported.
pub const MAX_VLAN_TAGS: usize = 4;

/// MPLS labels that are parsed before a frame counts as unsupported.
pub const MAX_MPLS_LABELS: usize = 4;

/// GTP-U extension headers that are parsed before a packet counts as unsupported.
pub const MAX_GTP_EXTENSION_HEADERS: usize = 4;

/// IPv6 extension headers that are parsed before a packet counts as unsupported.
pub const MAX_EXTENSION_HEADERS: usize = 6;

/// Bytes that TCP options can occupy (RFC 9293, 3.1: the data offset counts to 15 words).
pub const MAX_TCP_OPTION_BYTES: usize = 40;

/// Flows per address family, unless `--max-flows` says otherwise.
pub const DEFAULT_MAX_FLOWS: u32 = 131_072;

/// Interfaces that can be monitored at the same time, or were a moment ago.
pub const MAX_INTERFACES: u32 = 256;

/// Entries of the table in which they are looked up; a power of two. With room to spare: the kernel numbers interfaces
/// in the order in which they come, and those that come and go leave gaps.
pub const INTERFACE_TABLE: u32 = 2_048;

/// Packets of each program, on each CPU, of which one is timed; a power of two. So few that it takes nothing to speak of, and so many
/// that a core with a million packets a second has a mean of some hundred within seconds.
pub const TIMED_EVERY: u64 = 1 << 16;

/// Entries tried for an interface before it counts as not monitored.
pub const INTERFACE_PROBES: u32 = 4;

/// Addresses of this host that the kernel programs can know.
pub const MAX_LOCAL_ADDRESSES: u32 = 16_384;

/// Bytes of the ring buffer through which events reach the agent; a power of two.
pub const RING_BYTES: u32 = 4 << 20;

/// The agent is woken once this many bytes of events wait; until then it looks by itself every
/// [`DRAIN_INTERVAL_MS`]. One wake-up per event costs more than the event.
pub const RING_WAKE_BYTES: u64 = (RING_BYTES / 8) as u64;

/// Milliseconds between two looks of the agent at the ring buffer.
pub const DRAIN_INTERVAL_MS: u64 = 50;

/// Seconds between two sweeps of the flow maps, and the unit of [`crate::flow::Flow::last_seen`] and [`crate::table::Bucket::seen`].
pub const SWEEP_INTERVAL_SECONDS: u32 = 1;

/// Flows that one run of the sweep comes to at most: its CPU does nothing else meanwhile.
pub const MAX_DUE: u32 = 512;

/// Seconds that programs go on without their agent, where they outlive it (before Linux 6.6): a few sweeps, so that an agent
/// without a CPU is not taken for dead.
pub const LEASE_SECONDS: u64 = 5;

/// Groups that are kept, unless `--max-groups` says otherwise.
pub const DEFAULT_MAX_GROUPS: u32 = 16_384;

/// Series that there is room for per group: most have samples of two methods (a handshake, and what follows), and each
/// method matches in one or two directions. A group with more uses what others leave.
pub const SERIES_PER_GROUP: u32 = 4;

/// Series that there is room for besides: those of no group, or of the group `other`, for all methods in both directions.
pub const RESERVED_SERIES: u32 = MAX_INTERFACES * crate::method::Method::ALL.len() as u32 * 2;

/// Blocks of bins, an octave each, that there is room for per group: as if each group had samples in so many octaves within a second,
/// counted for each of its series. A group with more uses what others leave.
pub const BLOCKS_PER_GROUP: u32 = 10;

/// The same per series of no group or of the group `other`. There are as many of those as interfaces can have, so the few interfaces of a
/// machine have room for all octaves.
pub const BLOCKS_PER_RESERVED_SERIES: u32 = 6;

/// Prefixes of a groups file. The map has no memory for them until they are there, and holds two files while one takes
/// the other's place.
pub const MAX_LABELLED_PREFIXES: u32 = 1 << 24;

/// The same on kernels before Linux 5.11, which count that memory against a limit all the same.
pub const MAX_LABELLED_PREFIXES_COUNTED: u32 = 1 << 20;

/// Prefixes that can be excluded.
pub const MAX_EXCLUDED_PREFIXES: u32 = 65_536;

/// Seconds an answered flow may be idle before it is swept.
pub const IDLE_SECONDS: u32 = 300;

/// Seconds a flow of echoes, or an unanswered one, may be idle.
pub const UNANSWERED_IDLE_SECONDS: u32 = 30;

/// Seconds a closed flow is kept, so that its last ACK does not look like a new flow.
pub const CLOSED_IDLE_SECONDS: u32 = 10;

/// Seconds that a flow of QUIC may be idle: the end of a connection is encrypted.
pub const QUIC_IDLE_SECONDS: u32 = 60;

/// The share of all flows that may be unanswered: one in this many. Beyond it the oldest unanswered flow is evicted, so that a
/// flood of SYNs does not keep others out.
pub const UNANSWERED_SHARE: u32 = 8;

/// Segments without timestamps after which a flow that began before it was watched counts as one without.
pub const SEGMENTS_WITHOUT_TIMESTAMPS: u8 = 3;

/// The port of DNS servers (RFC 1035, 4.2).
pub const DNS_PORT: u16 = 53;

/// Ports of DNS servers that can be given.
pub const MAX_DNS_PORTS: usize = 7;

/// DNS queries per address family that can be pending at the same time. Beyond, the one used least recently is evicted.
pub const MAX_QUERIES: u32 = 32_768;

/// Seconds after which a DNS query counts as not answered. Resolvers give up after five to ten (resolv.conf(5)).
pub const DNS_TIMEOUT_SECONDS: u64 = 10;

/// Pairs of entries for packets that are followed through queues, a power of two. One packet in 64 is followed, and has to share a pair
/// with two others before one is lost: of a queue of 10,000 packets fewer than one in a thousand.
pub const FOLLOWED_PAIRS: u32 = 4_096;

/// Packets that can be on their way between two watched interfaces at the same time, a power of two. Most take some microseconds.
pub const MAX_PASSING: u32 = 8_192;

/// Packets that are looked at of those that one dequeue hands over. Drivers with a long ring may take more at a time; what is followed of
/// the rest is lost.
pub const MAX_BULK: u32 = 16;
