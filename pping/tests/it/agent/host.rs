//! A host with one cable, for tests that need no router.

use pping_lab::{
    Namespace,
    veth::{self, End, Offloads},
};

use super::monitor::ok;

/// A host whose `eth0` is connected to a peer.
pub(super) struct Host {
    pub(super) namespace: Namespace,
    /// Keeps the other end of the cable.
    _peer: Namespace,
}

impl Host {
    /// The interface to watch.
    pub(super) const ETH: &str = "eth0";

    /// Creates the host. The only traffic is the kernel's own.
    pub(super) fn new() -> Self {
        let (namespace, peer) = (ok(Namespace::new("host")), ok(Namespace::new("peer")));
        ok(veth::connect(End::new(&namespace, Self::ETH), End::new(&peer, "eth0"), Offloads::On));
        Self { namespace, _peer: peer }
    }
}
