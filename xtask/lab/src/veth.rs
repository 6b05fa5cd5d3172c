//! Cables: pairs of virtual Ethernet interfaces, each end in a namespace of its own.

use std::{net::IpAddr, process::Command};

use crate::{
    Namespace, Result,
    run::{ip, run},
};

/// One end of a pair: where it lives and what it is called there.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The host it is plugged into.
    pub namespace: &'a Namespace,
    /// The interface name, at most 15 bytes.
    pub interface: &'a str,
}

impl<'a> End<'a> {
    /// Names an end.
    pub fn new(namespace: &'a Namespace, interface: &'a str) -> Self {
        Self { namespace, interface }
    }

    /// Gives the interface an address that is usable at once.
    ///
    /// # Errors
    /// What `ip address add` says.
    pub fn add_address(&self, address: impl Into<IpAddr>, prefix_length: u8) -> Result<()> {
        let address = address.into();
        let nodad = if address.is_ipv6() { "nodad" } else { "" };
        let (namespace, interface) = (self.namespace.name(), self.interface);
        ip(&format!("-n {namespace} address add {address}/{prefix_length} dev {interface} {nodad}")).map(drop)
    }

    /// Leaves only plain frames on this end: no more than the MTU long, with their checksums filled in, as on a
    /// real cable. A packet sent through an interface with offloads on has neither, since the hardware that
    /// would add them does not exist.
    ///
    /// # Errors
    /// What `ethtool` says.
    pub fn switch_offloads_off(&self) -> Result<()> {
        let features = ["rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan"];
        let mut ethtool = self.namespace.command("ethtool");
        ethtool.args(["-K", self.interface]).args(features.iter().flat_map(|feature| [*feature, "off"]));
        run(&mut ethtool).map(drop)
    }
}

/// What a new pair of interfaces does to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offloads {
    /// As the kernel makes them: segmentation and checksums are put off, so a bulk transfer shows packets of
    /// up to 64 KiB.
    #[default]
    On,
    /// Plain frames on both ends, see [`End::switch_offloads_off`].
    Off,
}

/// Joins two hosts with a cable; both ends are up when this returns.
///
/// # Errors
/// What `ip link` and `ethtool` say, such as that an interface of that name exists.
pub fn connect(a: End<'_>, b: End<'_>, offloads: Offloads) -> Result<()> {
    run(Command::new("ip").args(["link", "add", "name", a.interface, "netns", a.namespace.name()]).args([
        "type",
        "veth",
        "peer",
        "name",
        b.interface,
        "netns",
        b.namespace.name(),
    ]))?;
    for end in [a, b] {
        if offloads == Offloads::Off {
            end.switch_offloads_off()?;
        }
    }
    for end in [a, b] {
        ip(&format!("-n {} link set {} up", end.namespace.name(), end.interface))?;
    }
    Ok(())
}
