//! Transport headers that can be measured.

use super::{
    icmp::Echo,
    protocol::{ICMP, Kind, TCP, UDP},
    tcp::Segment,
    udp::Datagram,
    untracked::Untracked,
};
use crate::method::Methods;

/// A transport header that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Which of the other fields is valid.
    pub kind: Kind,
    /// The TCP segment.
    pub segment: Segment,
    /// The ICMP or `ICMPv6` echo.
    pub echo: Echo,
    /// The UDP datagram.
    pub datagram: Datagram,
}

impl Transport {
    pub(crate) const EMPTY: Self =
        Self { kind: Kind::Tcp, segment: Segment::EMPTY, echo: Echo::EMPTY, datagram: Datagram::EMPTY };

    /// The IP protocol number. Echoes of both families have that of ICMP; their addresses distinguish them.
    #[inline(always)]
    pub fn number(&self) -> u8 {
        match self.kind {
            Kind::Tcp => TCP,
            Kind::Echo => ICMP,
            Kind::Dns | Kind::Quic => UDP,
        }
    }

    /// Source and destination port; both are the identifier of an echo.
    #[inline(always)]
    pub fn ports(&self) -> (u16, u16) {
        match self.kind {
            Kind::Tcp => (self.segment.source_port, self.segment.destination_port),
            Kind::Echo => (self.echo.id, self.echo.id),
            Kind::Dns | Kind::Quic => (self.datagram.source_port, self.datagram.destination_port),
        }
    }

    /// Bytes carried above the transport header.
    #[inline(always)]
    pub fn payload(&self) -> u32 {
        match self.kind {
            Kind::Tcp => self.segment.payload,
            Kind::Echo => self.echo.payload,
            Kind::Dns | Kind::Quic => self.datagram.payload,
        }
    }

    /// Checks that a flow may begin with this packet: one that can lead to samples.
    #[inline(always)]
    pub fn begins_flow(&self, methods: Methods) -> Result<(), Untracked> {
        match self.kind {
            Kind::Tcp => self.segment.begins_flow(methods),
            Kind::Echo if self.echo.is_reply => Err(Untracked::NoFlow),
            Kind::Echo => Ok(()),
            Kind::Quic => self.datagram.quic.begins,
            Kind::Dns => Err(Untracked::NoFlow),
        }
    }
}
