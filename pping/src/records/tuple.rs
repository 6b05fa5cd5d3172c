//! The two ends of a flow, in records.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use pping_common::{abi::Endpoints, parse::Protocol};
use serde::Serialize;

use crate::labels::protocol_name;
#[cfg(test)]
use crate::schemas;

/// The two ends of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tuple {
    /// The host that replied.
    #[cfg_attr(test, schemars(with = "schemas::Address"))]
    pub src_ip: IpAddr,
    /// Its port, or the identifier of an ICMP echo.
    pub src_port: u16,
    /// The host whose packets are timed.
    #[cfg_attr(test, schemars(with = "schemas::Address"))]
    pub dest_ip: IpAddr,
    /// Its port, or the identifier of an ICMP echo.
    pub dest_port: u16,
    /// Protocol of the flow; `DNS` for samples of DNS.
    #[cfg_attr(test, schemars(with = "schemas::SampleProtocol"))]
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
            protocol: protocol_name(Protocol::from_number(endpoints.protocol)?)?,
        })
    }

    /// `source+destination`, as ePPing writes it.
    pub(super) fn ends(&self) -> String {
        let (source, destination) = (self.src_ip, self.dest_ip);
        format!("{}+{}", SocketAddr::new(source, self.src_port), SocketAddr::new(destination, self.dest_port))
    }
}
