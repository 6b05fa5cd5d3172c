//! A host with one cable, for what needs no router.

use pping_lab::{
    Namespace,
    veth::{self, End, Offloads},
};

use super::monitor::ok;

/// A host whose `eth0` leads to a peer.
pub(super) struct Host {
    pub(super) namespace: Namespace,
    /// What keeps the other end of the cable.
    _peer: Namespace,
}

impl Host {
    /// Where it can be watched.
    pub(super) const ETH: &str = "eth0";

    /// Sets it up; there is no traffic but what the kernel makes itself.
    pub(super) fn new() -> Self {
        let (namespace, peer) = (ok(Namespace::new("host")), ok(Namespace::new("peer")));
        ok(veth::connect(End::new(&namespace, Self::ETH), End::new(&peer, "eth0"), Offloads::On));
        Self { namespace, _peer: peer }
    }
}
