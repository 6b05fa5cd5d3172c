//! The methods of measuring round-trip times, and sets of them.

use crate::layout::layout;

/// A method of measuring round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
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

layout!(
    enum Method {
        TcpTs,
        IcmpEcho,
        TcpSeq,
        TcpHandshake,
        Dns,
        QuicSpin,
        QuicHandshake,
    }
);

impl Method {
    /// The length of an array by methods: how many there are, rounded up to a power of two.
    pub const COUNT: usize = 8;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::TcpTs,
        Self::IcmpEcho,
        Self::TcpSeq,
        Self::TcpHandshake,
        Self::Dns,
        Self::QuicSpin,
        Self::QuicHandshake,
    ];
}

/// Which methods are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Methods(pub u16);

impl Methods {
    /// None.
    pub const NONE: Self = Self(0);

    /// Each where it is the best: sequence numbers where there are no timestamps.
    pub const ALL: Self = Self((1 << Method::ALL.len()) - 1);

    /// Sequence numbers whether there are timestamps or not.
    const SEQ_ALWAYS: u16 = 1 << 15;

    /// These and another.
    #[must_use]
    pub const fn and(self, method: Method) -> Self {
        Self(self.0 | 1 << method as u16)
    }

    /// These without one.
    #[must_use]
    pub const fn without(self, method: Method) -> Self {
        Self(self.0 & !(1 << method as u16))
    }

    /// These, and sequence numbers for all TCP flows.
    #[must_use]
    pub const fn and_seq_always(self) -> Self {
        Self(self.and(Method::TcpSeq).0 | Self::SEQ_ALWAYS)
    }

    /// Whether a method is wanted.
    #[inline(always)]
    pub const fn has(self, method: Method) -> bool {
        self.0 & 1 << method as u16 != 0
    }

    /// Whether any method for TCP is wanted.
    #[inline(always)]
    pub const fn has_tcp(self) -> bool {
        self.has(Method::TcpTs) || self.has(Method::TcpSeq) || self.has(Method::TcpHandshake)
    }

    /// Whether any method for QUIC is wanted.
    #[inline(always)]
    pub const fn has_quic(self) -> bool {
        self.has(Method::QuicSpin) || self.has(Method::QuicHandshake)
    }

    /// Whether any method for UDP is wanted.
    #[inline(always)]
    pub const fn has_udp(self) -> bool {
        self.has(Method::Dns) || self.has_quic()
    }

    /// Whether sequence numbers are wanted of flows with timestamps, too.
    #[inline(always)]
    pub const fn has_seq_always(self) -> bool {
        self.0 & Self::SEQ_ALWAYS != 0
    }

    /// Whether a flow with timestamps is measured by them and by its sequence numbers.
    #[inline(always)]
    pub const fn has_both(self) -> bool {
        self.has_seq_always() && self.has(Method::TcpTs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_others_count_by() {
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
            let (without, only) = (Methods::ALL.without(method), Methods::NONE.and(method));
            for other in Method::ALL {
                assert_eq!(without.has(other), other != method);
                assert_eq!(only.has(other), other == method);
            }
            assert_eq!(without.and(method), Methods::ALL);
            assert_eq!(only.without(method), Methods::NONE);
        }
    }

    #[test]
    fn each_serves_one_protocol() {
        for method in Method::ALL {
            let only = Methods::NONE.and(method);
            let is_tcp = matches!(method, Method::TcpTs | Method::TcpSeq | Method::TcpHandshake);
            assert_eq!(only.has_tcp(), is_tcp, "{method:?}");
            let is_quic = matches!(method, Method::QuicSpin | Method::QuicHandshake);
            assert_eq!(only.has_quic(), is_quic, "{method:?}");
        }
    }

    #[test]
    fn sequence_numbers_are_for_all_flows_only_when_asked_for() {
        assert!(!Methods::ALL.has_seq_always() && !Methods::ALL.has_both());
        let seq = Methods::NONE.and_seq_always();
        assert!(seq.has(Method::TcpSeq) && seq.has_seq_always() && !seq.has_both());
        let both = seq.and(Method::TcpTs);
        assert!(both.has_both() && both.has_seq_always());
        assert_eq!(both.without(Method::TcpTs), seq);
        // No method is mistaken for it.
        for method in Method::ALL {
            assert!(!Methods::NONE.and(method).has_seq_always());
        }
    }
}
