//! pping on a host of the lab with real traffic. It is compared with tcpdump on the same interface, and with ping
//! on the hosts.
//! Needs root.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only knows the functions that are tests themselves"
)]

mod aggregates;
mod agreement;
pub(crate) mod capture;
mod concurrent;
pub(crate) mod dns;
mod faults;
mod flow_events;
mod forged;
mod hooks;
mod iperf;
mod joined;
mod local;
mod mirror_port;
mod mirrored;
mod misplaced;
mod one_arm;
mod ping;
mod quic;
mod rate_limit;
pub(crate) mod records;
pub(crate) mod reference;
mod statistics;
mod tun;
mod vxlan;
mod watch;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use pping_lab::{Topology, traffic::Server};

/// How long the wire holds a frame each way.
const HOLD: Duration = Duration::from_millis(10);
/// The least possible round trip to the server.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// The address family that a test runs over.
#[derive(Clone, Copy, Debug)]
enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    fn client(self) -> IpAddr {
        self.choose(Topology::CLIENT_IPV4.into(), Topology::CLIENT_IPV6.into())
    }

    fn server(self) -> IpAddr {
        self.choose(Topology::SERVER_IPV4.into(), Topology::SERVER_IPV6.into())
    }

    fn address_of(self, server: &Server) -> SocketAddr {
        SocketAddr::new(self.server(), server.port())
    }

    fn choose<T>(self, ipv4: T, ipv6: T) -> T {
        match self {
            Self::Ipv4 => ipv4,
            Self::Ipv6 => ipv6,
        }
    }
}

fn topology() -> Topology {
    ok(Topology::builder().hold(HOLD).build())
}

/// Fails with the error's message instead of its debug representation.
#[track_caller]
fn ok<T>(result: pping_lab::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
