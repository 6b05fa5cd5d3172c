//! Tells copies of packets, as mirror ports of several interfaces show them.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use pping_common::{
    abi::Control,
    bytes::Bytes,
    copies::{Bucket, Passed},
};

use crate::{
    config,
    maps::{self, Scratch},
    shared::prelude::*,
};

/// Whether the packet that was parsed to scratch space is a copy. If not, remembers it.
///
/// If several CPUs get copies of a packet at the same moment, each takes its own for the first. A card spreads the packets of a port by
/// their addresses and ports, which copies share, so that one CPU gets them; those of two ports may come to two CPUs.
#[inline(always)]
pub(crate) fn is_copy<B: Bytes>(packet: &B, scratch: &mut Scratch) -> bool {
    let Some(control) = maps::control() else { return false };
    let secret = control.at(field!(Control, secret)).load();
    // SAFETY: this helper only reads a clock.
    let now = unsafe { bpf_ktime_get_ns() };
    let interface = scratch.packet.joined_id;
    let (frame, identity) = (&scratch.packet.frame, &mut scratch.packet.identity);
    let passed = Passed::new(frame, packet, interface, identity, secret, now);
    let Some(bucket) = maps::copies(passed.bucket()) else { return false };
    let packets = bucket.at(field!(Bucket, packets));
    let packet_at = |at| packets.element(at).read();
    let is_copy = passed.is_copy::<B>(config::copies_within(), packet_at);
    if !is_copy {
        passed.remember(packet_at, |at, packet| packets.element(at).write(packet));
    }
    is_copy
}
