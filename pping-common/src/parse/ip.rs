//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, down to the transport header.

use super::{
    address::{Family, IpAddress},
    frame::Frame,
    protocol::{ICMP, ICMPV6, Protocol, TCP, UDP},
    untracked::Untracked,
};
use crate::{bytes::Bytes, limits::MAX_EXTENSION_HEADERS};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
/// The authentication header (RFC 4302), which does not encrypt what follows.
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The offset field of an IPv4 fragment, in units of 8 bytes.
const IPV4_FRAGMENT_OFFSET: u16 = 0x1fff;
/// The same in an IPv6 fragment header, where the low bits are flags.
const IPV6_FRAGMENT_OFFSET: u16 = 0xfff8;

/// Whether the bytes at `start` can be an IP header of this family: its length field must go to the end of the frame,
/// except for what Ethernet may add there.
#[inline(always)]
pub(super) fn is_plausible<O: Bytes + ?Sized>(
    bytes: &O,
    start: usize,
    family: Family,
) -> Result<bool, Untracked> {
    /// The most bytes that fill up a frame. It has room for a checksum or a trailer of a switch.
    const MAX_PADDING: usize = 46;
    let header: [u8; 8] = bytes.read(start).ok_or(Untracked::Truncated)?;
    let (has_header, len) = match family {
        Family::V4 => (header[0] & 0xf >= 5, usize::from(u16::from_be_bytes([header[2], header[3]]))),
        Family::V6 => (true, IPV6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]))),
    };
    Ok(has_header && bytes.frame_len().wrapping_sub(start + len) <= MAX_PADDING)
}

#[inline(always)]
pub(super) fn parse_v4<O: Bytes + ?Sized>(
    bytes: &O,
    start: usize,
    frame: &mut Frame,
) -> Result<(), Untracked> {
    frame.protocol = Protocol::Other;
    let header: [u8; IPV4_HEADER] = bytes.read(start).ok_or(Untracked::Truncated)?;
    let header_len = usize::from(header[0] & 0xf) * 4;
    if header[0] >> 4 != 4 || header_len < IPV4_HEADER {
        return Err(Untracked::Malformed);
    }
    frame.traffic_class = header[1];
    frame.next_header = header[9];
    frame.protocol = name_v4(header[9]);
    if u16::from_be_bytes([header[6], header[7]]) & IPV4_FRAGMENT_OFFSET != 0 {
        return Err(Untracked::Fragment);
    }
    frame.source = IpAddress::mapped([header[12], header[13], header[14], header[15]]);
    frame.destination = IpAddress::mapped([header[16], header[17], header[18], header[19]]);
    let total_len = match u16::from_be_bytes([header[2], header[3]]) {
        // A packet that is too long for the field, which the kernel will split later (BIG TCP).
        0 => bytes.frame_len().saturating_sub(start),
        len => usize::from(len),
    };
    let mut offset = start + header_len;
    if frame.next_header == AUTHENTICATION {
        let [next, words] = bytes.read(offset).ok_or(Untracked::Truncated)?;
        frame.next_header = next;
        frame.protocol = name_v4(next);
        offset += authentication_len(words);
    }
    frame.transport_offset = offset as u32;
    frame.transport_len = (start + total_len).checked_sub(offset).ok_or(Untracked::Malformed)? as u32;
    Ok(())
}

#[inline(always)]
pub(super) fn parse_v6<O: Bytes + ?Sized>(
    bytes: &O,
    start: usize,
    frame: &mut Frame,
) -> Result<(), Untracked> {
    frame.protocol = Protocol::Other;
    let first: u32 = u32::from_be_bytes(bytes.read(start).ok_or(Untracked::Truncated)?);
    if first >> 28 != 6 {
        return Err(Untracked::Malformed);
    }
    frame.traffic_class = (first >> 20) as u8;
    let [len_high, len_low, next, _] = bytes.read(start + 4).ok_or(Untracked::Truncated)?;
    frame.source = IpAddress::from_bytes(bytes.read(start + 8).ok_or(Untracked::Truncated)?);
    frame.destination = IpAddress::from_bytes(bytes.read(start + 24).ok_or(Untracked::Truncated)?);
    let end = match u16::from_be_bytes([len_high, len_low]) {
        // A jumbogram, which has its length elsewhere (RFC 2675, BIG TCP).
        0 => bytes.frame_len(),
        len => start + IPV6_HEADER + usize::from(len),
    };
    let offset = skip_extension_headers(bytes, next, start + IPV6_HEADER, frame)?;
    frame.transport_offset = offset as u32;
    frame.transport_len = end.checked_sub(offset).ok_or(Untracked::Malformed)? as u32;
    Ok(())
}

/// Walks the chain of extension headers (RFC 8200, 4.1) to the transport header. Returns its offset, and notes its protocol.
#[inline(always)]
fn skip_extension_headers<O: Bytes + ?Sized>(
    bytes: &O,
    mut next: u8,
    mut offset: usize,
    frame: &mut Frame,
) -> Result<usize, Untracked> {
    // One round more than the number of headers, to see what the last one announces.
    for _ in 0..=MAX_EXTENSION_HEADERS {
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HIP | SHIM6 => {
                let [following, len] = bytes.read(offset).ok_or(Untracked::Truncated)?;
                next = following;
                offset += (usize::from(len) + 1) * 8;
            }
            AUTHENTICATION => {
                let [following, words] = bytes.read(offset).ok_or(Untracked::Truncated)?;
                next = following;
                offset += authentication_len(words);
            }
            FRAGMENT => {
                let [following, _, high, low] = bytes.read(offset).ok_or(Untracked::Truncated)?;
                next = following;
                offset += 8;
                if u16::from_be_bytes([high, low]) & IPV6_FRAGMENT_OFFSET != 0 {
                    frame.protocol = name_v6(next);
                    return Err(Untracked::Fragment);
                }
            }
            _ => {
                frame.next_header = next;
                frame.protocol = name_v6(next);
                return Ok(offset);
            }
        }
    }
    Err(Untracked::Unsupported)
}

/// Returns the length of an authentication header, which counts words, less two (RFC 4302, 2.2).
#[inline(always)]
fn authentication_len(words: u8) -> usize {
    (usize::from(words) + 2) * 4
}

#[inline(always)]
pub(super) fn name_v4(number: u8) -> Protocol {
    match number {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        ICMP => Protocol::Icmp,
        _ => Protocol::Other,
    }
}

#[inline(always)]
pub(super) fn name_v6(number: u8) -> Protocol {
    match number {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        ICMPV6 => Protocol::Icmpv6,
        _ => Protocol::Other,
    }
}
