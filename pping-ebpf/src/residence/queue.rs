//! Queueing time: from the tracepoint `qdisc_enqueue` to `qdisc_dequeue`. Only some packets, chosen at random, are followed.
//!
//! A packet is known by the address of its `sk_buff`, which the kernel gives to another packet as soon as it is free.
//! Three things keep the other packet from getting a time: an enqueue ends whatever was followed at this address, a
//! drop (`kfree_skb`) does so too, and the packet must carry the same at both ends.
//!
//! A qdisc that splits super-packets (CAKE, or a token bucket that is too small for one) frees them before the kernel
//! reports them as enqueued, and dequeues other packets. The first of these carries the same as the super-packet. So
//! the latest TCP super-packet that is followed has a second entry, and is also looked for by what it carries, among all
//! packets that are dequeued. Once the address has another packet, the second entry alone stands for it.

use aya_ebpf::{
    helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns, bpf_probe_read_kernel},
    programs::RawTracePointContext,
};
use pping_common::{
    abi::{Followed, Interface, Part, Residence, ResidenceOwner, SeriesSelector},
    hash::GOLDEN_RATIO,
    limits::{FOLLOWED_PAIRS, MAX_BULK, SECOND},
    parse::PacketId,
    shared::Field,
};

use super::count;
use crate::{aggregate, config, maps, shared::prelude::*};

/// How long a super-packet is looked for by what it carries, ns.
const AWAITED_FOR: u64 = SECOND;

/// `qdisc_enqueue(qdisc, txq, skb)`: the root qdisc has taken a packet.
#[inline(always)]
pub fn enqueued(ctx: &RawTracePointContext) {
    let (queue, skb) = (ctx.arg::<u64>(1), ctx.arg::<u64>(2));
    // The end of an earlier packet at this address was not seen, and its memory now has another packet.
    Entry::with(skb, |entry, packet| entry.give_up(packet, field!(Residence, replaced)));
    if !is_chosen() {
        return;
    }
    let Some(Device { interface_id, mtu }) = Device::of(queue) else { return };
    let Some(id) = read_id(skb) else { return };
    let owner = owner(interface_id, &id);
    let Some(entry) = Entry::vacant(skb) else { return };
    if let Some(residence) = maps::residence(Part::Queue.index(interface_id)) {
        residence.at(field!(Residence, followed)).add(1);
    }
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    entry.follow(skb, id.hash, owner, now);
    let Some(super_packet) = Entry::super_packet() else { return };
    let awaited = super_packet.read();
    if awaited.time != 0 {
        if now.saturating_sub(awaited.time) < AWAITED_FOR {
            return;
        }
        super_packet.forget(awaited);
    }
    if id.may_be_split(mtu) {
        super_packet.follow(skb, id.hash, owner, now);
    }
}

/// Returns what the time of a packet is added to: the interface, and the series of the packet's group if there are groups.
#[inline(always)]
fn owner(interface_id: u16, id: &PacketId) -> ResidenceOwner {
    let owner = ResidenceOwner::of_interface(interface_id);
    if !config::grouping().is_on() {
        return owner;
    }
    // SAFETY: the only reference to it in this program.
    let Some(target) = (unsafe { maps::queue_target() }) else { return owner };
    let selector = SeriesSelector::of_queue(interface_id, id.from, id.to, id.dscp);
    match aggregate::of_queue(&selector, target) {
        Some((index, generation)) => owner.with_series(index, generation),
        None => owner,
    }
}

/// `qdisc_dequeue(qdisc, txq, packets, skb)`: the root qdisc hands packets over, linked in a list.
#[inline(always)]
pub fn dequeued(ctx: &RawTracePointContext) {
    let (queue, packets, mut skb) = (ctx.arg::<u64>(1), ctx.arg::<u64>(2) as u32, ctx.arg::<u64>(3));
    let Some(super_packet) = Entry::super_packet() else { return };
    for position in 1..=MAX_BULK {
        if skb == 0 {
            return;
        }
        hand_over(queue, skb, super_packet);
        if position >= packets {
            return;
        }
        let Some(next) = read::<u64>(skb, config::offsets().skb_next) else { return };
        skb = next;
    }
}

/// Takes the time of a packet that the qdisc hands over, if it was followed.
#[inline(always)]
fn hand_over(queue: u64, skb: u64, super_packet: Entry) {
    let Some([one, other]) = Entry::both(skb) else { return };
    let is_one = one.holds(skb);
    let is_known = is_one || other.holds(skb);
    if !is_known && super_packet.time() == 0 {
        return;
    }
    let Some(PacketId { hash, .. }) = read_id(skb) else { return };
    let entry = if is_one { one } else { other };
    let (packet, awaited) = (entry.read(), super_packet.read());
    let is_known = is_known && packet.is_at(skb);
    let is_whole = is_known && packet.content == hash;
    if is_known && !is_whole {
        entry.give_up(packet, field!(Residence, replaced));
    }
    let is_part = || awaited.time != 0 && awaited.content == hash && awaited.is_of(queue);
    if !is_whole && !is_part() {
        return;
    }
    let ended = if is_whole { packet } else { awaited };
    if awaited.is(ended) {
        super_packet.free();
    }
    // Its own entry, unless another packet has the address of a super-packet by now.
    Entry::with(ended.skb, |entry, packet| {
        if packet.is(ended) {
            entry.free();
        }
    });
    take_time(ended);
}

/// Takes the time of a packet that leaves now.
#[inline(always)]
fn take_time(packet: Packet) {
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    if packet.time > now {
        return;
    }
    let (owner, time) = (packet.owner, now - packet.time);
    count(Part::Queue, owner.interface_id(), time);
    if config::grouping().is_on()
        && owner.has_series()
        && let Some(counters) = maps::counters(owner.interface_id())
        // SAFETY: the only reference to it until the next packet of the program.
        && let Some(target) = (unsafe { maps::queue_target() })
    {
        aggregate::add_to(owner.series(), counters, target, time);
    }
}

/// `kfree_skb(skb, ..)`: the kernel drops a packet, in a queue or elsewhere.
#[inline(always)]
pub fn freed(ctx: &RawTracePointContext) {
    let skb = ctx.arg::<u64>(0);
    Entry::with(skb, |entry, packet| {
        let Some(PacketId { hash, .. }) = read_id(skb) else { return };
        if hash != packet.content {
            // Another packet has the address.
            entry.give_up(packet, field!(Residence, replaced));
            return;
        }
        if let Some(super_packet) = Entry::super_packet()
            && super_packet.read().is(packet)
        {
            super_packet.free();
        }
        entry.lose(packet, field!(Residence, dropped));
    });
}

/// Reads the identity of a packet. If the packet is gone, it is that of whatever its memory holds now.
#[inline(always)]
fn read_id(skb: u64) -> Option<PacketId> {
    let offsets = config::offsets();
    let head = read::<u64>(skb, offsets.skb_head)?;
    let network_header = read::<u16>(skb, offsets.skb_network_header)?;
    Some(PacketId::of(read(head, network_header.into())?))
}

/// Reads kernel memory, which may be gone by now.
#[inline(always)]
fn read<T>(address: u64, offset: u32) -> Option<T> {
    // SAFETY: the helper accepts any address, and returns an error if it cannot read there. All types here are numbers.
    unsafe { bpf_probe_read_kernel::<T>((address + u64::from(offset)) as *const T) }.ok()
}

/// Whether this CPU follows this packet. Packets are chosen at random, so that the choice cannot follow a pattern in the traffic.
#[inline(always)]
fn is_chosen() -> bool {
    let every = config::residence_every();
    let Some(until) = maps::until_followed() else { return false };
    let left = until.read();
    if left > 1 {
        until.write(left - 1);
        return false;
    }
    // From 1 to `2 * every - 1`, whose mean is `every`.
    // SAFETY: this helper only returns a number.
    until.write(1 + unsafe { bpf_get_prandom_u32() } % (2 * every - 1).max(1));
    // `left` is 0 only for the first packet, which starts the countdown.
    left == 1 || every == 1
}

/// The device of a transmit queue.
struct Device {
    interface_id: u16,
    mtu: u32,
}

impl Device {
    /// Reads the device, if it is watched. Not from the packet: in a tree of packets, the tree's node takes the place
    /// of the packet's device.
    #[inline(always)]
    fn of(queue: u64) -> Option<Self> {
        let offsets = config::offsets();
        let dev = read::<u64>(queue, offsets.queue_dev)?;
        let ifindex = read::<u32>(dev, offsets.dev_ifindex)?;
        let net = read::<u64>(dev, offsets.dev_net)?;
        // Another network namespace may use the same ifindex.
        if read::<u32>(net, offsets.net_inum)? != offsets.namespace {
            return None;
        }
        let interface_id = maps::interface(ifindex)?.at(field!(Interface, id)).read();
        Some(Self { interface_id, mtu: read::<u32>(dev, offsets.dev_mtu)? })
    }
}

/// A packet that is followed, as an entry has it.
#[derive(Clone, Copy)]
struct Packet {
    /// When it was enqueued, ns; 0 in a free entry.
    time: u64,
    /// Its address.
    skb: u64,
    content: u64,
    owner: ResidenceOwner,
}

impl Packet {
    /// Whether an entry follows a packet at this address.
    #[inline(always)]
    fn is_at(self, skb: u64) -> bool {
        self.time != 0 && self.skb == skb
    }

    /// Whether both are the same packet, in two entries.
    #[inline(always)]
    fn is(self, other: Self) -> bool {
        self.time != 0 && self.time == other.time && self.skb == other.skb
    }

    /// Whether the packet left by the interface that a transmit queue belongs to.
    #[inline(always)]
    fn is_of(self, queue: u64) -> bool {
        Device::of(queue).is_some_and(|device| device.interface_id == self.owner.interface_id())
    }
}

/// An entry for a packet that is followed.
#[derive(Clone, Copy)]
struct Entry(Shared<Followed>);

impl Entry {
    /// Calls `then` with the entry of a packet, if the packet is followed. An `Option` would not do: where it is `None`,
    /// the verifier treats its payload as uninitialised.
    #[inline(always)]
    fn with(skb: u64, then: impl FnOnce(Self, Packet)) {
        let Some([one, other]) = Self::both(skb) else { return };
        let is_one = one.holds(skb);
        if !is_one && !other.holds(skb) {
            return;
        }
        let entry = if is_one { one } else { other };
        let packet = entry.read();
        if packet.is_at(skb) {
            then(entry, packet);
        }
    }

    /// Returns an entry for a packet that is not followed yet. If both of its entries are taken, the packet of the older
    /// one is given up.
    #[inline(always)]
    fn vacant(skb: u64) -> Option<Self> {
        let [one, other] = Self::both(skb)?;
        let older = if one.time() <= other.time() { one } else { other };
        let packet = older.read();
        if packet.time != 0 {
            older.give_up(packet, field!(Residence, replaced));
        }
        Some(older)
    }

    /// Returns the two entries that a packet can be in.
    #[inline(always)]
    fn both(skb: u64) -> Option<[Self; 2]> {
        // An `sk_buff` begins at a cache line.
        let hash = (skb >> 6).wrapping_mul(GOLDEN_RATIO);
        let pair = maps::followed((hash >> (u64::BITS - FOLLOWED_PAIRS.ilog2())) as u32)?;
        Some([Self(pair.element(0)), Self(pair.element(1))])
    }

    /// Returns the entry of the super-packet that is looked for by what it carries.
    #[inline(always)]
    fn super_packet() -> Option<Self> {
        Some(Self(maps::followed(FOLLOWED_PAIRS)?.element(0)))
    }

    /// Writes a packet into the entry.
    #[inline(always)]
    fn follow(self, skb: u64, content: u64, ResidenceOwner(owner): ResidenceOwner, now: u64) {
        let Self(entry) = self;
        entry.at(field!(Followed, skb)).write(0);
        entry.at(field!(Followed, time)).write(now);
        entry.at(field!(Followed, content)).write(content ^ now);
        entry.at(field!(Followed, owner)).write(owner ^ now);
        entry.at(field!(Followed, skb)).write(skb ^ now);
    }

    #[inline(always)]
    fn time(self) -> u64 {
        self.0.at(field!(Followed, time)).read()
    }

    /// Whether the entry seems to follow a packet at this address: true if [`Packet::is_at`] may be.
    #[inline(always)]
    fn holds(self, skb: u64) -> bool {
        self.0.at(field!(Followed, skb)).read() ^ self.time() == skb
    }

    /// Reads the packet in the entry. The time is read once, and the address last, because it is written first and last: while
    /// another CPU changes the entry, it fits no packet.
    #[inline(always)]
    fn read(self) -> Packet {
        let Self(entry) = self;
        let time = entry.at(field!(Followed, time)).read();
        let content = entry.at(field!(Followed, content)).read() ^ time;
        let owner = ResidenceOwner(entry.at(field!(Followed, owner)).read() ^ time);
        let skb = entry.at(field!(Followed, skb)).read() ^ time;
        Packet { time, skb, content, owner }
    }

    #[inline(always)]
    fn free(self) {
        self.0.at(field!(Followed, skb)).write(0);
        self.0.at(field!(Followed, time)).write(0);
    }

    /// Frees the entry without a time, and counts the packet as lost.
    #[inline(always)]
    fn lose(self, packet: Packet, counter: Field<Residence, u64>) {
        self.free();
        if let Some(residence) = maps::residence(Part::Queue.index(packet.owner.interface_id())) {
            residence.at(counter).add(1);
        }
    }

    /// The same, but does not count the packet if the entry of super-packets follows it, too.
    #[inline(always)]
    fn give_up(self, packet: Packet, counter: Field<Residence, u64>) {
        if let Some(super_packet) = Self::super_packet()
            && super_packet.read().is(packet)
        {
            self.free();
            return;
        }
        self.lose(packet, counter);
    }

    /// Makes room for another super-packet. Counts this one as lost, unless its own entry still follows it.
    #[inline(always)]
    fn forget(self, packet: Packet) {
        if packet.time == 0 {
            return;
        }
        let mut has_entry = false;
        Self::with(packet.skb, |_, own| has_entry = own.is(packet));
        if !has_entry {
            self.lose(packet, field!(Residence, replaced));
        }
    }
}
