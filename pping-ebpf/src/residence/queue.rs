//! Queueing time: from the tracepoint `qdisc_enqueue` to `qdisc_dequeue`. Only some packets, chosen at random, are followed.
//!
//! A packet is known by the address of its `sk_buff`, which the kernel gives to another packet as soon as it is free.
//! Three things keep the other packet from getting a time: an enqueue ends whatever was followed at this address, a
//! drop (`kfree_skb`) does so too, and the packet must carry the same at both ends.
//!
//! A qdisc that splits super-packets (CAKE, or a token bucket that is too small for one) frees them before the kernel
//! reports them as enqueued, and dequeues other packets. The first of these carries the same as the super-packet. So
//! the latest super-packet that is followed is also looked for by what it carries, among all packets that are dequeued.

use aya_ebpf::{
    helpers::{bpf_get_prandom_u32, bpf_ktime_get_ns},
    programs::RawTracePointContext,
};
use pping_common::{
    abi::{Followed, Interface, Owner, Part, Residence, SeriesSelector},
    limits::{FOLLOWED_PAIRS, MAX_BULK, SECOND},
};

use super::{
    SPREAD,
    content::{Content, read},
    count,
};
use crate::{
    aggregate, config, maps,
    shared::{Field, Shared, field},
};

/// How long a super-packet is looked for before another one may replace it, ns.
const AWAITED_FOR: u64 = SECOND;

/// `qdisc_enqueue(qdisc, txq, skb)`: the root qdisc has taken a packet.
#[inline(always)]
pub fn enqueued(ctx: &RawTracePointContext) {
    let (queue, skb) = (ctx.arg::<u64>(1), ctx.arg::<u64>(2));
    // The end of an earlier packet at this address was not seen, and its memory now has another packet.
    Entry::with(skb, |entry| entry.lose(field!(Residence, replaced)));
    if !is_due() {
        return;
    }
    let Some(Device { interface_id, mtu }) = Device::of(queue) else { return };
    let Some(content) = Content::read(skb) else { return };
    let owner = owner(interface_id, &content);
    let Content { hash, len, .. } = content;
    let Some(entry) = Entry::vacant(skb) else { return };
    if let Some(residence) = maps::residence(Part::Queue.index(interface_id)) {
        residence.at(field!(Residence, followed)).add(1);
    }
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    entry.follow(skb, hash, owner, now);
    let is_super_packet = len == 0 || u32::from(len) > mtu;
    if is_super_packet && let Some(awaited) = Entry::awaited() {
        let since = awaited.time();
        if since == 0 || now - since > AWAITED_FOR {
            awaited.follow(skb, hash, owner, now);
        }
    }
}

/// Returns what the time of a packet is added to: the interface, and the series of the packet's group if there are groups.
#[inline(always)]
fn owner(interface_id: u16, content: &Content) -> Owner {
    let owner = Owner::of_interface(interface_id);
    if !config::grouping().is_on() {
        return owner;
    }
    let Some(target) = maps::queue_target() else { return owner };
    let selector = SeriesSelector::of_queue(interface_id, content.from, content.to, content.dscp);
    match aggregate::of_queue(&selector, target) {
        Some((index, life)) => owner.with_series(index, life),
        None => owner,
    }
}

/// `qdisc_dequeue(qdisc, txq, packets, skb)`: the root qdisc hands packets over, linked in a list.
#[inline(always)]
pub fn dequeued(ctx: &RawTracePointContext) {
    let (queue, packets, mut skb) = (ctx.arg::<u64>(1), ctx.arg::<u64>(2) as u32, ctx.arg::<u64>(3));
    let Some(awaited) = Entry::awaited() else { return };
    for position in 1..=MAX_BULK {
        if skb == 0 {
            return;
        }
        hand_over(queue, skb, awaited);
        if position >= packets {
            return;
        }
        let Some(next) = read::<u64>(skb, config::offsets().skb_next) else { return };
        skb = next;
    }
}

/// Takes the time of a packet that the qdisc hands over, if it was followed.
#[inline(always)]
fn hand_over(queue: u64, skb: u64, awaited: Entry) {
    let Some([one, other]) = Entry::both(skb) else { return };
    let (is_one, is_other) = (one.is_of(skb), other.is_of(skb));
    if !is_one && !is_other && awaited.time() == 0 {
        return;
    }
    let Some(Content { hash, .. }) = Content::read(skb) else { return };
    if is_one || is_other {
        if awaited.is_of(skb) {
            // The super-packet was not split.
            awaited.free();
        }
        let entry = if is_one { one } else { other };
        entry.end(hash);
    } else if hash == awaited.word(field!(Followed, content)) && awaited.is_at(queue) {
        // The super-packet is gone, but its own entry has its time.
        let whole = awaited.word(field!(Followed, skb));
        awaited.free();
        Entry::with(whole, |entry| entry.end(hash));
    }
}

/// `kfree_skb(skb, ..)`: the kernel drops a packet, in a queue or elsewhere.
#[inline(always)]
pub fn freed(ctx: &RawTracePointContext) {
    let skb = ctx.arg::<u64>(0);
    Entry::with(skb, |entry| {
        entry.lose(field!(Residence, dropped));
        if let Some(awaited) = Entry::awaited()
            && awaited.is_of(skb)
        {
            awaited.free();
        }
    });
}

/// Whether this CPU follows this packet. Packets are chosen at random, so that the choice cannot follow a pattern in the traffic.
#[inline(always)]
fn is_due() -> bool {
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

/// The entry of a packet that may be followed.
#[derive(Clone, Copy)]
struct Entry(Shared<Followed>);

impl Entry {
    /// Calls `then` with the entry of a packet, if the packet is followed. Returns no `Option`, because to the verifier
    /// the payload of a `None` is not initialised.
    #[inline(always)]
    fn with(skb: u64, then: impl FnOnce(Self)) {
        let Some([one, other]) = Self::both(skb) else { return };
        let is_one = one.is_of(skb);
        if is_one || other.is_of(skb) {
            then(if is_one { one } else { other });
        }
    }

    /// Returns an entry for a packet that is not followed yet. If both of its entries are taken, the older packet is lost.
    #[inline(always)]
    fn vacant(skb: u64) -> Option<Self> {
        let [one, other] = Self::both(skb)?;
        let older = if one.time() <= other.time() { one } else { other };
        if older.time() != 0 {
            older.lose(field!(Residence, replaced));
        }
        Some(older)
    }

    /// Returns the two entries in which a packet can be.
    #[inline(always)]
    fn both(skb: u64) -> Option<[Self; 2]> {
        // An `sk_buff` begins at a cache line.
        let hash = (skb >> 6).wrapping_mul(SPREAD);
        let pair = maps::followed((hash >> (u64::BITS - FOLLOWED_PAIRS.ilog2())) as u32)?;
        Some([Self(pair.element(0)), Self(pair.element(1))])
    }

    /// Returns the entry of the super-packet that is looked for by what it carries. That packet has an entry of its own, too.
    #[inline(always)]
    fn awaited() -> Option<Self> {
        Some(Self(maps::followed(FOLLOWED_PAIRS)?.element(0)))
    }

    /// Writes a packet to the entry.
    #[inline(always)]
    fn follow(self, skb: u64, content: u64, Owner(owner): Owner, now: u64) {
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

    /// Returns a word of the entry, without the time that it is combined with.
    #[inline(always)]
    fn word(self, field: Field<Followed, u64>) -> u64 {
        self.0.at(field).read() ^ self.time()
    }

    #[inline(always)]
    fn owner(self) -> Owner {
        Owner(self.word(field!(Followed, owner)))
    }

    /// Whether this is the entry of this packet.
    #[inline(always)]
    fn is_of(self, skb: u64) -> bool {
        self.word(field!(Followed, skb)) == skb
    }

    /// Whether the followed packet belongs to the interface of this transmit queue.
    #[inline(always)]
    fn is_at(self, queue: u64) -> bool {
        Device::of(queue).is_some_and(|device| device.interface_id == self.owner().interface_id())
    }

    /// Takes the time of the packet, if it still carries `content`, and stops following it.
    #[inline(always)]
    fn end(self, content: u64) {
        // SAFETY: this helper only reads a clock.
        let now = unsafe { bpf_ktime_get_ns() };
        let time = self.time();
        if time > now || content != self.word(field!(Followed, content)) {
            self.lose(field!(Residence, replaced));
            return;
        }
        let (owner, time) = (self.owner(), now - time);
        self.free();
        count(Part::Queue, owner.interface_id(), time);
        if config::grouping().is_on()
            && owner.has_series()
            && let Some(counters) = maps::counters(owner.interface_id())
            && let Some(target) = maps::queue_target()
        {
            aggregate::add_to(owner.series(), counters, target, time);
        }
    }

    #[inline(always)]
    fn free(self) {
        self.0.at(field!(Followed, skb)).write(0);
        self.0.at(field!(Followed, time)).write(0);
    }

    /// Frees the entry without taking a time, and counts that.
    #[inline(always)]
    fn lose(self, counter: Field<Residence, u64>) {
        let interface_id = self.owner().interface_id();
        self.free();
        if let Some(residence) = maps::residence(Part::Queue.index(interface_id)) {
            residence.at(counter).add(1);
        }
    }
}
