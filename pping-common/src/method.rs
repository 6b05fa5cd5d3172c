//! The methods of measuring round-trip times, and sets of them.

use crate::layout::numbered;

numbered! {
    /// A method of measuring round-trip times.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Method {
        /// TCP timestamps: `TSval` and `TSecr`.
        TcpTs,
        /// Echo request and reply.
        IcmpEcho,
        /// TCP sequence numbers, and the acknowledgements that cover them.
        TcpSeq,
        /// SYN and SYN-ACK; SYN-ACK and the ACK that completes the handshake.
        TcpHandshake,
        /// DNS query and response.
        Dns,
        /// The spin bit of QUIC.
        QuicSpin,
        /// The first Initial of a QUIC client, and the server's first packet.
        QuicHandshake,
    }
}

impl Method {
    /// The name in options, records and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpTs => "tcp-ts",
            Self::IcmpEcho => "icmp-echo",
            Self::TcpSeq => "tcp-seq",
            Self::TcpHandshake => "tcp-handshake",
            Self::Dns => "dns",
            Self::QuicSpin => "quic-spin",
            Self::QuicHandshake => "quic-handshake",
        }
    }
}

/// A set of methods to measure by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Methods(pub u16);

impl Methods {
    /// None.
    pub const NONE: Self = Self(0);

    /// All methods, each where it fits best: sequence numbers only for flows without timestamps.
    pub const ALL: Self = Self((1 << Method::ALL.len()) - 1);

    /// Sequence numbers for flows with timestamps, too.
    const SEQ_ALWAYS: u16 = 1 << 15;

    /// Adds a method.
    #[must_use]
    pub const fn with(self, method: Method) -> Self {
        Self(self.0 | 1 << method as u16)
    }

    /// Removes a method.
    #[must_use]
    pub const fn without(self, method: Method) -> Self {
        Self(self.0 & !(1 << method as u16))
    }

    /// Adds sequence numbers for all TCP flows.
    #[must_use]
    pub const fn with_seq_always(self) -> Self {
        Self(self.with(Method::TcpSeq).0 | Self::SEQ_ALWAYS)
    }

    /// Whether a method is in the set.
    #[inline(always)]
    pub const fn has(self, method: Method) -> bool {
        self.0 & 1 << method as u16 != 0
    }

    /// Whether the set has a method for TCP.
    #[inline(always)]
    pub const fn has_tcp(self) -> bool {
        self.has(Method::TcpTs) || self.has(Method::TcpSeq) || self.has(Method::TcpHandshake)
    }

    /// Whether the set has a method for QUIC.
    #[inline(always)]
    pub const fn has_quic(self) -> bool {
        self.has(Method::QuicSpin) || self.has(Method::QuicHandshake)
    }

    /// Whether the set has a method for UDP.
    #[inline(always)]
    pub const fn has_udp(self) -> bool {
        self.has(Method::Dns) || self.has_quic()
    }

    /// Whether flows with timestamps are measured by sequence numbers, too.
    #[inline(always)]
    pub const fn has_seq_always(self) -> bool {
        self.0 & Self::SEQ_ALWAYS != 0
    }

    /// Whether flows with timestamps are measured by both timestamps and sequence numbers.
    #[inline(always)]
    pub const fn has_both(self) -> bool {
        self.has_seq_always() && self.has(Method::TcpTs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_consecutive_numbers() {
        let numbers = Method::ALL.map(|method| method as u8);
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!((Method::TcpTs as u8, Method::IcmpEcho as u8, Method::TcpSeq as u8), (0, 1, 2));
        assert_eq!((Method::TcpHandshake as u8, Method::Dns as u8), (3, 4));
        assert_eq!((Method::QuicSpin as u8, Method::QuicHandshake as u8), (5, 6));
        assert!(Method::ALL.len() <= Method::COUNT);
    }

    #[test]
    fn all_are_wanted_unless_some_are_not() {
        for method in Method::ALL {
            assert!(Methods::ALL.has(method) && !Methods::NONE.has(method));
            let (without, only) = (Methods::ALL.without(method), Methods::NONE.with(method));
            for other in Method::ALL {
                assert_eq!(without.has(other), other != method);
                assert_eq!(only.has(other), other == method);
            }
            assert_eq!(without.with(method), Methods::ALL);
            assert_eq!(only.without(method), Methods::NONE);
        }
    }

    #[test]
    fn each_serves_one_protocol() {
        for method in Method::ALL {
            let only = Methods::NONE.with(method);
            let is_tcp = matches!(method, Method::TcpTs | Method::TcpSeq | Method::TcpHandshake);
            assert_eq!(only.has_tcp(), is_tcp, "{method:?}");
            let is_quic = matches!(method, Method::QuicSpin | Method::QuicHandshake);
            assert_eq!(only.has_quic(), is_quic, "{method:?}");
        }
    }

    #[test]
    fn sequence_numbers_are_for_all_flows_only_when_asked_for() {
        assert!(!Methods::ALL.has_seq_always() && !Methods::ALL.has_both());
        let seq = Methods::NONE.with_seq_always();
        assert!(seq.has(Method::TcpSeq) && seq.has_seq_always() && !seq.has_both());
        let both = seq.with(Method::TcpTs);
        assert!(both.has_both() && both.has_seq_always());
        assert_eq!(both.without(Method::TcpTs), seq);
        // The bit is not that of any method.
        for method in Method::ALL {
            assert!(!Methods::NONE.with(method).has_seq_always());
        }
    }
}
