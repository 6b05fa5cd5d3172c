//! Cables: pairs of virtual Ethernet interfaces, with each end in a namespace.

use std::{net::IpAddr, process::Command};

use crate::{
    Namespace, Result,
    run::{ip, run},
};

/// One end of a pair: its host, and its name there.
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
    /// If `ip address add` fails.
    pub fn add_address(&self, address: impl Into<IpAddr>, prefix_length: u8) -> Result<()> {
        let address = address.into();
        let nodad = if address.is_ipv6() { "nodad" } else { "" };
        let (namespace, interface) = (self.namespace.name(), self.interface);
        ip(&format!("-n {namespace} address add {address}/{prefix_length} dev {interface} {nodad}")).map(drop)
    }

    /// Leaves only plain frames on this end: no longer than the MTU, and with their checksums, as on a real cable.
    /// With offloads on, packets have neither, because no hardware adds them.
    ///
    /// # Errors
    /// If `ethtool` fails.
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
    /// The kernel's default: segmentation and checksums are deferred, so a bulk transfer has packets of up to 64 KiB.
    #[default]
    On,
    /// Plain frames on both ends, see [`End::switch_offloads_off`].
    Off,
}

/// Joins two hosts with a cable; both ends are up when this returns.
///
/// # Errors
/// If `ip link` or `ethtool` fails, for example because an interface of that name exists.
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
