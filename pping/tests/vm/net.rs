//! Hosts, cables, and delays that the kernel keeps to the microsecond.

use std::{
    net::{IpAddr, SocketAddr},
    thread,
    time::Duration,
};

use pping_lab::{
    Namespace, Topology, run,
    traffic::{self, Behaviour, Pace, Sent, Server},
    veth::{self, End, Offloads},
};

use super::monitor::{ok, ping};

pub(super) const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

/// How long the hosts rest after a change.
const SETTLING: Duration = Duration::from_millis(500);

/// The VLAN of [`Net::tagged`].
pub(super) const VLAN: u16 = 100;

/// Hosts in a row, with the names and addresses of a [`Topology`]: client, router, server. Instead of a wire, netem
/// delays the packets that the server sends, so the router sees each of the server's replies that much later.
pub(super) struct Net {
    pub(super) client: Namespace,
    pub(super) router: Namespace,
    pub(super) server: Namespace,
}

/// The address family of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    pub(super) fn client(self) -> IpAddr {
        match self {
            Self::Ipv4 => Topology::CLIENT_IPV4.into(),
            Self::Ipv6 => Topology::CLIENT_IPV6.into(),
        }
    }

    pub(super) fn server(self) -> IpAddr {
        match self {
            Self::Ipv4 => Topology::SERVER_IPV4.into(),
            Self::Ipv6 => Topology::SERVER_IPV6.into(),
        }
    }
}

impl Net {
    /// Creates hosts that have resolved each other's addresses, so that no packet of a test waits for that.
    pub(super) fn new() -> Self {
        Self::with_far_ends(Topology::WAN, Topology::ETH, |_, _| {})
    }

    /// Like [`Self::new`], with VLAN tags between router and server.
    pub(super) fn tagged() -> Self {
        Self::with_far_ends("wan0.100", "eth0.100", |router, server| {
            for (host, parent) in [(router, Topology::WAN), (server, Topology::ETH)] {
                let name = format!("{parent}.{VLAN}");
                ip(host, &format!("link add link {parent} name {name} type vlan id {VLAN}"));
                ip(host, &format!("link set {name} up"));
            }
        })
    }

    /// Puts the addresses between router and server on the given interfaces, which `prepare` creates.
    fn with_far_ends(wan: &str, eth: &str, prepare: impl Fn(&Namespace, &Namespace)) -> Self {
        let [client, router, server] = ["client", "router", "server"].map(|role| ok(Namespace::new(role)));
        ok(router.forward());
        let near = [End::new(&client, Topology::ETH), End::new(&router, Topology::LAN)];
        let far = [End::new(&router, Topology::WAN), End::new(&server, Topology::ETH)];
        ok(veth::connect(near[0], near[1], Offloads::On));
        ok(veth::connect(far[0], far[1], Offloads::On));
        prepare(&router, &server);
        let ends = [
            (near[0], IpAddr::from(Topology::CLIENT_IPV4), IpAddr::from(Topology::CLIENT_IPV6)),
            (near[1], Topology::LAN_IPV4.into(), Topology::LAN_IPV6.into()),
            (End::new(&router, wan), Topology::WAN_IPV4.into(), Topology::WAN_IPV6.into()),
            (End::new(&server, eth), Topology::SERVER_IPV4.into(), Topology::SERVER_IPV6.into()),
        ];
        for (end, ipv4, ipv6) in ends {
            ok(end.add_address(ipv4, 24));
            ok(end.add_address(ipv6, 64));
        }
        for gateway in [IpAddr::from(Topology::LAN_IPV4), Topology::LAN_IPV6.into()] {
            ip(&client, &format!("route add default via {gateway}"));
        }
        // The server's kernel acknowledges at once. Otherwise it would wait for the server process, which shares the
        // only processor with all other processes.
        for gateway in [IpAddr::from(Topology::WAN_IPV4), Topology::WAN_IPV6.into()] {
            ip(&server, &format!("route add default via {gateway} quickack 1"));
        }
        let net = Self { client, router, server };
        net.warm_up();
        net
    }

    /// Delays, drops or reorders the server's packets, by arguments of `tc qdisc ... netem`.
    pub(super) fn netem(&self, arguments: &str) {
        disturb(&self.server, Topology::ETH, arguments);
    }

    /// Disturbs packets to the server by arguments of `tc qdisc ... netem`, after the router's programs have seen them.
    pub(super) fn netem_ahead(&self, arguments: &str) {
        disturb(&self.router, Topology::WAN, arguments);
    }

    /// Sets whether the hosts use TCP timestamps. Windows uses none.
    pub(super) fn timestamps(&self, are_on: bool) {
        for host in [&self.client, &self.server] {
            // The sysctl covers IPv6 too.
            ok(host.sysctl("net.ipv4.tcp_timestamps", if are_on { "1" } else { "0" }));
        }
    }

    /// Delays all of the server's packets by the same time.
    pub(super) fn delay(&self, delay: Duration) {
        self.netem(&format!("delay {}us", delay.as_micros()));
    }

    /// Holds a TCP conversation of segments and their echoes.
    pub(super) fn converse(&self, family: Family, pace: Pace) -> Sent {
        let server = ok(Server::start(&self.server, 0, Behaviour::Echo));
        ok(traffic::echo(&self.client, SocketAddr::new(family.server(), server.port()), pace))
    }

    /// Resolves addresses, which netem would delay too. It also opens the first connection, which takes longer than
    /// later ones.
    fn warm_up(&self) {
        for family in FAMILIES {
            ping(&self.client, family.server(), "-c2 -i0.1");
            self.converse(family, Pace { chunks: 2, bytes: 10, pause: Duration::from_millis(10) });
        }
    }
}

fn disturb(host: &Namespace, interface: &str, arguments: &str) {
    let mut tc = host.command("tc");
    tc.args(["qdisc", "replace", "dev", interface, "root", "netem", "limit", "100000"]);
    ok(run(tc.args(arguments.split_whitespace())));
    // The kernel cleans up after the `tc` process, and packets would wait for that.
    thread::sleep(SETTLING);
}

/// Runs `ip` with a line of arguments, in a host.
pub(super) fn ip(host: &Namespace, arguments: &str) {
    ok(run(host.command("ip").args(arguments.split_whitespace())));
}
