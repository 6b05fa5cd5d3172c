//! UDP datagrams (RFC 768), as far as they can be measured.

use super::{
    dns::{self, Dns},
    protocol::{Kind, UDP},
    quic::{self, Quic},
    scope::Scope,
    untracked::Untracked,
};
use crate::{
    bytes::{Bytes, present},
    method::Method,
};

const HEADER: usize = 8;

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes of payload, by the IP header, but no more than the frame has.
    pub payload: u32,
    /// The DNS message, if it is one.
    pub dns: Dns,
    /// The QUIC packet, if it is one.
    pub quic: Quic,
}

impl Datagram {
    pub(super) const EMPTY: Self =
        Self { source_port: 0, destination_port: 0, payload: 0, dns: Dns::EMPTY, quic: Quic::EMPTY };

    /// The IP protocol number of UDP.
    pub const NUMBER: u8 = UDP;
}

/// Parses the datagram at `offset` that has `len` bytes including its header.
#[inline(always)]
pub(super) fn parse<O: Bytes + ?Sized>(
    bytes: &O,
    offset: usize,
    len: usize,
    scope: &Scope,
    kind: &mut Kind,
    datagram: &mut Datagram,
) -> Result<(), Untracked> {
    let methods = scope.methods;
    if !methods.has_udp() {
        return Err(Untracked::Unsupported);
    }
    let header: [u8; HEADER] = bytes.read(offset).ok_or(Untracked::Truncated)?;
    let payload = len.checked_sub(HEADER).ok_or(Untracked::Malformed)?;
    datagram.source_port = u16::from_be_bytes([header[0], header[1]]);
    datagram.destination_port = u16::from_be_bytes([header[2], header[3]]);
    datagram.payload = present(bytes, offset + HEADER, payload);
    let (from_server, to_server) =
        (scope.is_dns(datagram.source_port), scope.is_dns(datagram.destination_port));
    if methods.has(Method::Dns) && (from_server || to_server) {
        *kind = Kind::Dns;
        return dns::parse(bytes, offset + HEADER, payload, (from_server, to_server), &mut datagram.dns);
    }
    if methods.has_quic() {
        *kind = Kind::Quic;
        return quic::parse(bytes, offset + HEADER, payload, &mut datagram.quic);
    }
    Err(Untracked::Unsupported)
}
