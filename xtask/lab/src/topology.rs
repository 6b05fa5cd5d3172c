use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

use crate::{
    Error, Leg, Namespace, Result, Wire,
    run::{ip, run},
    veth::{self, End, Offloads},
};

const IPV4_PREFIX: u8 = 24;
const IPV6_PREFIX: u8 = 64;
/// How long the hosts may take to find each other, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Three hosts in a row, with a wire that makes the last hop a long one:
///
/// ```text
///  client              router                          server
///  eth0 ----------- lan0    wan0 ------- wire ------- eth0
///  10.11.1.2   10.11.1.1    10.11.2.1   (holds)  10.11.2.2
///  fd00:11:1::2        ::1  fd00:11:2::1      fd00:11:2::2
/// ```
///
/// Seen from the router's [`Topology::WAN`], the round trip to the server takes as long as the wire holds packets
/// both ways, and that to the client takes next to nothing. Each topology has its own namespaces, so the addresses
/// are the same in all and any number can run at once.
#[derive(Debug)]
pub struct Topology {
    // Fields are dropped in this order: the wire stops before its host is removed.
    wire: Wire,
    client: Namespace,
    router: Namespace,
    server: Namespace,
    /// The host with the wire; it has no addresses and sends nothing.
    _between: Namespace,
}

/// The options of a [`Topology`].
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct TopologyBuilder {
    forward: Duration,
    backward: Duration,
    lan_offloads: Offloads,
}

impl Topology {
    /// The interface of the client and of the server.
    pub const ETH: &str = "eth0";
    /// The router's interface towards the client.
    pub const LAN: &str = "lan0";
    /// The router's interface towards the server.
    pub const WAN: &str = "wan0";
    /// The client's IPv4 address.
    pub const CLIENT_IPV4: Ipv4Addr = Ipv4Addr::new(10, 11, 1, 2);
    /// The server's IPv4 address.
    pub const SERVER_IPV4: Ipv4Addr = Ipv4Addr::new(10, 11, 2, 2);
    /// The client's IPv6 address.
    pub const CLIENT_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x11, 1, 0, 0, 0, 0, 2);
    /// The server's IPv6 address.
    pub const SERVER_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x11, 2, 0, 0, 0, 0, 2);
    /// The router's IPv4 address on [`Self::LAN`].
    pub const LAN_IPV4: Ipv4Addr = Ipv4Addr::new(10, 11, 1, 1);
    /// The router's IPv4 address on [`Self::WAN`].
    pub const WAN_IPV4: Ipv4Addr = Ipv4Addr::new(10, 11, 2, 1);
    /// The router's IPv6 address on [`Self::LAN`].
    pub const LAN_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x11, 1, 0, 0, 0, 0, 1);
    /// The router's IPv6 address on [`Self::WAN`].
    pub const WAN_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x11, 2, 0, 0, 0, 0, 1);

    /// Starts with a wire that holds frames for no time.
    pub fn builder() -> TopologyBuilder {
        TopologyBuilder::default()
    }

    /// The host that begins conversations.
    pub fn client(&self) -> &Namespace {
        &self.client
    }

    /// The host in between, where pping runs.
    pub fn router(&self) -> &Namespace {
        &self.router
    }

    /// The host behind the wire.
    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The wire between router and server; [`Leg::Forward`] is towards the server.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Returns once client and server reach each other. That also resolves all link-layer addresses, so that the
    /// first packet of a test does not wait for it.
    fn wait_until_connected(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        for server in [IpAddr::from(Self::SERVER_IPV4), Self::SERVER_IPV6.into()] {
            loop {
                let mut ping = self.client.command("ping");
                match run(ping.args(["-c1", "-W1", &server.to_string()])) {
                    Ok(_) => break,
                    Err(Error::Failed { .. }) if Instant::now() < deadline => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl TopologyBuilder {
    /// Makes the wire hold frames this long each way, so that the round trip takes twice as long.
    pub fn hold(self, each_way: Duration) -> Self {
        self.hold_legs(each_way, each_way)
    }

    /// Makes the wire hold frames for different times towards the server and back.
    pub fn hold_legs(mut self, forward: Duration, backward: Duration) -> Self {
        (self.forward, self.backward) = (forward, backward);
        self
    }

    /// Offloads of the cable between client and router, on by default. At the wire they are always off.
    pub fn lan_offloads(mut self, offloads: Offloads) -> Self {
        self.lan_offloads = offloads;
        self
    }

    /// Makes the hosts and waits until they reach each other.
    ///
    /// # Errors
    /// [`Error::NotRoot`], or the errors of the tools and the kernel.
    pub fn build(self) -> Result<Topology> {
        let [client, router, server, between] = ["client", "router", "server", "wire"].map(Namespace::new);
        let (client, router, server, between) = (client?, router?, server?, between?);
        router.forward()?;
        // The wire's host itself must not send anything.
        between.sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;

        let ends @ [client_eth, lan, wan, server_eth] = [
            End::new(&client, Topology::ETH),
            End::new(&router, Topology::LAN),
            End::new(&router, Topology::WAN),
            End::new(&server, Topology::ETH),
        ];
        let (near, far) = (End::new(&between, "near"), End::new(&between, "far"));
        veth::connect(client_eth, lan, self.lan_offloads)?;
        veth::connect(wan, near, Offloads::Off)?;
        veth::connect(far, server_eth, Offloads::Off)?;
        let addresses = [
            (Topology::CLIENT_IPV4, Topology::CLIENT_IPV6),
            (Topology::LAN_IPV4, Topology::LAN_IPV6),
            (Topology::WAN_IPV4, Topology::WAN_IPV6),
            (Topology::SERVER_IPV4, Topology::SERVER_IPV6),
        ];
        for (end, (ipv4, ipv6)) in ends.into_iter().zip(addresses) {
            end.add_address(ipv4, IPV4_PREFIX)?;
            end.add_address(ipv6, IPV6_PREFIX)?;
        }
        route_by(&client, Topology::LAN_IPV4.into())?;
        route_by(&client, Topology::LAN_IPV6.into())?;
        route_by(&server, Topology::WAN_IPV4.into())?;
        route_by(&server, Topology::WAN_IPV6.into())?;

        let wire = Wire::new(&between, near.interface, far.interface, Duration::ZERO)?;
        let topology = Topology { wire, client, router, server, _between: between };
        topology.wait_until_connected()?;
        topology.wire.set_hold(Leg::Forward, self.forward);
        topology.wire.set_hold(Leg::Backward, self.backward);
        Ok(topology)
    }
}

fn route_by(host: &Namespace, gateway: IpAddr) -> Result<()> {
    ip(&format!("-n {} route add default via {gateway}", host.name())).map(drop)
}
