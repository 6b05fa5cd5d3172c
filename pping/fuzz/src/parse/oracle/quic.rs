//! A second parser for QUIC packets.

use pping_common::parse::{self, QuicForm, Untracked};

/// A packet. Instead of the IDs themselves it has what can be told from their digests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Quic {
    Short {
        spin: bool,
        is_greased: bool,
        outside_of_flows: Untracked,
    },
    Long {
        form: QuicForm,
        version: u32,
        is_known: bool,
        is_greased: bool,
        begins: Begins,
        has_ids: [bool; 2],
    },
}

/// Bytes of the shortest packet but for version negotiation.
const SHORTEST: usize = 21;
/// Bytes of the shortest version negotiation: head, no destination ID, a source ID of eight bytes, one version.
const SHORTEST_NEGOTIATION: usize = 19;

type Begins = Result<(), Untracked>;

/// Parses the packet at the beginning of a payload of `len` bytes, of which `bytes` were captured (RFC 8999, RFC 9000, RFC
/// 9287, RFC 9369).
pub(super) fn parse(bytes: &[u8], len: usize) -> Option<Quic> {
    let first = *bytes.get(..8).filter(|_| len >= SHORTEST_NEGOTIATION)?.first()?;
    let (is_long, is_fixed) = (first & 0x80 != 0, first & 0x40 != 0);
    let is_negotiation = is_long && bytes[1..5] == [0; 4];
    if len < SHORTEST && !is_negotiation {
        return None;
    }
    if !is_long {
        let outside_of_flows = if is_fixed { Untracked::NoFlow } else { Untracked::Unsupported };
        return Some(Quic::Short { spin: first & 0x20 != 0, is_greased: !is_fixed, outside_of_flows });
    }
    let version = u32::from_be_bytes(*bytes[1..].first_chunk()?);
    // In these drafts both lengths are in one byte.
    let (destination, source, rest) = if (0xff00_0011..=0xff00_0015).contains(&version) {
        let unpack = |bits: u8| usize::from(bits) + if bits == 0 { 0 } else { 3 };
        (unpack(bytes[5] >> 4), unpack(bytes[5] & 15), 6)
    } else {
        let destination = usize::from(bytes[5]);
        (destination, usize::from(*bytes.get(6 + destination)?), 7)
    };
    if destination > 20 || source > 20 {
        return None;
    }
    if is_negotiation {
        // Behind the source ID, which was the destination ID of an Initial, is a list of versions.
        let listed = len.checked_sub(rest + destination + source).filter(|&listed| listed >= 4)?;
        // The destination ID is read with more bytes than it has, if that many are there.
        let read = (rest + destination + 1).max(6 + if len < 26 { 8 } else { 20 });
        if source < 8 || !listed.is_multiple_of(4) || read > bytes.len() {
            return None;
        }
    } else {
        // As many bytes as the longest ID are read where the source ID begins.
        let end = rest + destination + 20;
        if end > len || end > bytes.len() {
            return None;
        }
    }
    let is_reserved = version.to_be_bytes().iter().all(|byte| byte & 0xf == 0xa);
    let is_draft = (0xff00_0011..=0xff00_0022).contains(&version);
    let is_known = matches!(version, 1 | 0x6b33_43cf) || is_draft || is_reserved;
    if !is_fixed && version != 0 && !is_known {
        return None;
    }
    // Initial, 0-RTT, Handshake, Retry.
    let kind = (first >> 4 & 3).wrapping_sub(u8::from(version == 0x6b33_43cf)) & 3;
    let form = match (version, is_known, kind) {
        (0, ..) => QuicForm::Negotiation,
        (_, false, _) | (_, _, 0 | 3) => QuicForm::Initial,
        _ => QuicForm::Long,
    };
    let is_first = len >= 1200 && destination >= 8;
    let begins = match (version, is_known, is_fixed) {
        (0, ..) => Err(Untracked::NoFlow),
        (_, true, true) if is_first && kind == 0 => Ok(()),
        (_, false, true) if is_first => Ok(()),
        (_, true, true) => Err(Untracked::NoFlow),
        _ => Err(Untracked::Unsupported),
    };
    let is_greased = !is_fixed && version != 0;
    let has_ids = [destination != 0, source != 0 && !is_negotiation];
    Some(Quic::Long { form, version, is_known, is_greased, begins, has_ids })
}

impl Quic {
    /// Converts the parser's result.
    pub(super) fn of(quic: &parse::Quic) -> Self {
        let &parse::Quic { form, spin, is_greased, begins, is_known, version, source_id, destination_id } =
            quic;
        if form == QuicForm::Short {
            let outside_of_flows = begins.err().unwrap_or(Untracked::MapFull);
            return Self::Short { spin, is_greased, outside_of_flows };
        }
        let has_ids = [destination_id != 0, source_id != 0];
        Self::Long { form, version, is_known, is_greased, begins, has_ids }
    }
}
