//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, down to the transport.

use super::{Frame, Packet, Protocol, Transport, Untracked, icmp, tcp};
use crate::{limits::MAX_EXTENSION_HEADERS, octets::Octets};

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The offset field of an IPv4 fragment, in units of 8 octets.
const IPV4_FRAGMENT_OFFSET: u16 = 0x1fff;
/// The same in an IPv6 fragment header, where the low bits are flags.
const IPV6_FRAGMENT_OFFSET: u16 = 0xfff8;

/// An IPv4 address, its first octet the most significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ipv4(pub u32);

/// An IPv6 address in two halves, its first octet the most significant of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ipv6(pub [u64; 2]);

/// Where the transport header is, and how many octets belong to it and what follows.
struct Payload {
    protocol: u8,
    offset: usize,
    len: usize,
}

#[inline(always)]
pub(super) fn parse_v4<O: Octets + ?Sized>(
    octets: &O,
    offset: usize,
    frame: &mut Frame,
) -> Result<Packet<Ipv4>, Untracked> {
    frame.protocol = Protocol::Other;
    let header: [u8; IPV4_HEADER] = octets.read(offset).ok_or(Untracked::Truncated)?;
    let header_len = usize::from(header[0] & 0xf) * 4;
    if header[0] >> 4 != 4 || header_len < IPV4_HEADER {
        return Err(Untracked::Malformed);
    }
    frame.traffic_class = header[1];
    frame.protocol = match header[9] {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        ICMP => Protocol::Icmp,
        _ => Protocol::Other,
    };
    if u16::from_be_bytes([header[6], header[7]]) & IPV4_FRAGMENT_OFFSET != 0 {
        return Err(Untracked::Fragment);
    }
    let total_len = match u16::from_be_bytes([header[2], header[3]]) {
        // A segment that the kernel will cut up later, too long for the field (BIG TCP).
        0 => octets.frame_len().saturating_sub(offset),
        len => usize::from(len),
    };
    let payload = Payload {
        protocol: header[9],
        offset: offset + header_len,
        len: total_len.checked_sub(header_len).ok_or(Untracked::Malformed)?,
    };
    Ok(Packet {
        source: Ipv4(u32::from_be_bytes([header[12], header[13], header[14], header[15]])),
        destination: Ipv4(u32::from_be_bytes([header[16], header[17], header[18], header[19]])),
        transport: match payload.protocol {
            TCP => Transport::Tcp(tcp::parse(octets, payload.offset, payload.len)?),
            ICMP => Transport::Echo(icmp::parse_v4(octets, payload.offset, payload.len)?),
            _ => return Err(Untracked::Unsupported),
        },
    })
}

#[inline(always)]
pub(super) fn parse_v6<O: Octets + ?Sized>(
    octets: &O,
    start: usize,
    frame: &mut Frame,
) -> Result<Packet<Ipv6>, Untracked> {
    frame.protocol = Protocol::Other;
    let header: [u8; IPV6_HEADER] = octets.read(start).ok_or(Untracked::Truncated)?;
    if header[0] >> 4 != 6 {
        return Err(Untracked::Malformed);
    }
    frame.traffic_class = header[0] << 4 | header[1] >> 4;
    let end = match u16::from_be_bytes([header[4], header[5]]) {
        // A jumbogram, which says its length elsewhere (RFC 2675, BIG TCP).
        0 => octets.frame_len(),
        len => start + IPV6_HEADER + usize::from(len),
    };
    let (protocol, offset) = skip_extension_headers(octets, header[6], start + IPV6_HEADER, frame)?;
    let payload = Payload { protocol, offset, len: end.checked_sub(offset).ok_or(Untracked::Malformed)? };
    let source = address(octets, start + 8)?;
    let destination = address(octets, start + 24)?;
    Ok(Packet {
        source,
        destination,
        transport: match payload.protocol {
            TCP => Transport::Tcp(tcp::parse(octets, payload.offset, payload.len)?),
            ICMPV6 => Transport::Echo(icmp::parse_v6(octets, payload.offset, payload.len)?),
            _ => return Err(Untracked::Unsupported),
        },
    })
}

/// Walks the chain of extension headers (RFC 8200, 4.1) to the transport: its number and offset.
#[inline(always)]
fn skip_extension_headers<O: Octets + ?Sized>(
    octets: &O,
    mut next: u8,
    mut offset: usize,
    frame: &mut Frame,
) -> Result<(u8, usize), Untracked> {
    // One round more than there may be headers, to look at what the last one announces.
    for _ in 0..=MAX_EXTENSION_HEADERS {
        match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                let [following, len] = octets.read(offset).ok_or(Untracked::Truncated)?;
                next = following;
                offset += (usize::from(len) + 1) * 8;
            }
            FRAGMENT => {
                let [following, _, high, low] = octets.read(offset).ok_or(Untracked::Truncated)?;
                next = following;
                offset += 8;
                if u16::from_be_bytes([high, low]) & IPV6_FRAGMENT_OFFSET != 0 {
                    frame.protocol = name_v6(next);
                    return Err(Untracked::Fragment);
                }
            }
            _ => {
                frame.protocol = name_v6(next);
                return Ok((next, offset));
            }
        }
    }
    Err(Untracked::Unsupported)
}

#[inline(always)]
fn name_v6(number: u8) -> Protocol {
    match number {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        ICMPV6 => Protocol::Icmpv6,
        _ => Protocol::Other,
    }
}

#[inline(always)]
fn address<O: Octets + ?Sized>(octets: &O, offset: usize) -> Result<Ipv6, Untracked> {
    let octets: [u8; 16] = octets.read(offset).ok_or(Untracked::Truncated)?;
    let number = u128::from_be_bytes(octets);
    Ok(Ipv6([(number >> 64) as u64, number as u64]))
}
