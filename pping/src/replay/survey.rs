//! A look at the first packets of a capture that finds out why it may give few samples: flows whose directions were captured
//! apart, and packets that were captured twice.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hasher as _},
    io,
};

use foldhash::fast::RandomState;
use pping_common::parse::{Frame, IpAddress};

use crate::capture::{Capture, Packet};

/// How many packets are looked at: enough to tell how a capture was made, and little beside reading it.
const PACKETS: u32 = 1 << 16;

/// How long after a packet its copy may come, ns. A mirror of several ports copies a packet where it enters and where it leaves.
const COPY_WINDOW: u64 = 2_000_000;

/// How many packets before it a copy is looked for among; a power of two.
const RECENT: usize = 1 << 12;

/// Bytes of the transport header and its payload that a copy has in common.
const COMPARED: usize = 64;

/// The highest number of conversations that are followed.
const CONVERSATIONS: usize = 1 << 14;

/// Interfaces with higher ids are not told apart.
const INTERFACES: u32 = u64::BITS;

/// The least copies, and the least share of them, that are no chance.
const LEAST_COPIES: u32 = 4;
const COPIES_SHARE: u32 = 5;

/// An endpoint of a conversation.
type End = ([u64; 2], u16);

/// Two endpoints, the lower one first, and the protocol between them.
type Conversation = (End, End, u8);

/// What the first packets show.
#[derive(Debug)]
pub struct Survey {
    /// Packets that are still to be looked at.
    left: u32,
    packets: u32,
    copies: u32,
    /// Whether any of them says in which direction it passed.
    has_directions: bool,
    hasher: RandomState,
    /// The latest packets: their hash and time.
    recent: Vec<(u64, u64)>,
    /// The interfaces by which the packets of each direction came, as a set of bits.
    conversations: HashMap<Conversation, [u64; 2], RandomState>,
}

/// What the first packets of a capture showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// The packets that were looked at: those that a method measures.
    pub packets: u32,
    /// Whether any of them says in which direction it passed.
    pub has_directions: bool,
    /// Packets that came a second time, if these are too many for chance.
    pub copies: Option<u32>,
    /// Flows and exchanges of these packets.
    pub conversations: usize,
    /// Those of which only one direction came.
    pub one_sided: usize,
    /// The two interfaces over which most are split, each with one direction, and the number of these.
    pub split: Option<([u16; 2], usize)>,
}

impl Surveyed {
    /// The names of the interfaces over which flows are split, each with one direction, if most of them are.
    pub(super) fn split_names(&self, capture: &Capture<impl io::Read>) -> Option<[String; 2]> {
        let (interfaces, flows) = self.split.filter(|(_, flows)| flows * 2 >= self.conversations)?;
        let name = |id| capture.interface_name(id).map_or_else(|| id.to_string(), |name| name.to_string());
        (flows > 0).then(|| interfaces.map(name))
    }
}

impl Default for Survey {
    fn default() -> Self {
        Self {
            left: PACKETS,
            packets: 0,
            copies: 0,
            has_directions: false,
            hasher: RandomState::default(),
            recent: vec![(0, 0); RECENT],
            conversations: HashMap::default(),
        }
    }
}

impl Survey {
    /// Looks at a packet that was parsed.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet<'_>, frame: &Frame) {
        if self.left > 0 {
            self.look_at(packet, frame);
        }
    }

    #[cold]
    fn look_at(&mut self, packet: &Packet<'_>, frame: &Frame) {
        self.left -= 1;
        if self.left == 0 {
            self.recent = Vec::new();
            return;
        }
        self.packets += 1;
        self.has_directions |= packet.direction.is_some();
        let (source_port, destination_port) = frame.transport.ports();
        let end = |IpAddress(words): IpAddress, port| (words, port);
        let (from, to) = (end(frame.source, source_port), end(frame.destination, destination_port));
        self.count_copy(packet, frame, (from, to));
        let is_from_low = from < to;
        let (low, high) = if is_from_low { (from, to) } else { (to, from) };
        let conversation = (low, high, frame.transport.number());
        if self.conversations.len() >= CONVERSATIONS && !self.conversations.contains_key(&conversation) {
            return;
        }
        let interfaces = &mut self.conversations.entry(conversation).or_default()[usize::from(is_from_low)];
        *interfaces |= 1 << u32::from(packet.interface).min(INTERFACES - 1);
    }

    fn count_copy(&mut self, packet: &Packet<'_>, frame: &Frame, (from, to): (End, End)) {
        let transport = frame.transport_bytes(packet.bytes.bytes);
        let mut hasher = self.hasher.build_hasher();
        for (words, port) in [from, to] {
            for word in words {
                hasher.write_u64(word);
            }
            hasher.write_u16(port);
        }
        hasher.write_u16(packet.interface);
        // What passes both hooks of an interface is no copy of a mirror, and counts once.
        hasher.write_u8(packet.direction.map_or(0, |direction| 1 + direction as u8));
        hasher.write_u16(frame.ipv4_identification(packet.bytes.bytes));
        hasher.write(transport.get(..COMPARED).unwrap_or(transport));
        let hash = hasher.finish();
        let Some(recent) = self.recent.get_mut(hash as usize % RECENT) else { return };
        if recent.0 == hash && packet.time.abs_diff(recent.1) <= COPY_WINDOW {
            self.copies += 1;
        }
        *recent = (hash, packet.time);
    }

    /// What the packets showed so far.
    pub fn outcome(&self) -> Surveyed {
        let sides = self.conversations.values();
        let one_sided = sides.clone().filter(|[one, other]| (*one == 0) != (*other == 0)).count();
        let mut pairs: HashMap<[u16; 2], usize> = HashMap::new();
        for [one, other] in sides {
            if one.is_power_of_two() && other.is_power_of_two() && one != other {
                let mut pair = [one, other].map(|interfaces| interfaces.trailing_zeros() as u16);
                pair.sort_unstable();
                *pairs.entry(pair).or_default() += 1;
            }
        }
        let is_by_chance = self.copies < LEAST_COPIES || self.copies < self.packets / COPIES_SHARE;
        Surveyed {
            packets: self.packets,
            has_directions: self.has_directions,
            copies: (!is_by_chance).then_some(self.copies),
            conversations: self.conversations.len(),
            one_sided,
            split: pairs.into_iter().max_by_key(|&(pair, count)| (count, pair)),
        }
    }
}
