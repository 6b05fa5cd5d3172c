//! The two ends of a flow, in records.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use pping_common::{abi::Endpoints, parse::Protocol};
use serde::Serialize;

/// The two ends of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tuple {
    /// The host that replied.
    pub src_ip: IpAddr,
    /// Its port, or the ICMP echo identifier.
    pub src_port: u16,
    /// The host whose packets are timed.
    pub dest_ip: IpAddr,
    /// Its port, or the ICMP echo identifier.
    pub dest_port: u16,
    /// `TCP`, `QUIC`, `DNS`, `ICMP` or `ICMPv6`.
    pub protocol: &'static str,
}

impl Tuple {
    /// The endpoints of an event; `None` if its protocol has no flows.
    pub(crate) fn new(endpoints: &Endpoints) -> Option<Self> {
        let address = |bytes| Ipv6Addr::from(bytes).to_canonical();
        Some(Self {
            src_ip: address(endpoints.source),
            src_port: endpoints.source_port,
            dest_ip: address(endpoints.destination),
            dest_port: endpoints.destination_port,
            protocol: match Protocol::from_number(endpoints.protocol)? {
                Protocol::Tcp => "TCP",
                Protocol::Icmp => "ICMP",
                Protocol::Icmpv6 => "ICMPv6",
                // QUIC flows are the only ones over UDP.
                Protocol::Udp => "QUIC",
                Protocol::NonIp | Protocol::Other => return None,
            },
        })
    }

    /// `source+destination`, as ePPing writes it.
    pub(super) fn ends(&self) -> String {
        let (source, destination) = (self.src_ip, self.dest_ip);
        format!("{}+{}", SocketAddr::new(source, self.src_port), SocketAddr::new(destination, self.dest_port))
    }
}
