//! The way of nearly all packets: segments that only have to be counted.
//!
//! What [`crate::track`] does with any packet is done here in one go with those that are [as nearly all are](Frame::usual), and
//! in registers: nothing is written to the scratch space. Before anything is counted it is known whether more is to be done. If so
//! nothing has happened, and the packet goes the long way.

use pping_common::{
    abi::{Hook, Interface},
    flow::{Flow, FlowKey, Ipv4, Ipv6, Noted, Side},
    octets::Octets as _,
    parse::{Frame, LinkType, Protocol},
    rtt::{Concern, Method},
};

use crate::{
    config,
    maps::{self, Flows},
    octets::Linear,
    table, track,
};

/// Where an Ethernet header says what follows, and what that is.
const ETHERTYPE: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// What became of a packet.
pub(crate) enum Way {
    /// It is unlike most, and nothing was done.
    Long,
    /// There is more to do about it than to count it, and nothing was done, but its frame was taken apart.
    FromFlow,
    /// It was counted, and that was all.
    Over,
}

/// Counts a packet, if that is all that there is to do about it.
#[inline(always)]
pub(crate) fn count(hook: Hook, interface: Interface, packet: &Linear) -> Way {
    let methods = config::rules().methods;
    // Where both numbers of TCP are timed there is more to do about most packets.
    if !methods.has_tcp() || methods.has_both() || interface.link_type() != LinkType::Ethernet {
        return Way::Long;
    }
    let Some(ethertype) = packet.read(ETHERTYPE) else { return Way::Long };
    match u16::from_be_bytes(ethertype) {
        IPV4 => count_family::<Ipv4>(hook, interface.place, packet),
        IPV6 => count_family::<Ipv6>(hook, interface.place, packet),
        _ => Way::Long,
    }
}

#[inline(always)]
fn count_family<A: Flows>(hook: Hook, place: u16, packet: &Linear) -> Way {
    let Some(frame) = Frame::usual::<A>(packet) else { return Way::Long };
    if count_frame::<A>(hook, place, packet.frame_len(), &frame) {
        return Way::Over;
    }
    let Some(scratch) = maps::scratch() else { return Way::Over };
    scratch.frame.copy_usual(&frame);
    maps::settle(&mut scratch.frame);
    Way::FromFlow
}

#[inline(always)]
fn count_frame<A: Flows>(hook: Hook, place: u16, len: usize, frame: &Frame) -> bool {
    // Segments without timestamps are counted as such where nothing is measured by them.
    if !frame.transport.segment.has_timestamps && !config::rules().methods.has(Method::TcpSeq) {
        return false;
    }
    let (key, from) = FlowKey::<A>::new(place, frame);
    let Some(entry) =
        table::places(&key).and_then(|places| table::find_and_see(&key, &places, maps::sweeps()))
    else {
        return false;
    };
    // SAFETY: a map value, valid for the program's run.
    let flow = unsafe { &raw mut (*entry).flow };
    let Some(noted) = look(flow, from, frame, || table::has_key(entry, &key)) else { return false };
    let Some(counters) = maps::counters(place) else { return false };
    track::count(flow, from, hook, frame, &noted);
    // SAFETY: this CPU's own counters, see `observe`.
    let counters = unsafe { &mut *counters };
    let at = hook as usize;
    counters.packets[at][Protocol::Tcp as usize] += 1;
    counters.bytes[at][Protocol::Tcp as usize] += len as u64;
    counters.ecn[at][usize::from(frame.traffic_class & 3)] += 1;
    counters.retransmissions[at] += u64::from(noted.is_retransmission);
    counters.overtaken[at] += u64::from(noted.is_overtaken);
    true
}

/// What a packet means for its flow, unless it may change more than counters.
#[inline(always)]
fn look(flow: *mut Flow, from: Side, frame: &Frame, is_there: impl FnOnce() -> bool) -> Option<Noted> {
    // SAFETY: a map value, valid for the program's run. Other CPUs may write to it meanwhile, but not so that a value read here
    // was never in it.
    let (noted, concern) = unsafe {
        let noted = (*flow).direction(from).look(&frame.transport, frame.traffic_class);
        (noted, (*flow).concerns(from, &frame.transport, &noted, config::rules()))
    };
    let is_all =
        concern == Concern::Nothing || track::is_spared(flow, from, concern, &frame.transport, is_there);
    is_all.then_some(noted)
}
