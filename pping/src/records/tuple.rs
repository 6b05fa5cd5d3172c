//! The two ends of a flow, in records.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use pping_common::{abi::Endpoints, parse::Protocol};
use serde::Serialize;

#[cfg(test)]
use crate::schemas;
use crate::{groups::Networks, labels::protocol_name};

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
    /// Network of `src_ip`, by `--remote-groups`; absent without it, and if the address is in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub src_network: Option<Arc<str>>,
    /// Network of `dest_ip`, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub dest_network: Option<Arc<str>>,
}

impl Tuple {
    /// The endpoints of an event, without their networks; `None` if its protocol has no flows.
    pub(crate) fn new(endpoints: &Endpoints) -> Option<Self> {
        let address = |bytes| Ipv6Addr::from(bytes).to_canonical();
        Some(Self {
            src_ip: address(endpoints.source),
            src_port: endpoints.source_port,
            dest_ip: address(endpoints.destination),
            dest_port: endpoints.destination_port,
            protocol: protocol_name(Protocol::from_number(endpoints.protocol)?)?,
            src_network: None,
            dest_network: None,
        })
    }

    /// Names the networks of both ends.
    pub(super) fn name_networks(&mut self, networks: &Networks) {
        (self.src_network, self.dest_network) = (networks.label(self.src_ip), networks.label(self.dest_ip));
    }

    /// `source+destination`, as ePPing writes it.
    pub(super) fn ends(&self) -> String {
        let (source, destination) = (self.src_ip, self.dest_ip);
        format!("{}+{}", SocketAddr::new(source, self.src_port), SocketAddr::new(destination, self.dest_port))
    }
}
