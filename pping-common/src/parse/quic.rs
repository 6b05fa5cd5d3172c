//! QUIC packets, as far as the invariants (RFC 8999) and the first byte describe them.

use super::untracked::Untracked;
use crate::{bytes::Bytes, hash::mix};

/// Bytes of the shortest packet: one of header, and those that header protection needs for its sample (RFC 9001, 5.4.2).
const SHORTEST: usize = 21;
/// Bytes of the longest connection ID (RFC 9000, 17.2).
const LONGEST_ID: usize = 20;
/// Bytes before the destination connection ID: the first byte, the version and the length.
const BEFORE_IDS: usize = 6;

/// Bytes of each version that version negotiation lists. It lists at least one, and no part of one (RFC 8999, 6).
const LISTED_VERSION: usize = 4;
/// Bytes of the shortest version negotiation. Its source ID is the destination ID of a client's first Initial.
const SHORTEST_NEGOTIATION: usize = BEFORE_IDS + 1 + SHORTEST_FIRST_ID + LISTED_VERSION;

/// Bytes of the shortest datagram with a client's first Initial (RFC 9000, 14.1).
const SHORTEST_FIRST: usize = 1200;
/// Bytes of the shortest destination ID of a client's first Initial (RFC 9000, 7.2).
const SHORTEST_FIRST_ID: usize = 8;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
const TYPE: u8 = 0x30;
/// The type of a Retry, if that of an Initial is 0.
const RETRY: u8 = 0x30;

const VERSION_1: u32 = 1;
/// RFC 9369, 3.1.
const VERSION_2: u32 = 0x6b33_43cf;
/// The type of an Initial in version 2 (RFC 9369, 3.2). In other versions it is 0.
const INITIAL_2: u8 = 0x10;
/// The first draft that has the spin bit and the fixed bit in their present positions.
const DRAFT_17: u32 = 0xff00_0011;
/// The last draft that has both ID lengths in one byte.
const DRAFT_21: u32 = 0xff00_0015;
/// The last draft.
const DRAFT_34: u32 = 0xff00_0022;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum QuicForm {
    /// A short header.
    Short,
    /// The long header of a 0-RTT or a Handshake packet.
    Long,
    /// The long header of an Initial or a Retry, or any long header of an unknown version.
    Initial,
    /// Version negotiation: a server offers other versions.
    Negotiation,
}

/// The first QUIC packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quic {
    /// The kind.
    pub form: QuicForm,
    /// The spin bit of a short header (RFC 9000, 17.4).
    pub spin: bool,
    /// Whether the fixed bit is cleared, as an endpoint may do if its peer agreed (RFC 9287). Such a packet is QUIC only in a
    /// flow that is recognised as QUIC.
    pub is_greased: bool,
    /// Whether a flow may begin with this packet: only with a client's first Initial. If not, the reason to count the packet
    /// under if it belongs to no flow.
    pub begins: Result<(), Untracked>,
    /// Whether the version of a long header is known or greased (RFC 9000, 15).
    pub is_known: bool,
    /// The version of a long header.
    pub version: u32,
    /// A digest of the source connection ID of a long header; 0 if the ID is empty, and in version negotiation.
    pub source_id: u32,
    /// A digest of its destination connection ID; 0 if the ID is empty.
    pub destination_id: u32,
}

impl Quic {
    pub(crate) const EMPTY: Self = Self {
        form: QuicForm::Short,
        spin: false,
        is_greased: false,
        begins: Err(Untracked::NoFlow),
        is_known: false,
        version: 0,
        source_id: 0,
        destination_id: 0,
    };
}

/// Parses the packet at `offset` of `len` bytes. It is unsupported if it cannot be QUIC. Of packets other than version
/// negotiation, at least as many bytes as the longest ID has follow where the source ID begins.
#[inline(always)]
pub(super) fn parse<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    quic: &mut Quic,
) -> Result<(), Untracked> {
    if len < SHORTEST_NEGOTIATION {
        return Err(Untracked::Unsupported);
    }
    let head: [u8; 8] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    let [first, version @ .., lengths, _, _] = head;
    let version = u32::from_be_bytes(version);
    let is_negotiation = first & LONG != 0 && version == 0;
    if len < SHORTEST && !is_negotiation {
        return Err(Untracked::Unsupported);
    }
    let is_greased = first & FIXED == 0;
    quic.is_greased = is_greased;
    if first & LONG == 0 {
        quic.form = QuicForm::Short;
        quic.spin = first & SPIN != 0;
        quic.begins = Err(if is_greased { Untracked::Unsupported } else { Untracked::NoFlow });
        return Ok(());
    }
    let is_known = is_known(version);
    // Version negotiation has no fixed bit. Only known versions have the extension that clears it.
    if is_greased && !is_known && !is_negotiation {
        return Err(Untracked::Unsupported);
    }
    let is_packed = is_between(version, DRAFT_17, DRAFT_21);
    let destination_len = usize::from(if is_packed { packed_len(lengths >> 4) } else { lengths });
    if destination_len > LONGEST_ID {
        return Err(Untracked::Unsupported);
    }
    let destination_len = O::bounded::<32>(destination_len);
    let behind = BEFORE_IDS + destination_len;
    let source_at = O::bounded::<64>(behind + usize::from(!is_packed));
    if len < source_at + if is_negotiation { SHORTEST_FIRST_ID + LISTED_VERSION } else { LONGEST_ID } {
        return Err(Untracked::Unsupported);
    }
    let [separate, _]: [u8; 2] = bytes.read(offset + behind).ok_or(Untracked::Truncated)?;
    let source_len = usize::from(if is_packed { packed_len(lengths & 0x0f) } else { separate });
    if source_len > LONGEST_ID || len < source_at + source_len {
        return Err(Untracked::Unsupported);
    }
    if is_negotiation {
        let listed = len - source_at - source_len;
        if source_len < SHORTEST_FIRST_ID || listed == 0 || !listed.is_multiple_of(LISTED_VERSION) {
            return Err(Untracked::Unsupported);
        }
    }
    // 0 is an Initial and 0x30 a Retry, in either version.
    let kind = first.wrapping_sub(if version == VERSION_2 { INITIAL_2 } else { 0 }) & TYPE;
    quic.form = if is_negotiation {
        QuicForm::Negotiation
    } else if !is_known || kind == 0 || kind == RETRY {
        QuicForm::Initial
    } else {
        QuicForm::Long
    };
    let is_first = len >= SHORTEST_FIRST && destination_len >= SHORTEST_FIRST_ID;
    quic.begins = if is_negotiation || is_known && !is_greased && !(is_first && kind == 0) {
        Err(Untracked::NoFlow)
    } else if is_first && !is_greased {
        Ok(())
    } else {
        Err(Untracked::Unsupported)
    };
    quic.is_greased = is_greased && !is_negotiation;
    quic.is_known = is_known;
    quic.version = version;
    let destination_at = offset + BEFORE_IDS;
    // Only version negotiation can be that short, and its destination ID has at most six bytes then.
    let destination = if len < BEFORE_IDS + LONGEST_ID {
        short_id(bytes, destination_at)
    } else {
        id(bytes, destination_at)
    };
    quic.destination_id = digest(destination.ok_or(Untracked::Truncated)?, destination_len);
    // No rule needs the source ID of version negotiation, behind which the packet may end.
    if !is_negotiation {
        let source = id(bytes, offset + source_at);
        quic.source_id = digest(source.ok_or(Untracked::Truncated)?, source_len);
    }
    Ok(())
}

#[inline(always)]
fn is_known(version: u32) -> bool {
    version == VERSION_1
        || version == VERSION_2
        || is_between(version, DRAFT_17, DRAFT_34)
        // RFC 9000, 15.
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

#[inline(always)]
fn is_between(version: u32, first: u32, last: u32) -> bool {
    version.wrapping_sub(first) <= last - first
}

/// Returns the length that four bits encode (draft-ietf-quic-transport-17, 17.2).
#[inline(always)]
fn packed_len(bits: u8) -> u8 {
    if bits == 0 { 0 } else { bits + 3 }
}

/// Returns the bytes of the longest ID at `offset`, of which the frame must have all.
#[inline(always)]
fn id<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Option<[u64; 3]> {
    Some([
        u64::from_be_bytes(bytes.read(offset)?),
        u64::from_be_bytes(bytes.read(offset + 8)?),
        u64::from(u32::from_be_bytes(bytes.read(offset + 16)?)) << 32,
    ])
}

/// Returns the bytes of an ID of at most eight bytes at `offset`, and as many zeros as [`id`] has bytes.
#[inline(always)]
fn short_id<O: Bytes + ?Sized>(bytes: &O, offset: usize) -> Option<[u64; 3]> {
    Some([u64::from_be_bytes(bytes.read(offset)?), 0, 0])
}

/// Returns a digest of the ID of `len` bytes, at most [`LONGEST_ID`], with which `words` begin. It is 0 for an empty ID
/// only. The function has no loop and hardly a branch, because the verifier would follow each of them.
#[inline(always)]
fn digest(words: [u64; 3], len: usize) -> u32 {
    let len = len as u64 & 31;
    // The masks are all ones if the ID has at least 8 bytes, and at least 16. `part` masks the word in which the ID ends.
    let first_is_full = 0_u64.wrapping_sub((len + 24) >> 5);
    let second_is_full = 0_u64.wrapping_sub((len + 16) >> 5);
    let part = !(u64::MAX >> (8 * (len & 7)));
    let masks = [first_is_full | part, second_is_full | first_is_full & part, second_is_full & part];
    let mut digest = len;
    digest = mix(digest, words[0] & masks[0]);
    digest = mix(digest, words[1] & masks[1]);
    digest = mix(digest, words[2] & masks[2]);
    let digest = (digest >> 32) as u32 | 1;
    if len == 0 { 0 } else { digest }
}
