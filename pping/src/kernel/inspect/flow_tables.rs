//! The flow tables of nftables, as `nft list flowtables` shows them. Asks nfnetlink, because the JSON of nft leaves out whether a
//! table is offloaded to the card.

use std::{
    fs,
    io::{self, ErrorKind},
};

use rtnetlink::{
    packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NlasIterator},
    sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER},
};

use crate::kernel::{
    interface_names::escape,
    rtnetlink::{attribute, receive},
};

// Of linux/netfilter/nfnetlink.h and linux/netfilter/nf_tables.h.
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_GETFLOWTABLE: u16 = 23;
/// `struct nfgenmsg`: all families, version 0, no resource.
const ANY_FAMILY: [u8; 4] = [0; 4];
const NFTA_FLOWTABLE_TABLE: u16 = 1;
const NFTA_FLOWTABLE_NAME: u16 = 2;
const NFTA_FLOWTABLE_HOOK: u16 = 3;
const NFTA_FLOWTABLE_FLAGS: u16 = 7;
const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
const NFT_FLOWTABLE_HW_OFFLOAD: u32 = 1;

/// Bytes of `struct nlmsghdr`.
const HEADER: u32 = 16;

/// A flow table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowTable {
    /// The table that it is in, and its name.
    pub(crate) name: String,
    /// Names of interfaces whose packets it takes, or how such names begin.
    devices: Vec<Device>,
    /// Whether the card may forward packets by itself.
    pub(crate) is_offloaded: bool,
}

/// The interfaces of a flow table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Device {
    Name(String),
    /// Of `eth*` (since Linux 6.16).
    Prefix(String),
}

impl FlowTable {
    /// A table with one interface.
    #[cfg(test)]
    pub(crate) fn of(interface: &str, is_offloaded: bool) -> Self {
        let name = format!("filter of-{interface}");
        Self { name, devices: vec![Device::Name(interface.to_owned())], is_offloaded }
    }

    /// Whether it takes packets of this interface.
    pub(crate) fn has(&self, interface: &str) -> bool {
        self.devices.iter().any(|device| match device {
            Device::Name(name) => name == interface,
            Device::Prefix(prefix) => interface.starts_with(prefix.as_str()),
        })
    }
}

/// Returns all flow tables of this network namespace. Without `nf_tables` there are none.
///
/// # Errors
/// If the kernel does not list them, mostly for lack of `CAP_NET_ADMIN`.
pub(crate) fn flow_tables() -> io::Result<Vec<FlowTable>> {
    if !has_nf_tables() {
        return Ok(Vec::new());
    }
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(), 0)?;
    let mut found = Vec::new();
    let listed = receive(&socket, &mut |answer| found.extend(flow_table(answer)));
    match listed {
        // So the kernel answers if it does not know nf_tables.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(Vec::new()),
        listed => listed.map(|_| found),
    }
}

/// Whether the kernel has `nf_tables` already: asking would load the module.
fn has_nf_tables() -> bool {
    let Ok(modules) = fs::read_to_string("/proc/modules") else { return true };
    let release = rustix::system::uname();
    let builtin = format!("/lib/modules/{}/modules.builtin", release.release().to_string_lossy());
    modules.lines().any(|line| line.starts_with("nf_tables "))
        || fs::read_to_string(builtin).is_ok_and(|list| list.contains("/nf_tables.ko"))
}

/// The request for all flow tables.
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((HEADER + ANY_FAMILY.len() as u32).to_ne_bytes());
    bytes.extend((NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETFLOWTABLE).to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    // The sequence number, and the port, which the kernel fills in.
    bytes.extend([0; 8]);
    bytes.extend(ANY_FAMILY);
    bytes
}

/// Reads an answer.
fn flow_table(answer: &[u8]) -> Option<FlowTable> {
    let attributes = answer.get(ANY_FAMILY.len()..)?;
    let string = |kind| attribute(attributes, kind).map(text);
    // Numbers of nfnetlink are big-endian.
    let flags = attribute(attributes, NFTA_FLOWTABLE_FLAGS).and_then(|flags| flags.try_into().ok());
    let devices = attribute(attributes, NFTA_FLOWTABLE_HOOK)
        .and_then(|hook| attribute(hook, NFTA_FLOWTABLE_HOOK_DEVS))
        .unwrap_or_default();
    Some(FlowTable {
        name: format!("{} {}", string(NFTA_FLOWTABLE_TABLE)?, string(NFTA_FLOWTABLE_NAME)?),
        devices: NlasIterator::new(devices).flatten().map(|it| device(it.value())).collect(),
        is_offloaded: flags.map_or(0, u32::from_be_bytes) & NFT_FLOWTABLE_HW_OFFLOAD != 0,
    })
}

/// Reads a device. A name ends with a zero, a prefix does not.
fn device(value: &[u8]) -> Device {
    if value.ends_with(&[0]) { Device::Name(text(value)) } else { Device::Prefix(text(value)) }
}

/// Reads a string, which may end with a zero.
fn text(value: &[u8]) -> String {
    escape(value.strip_suffix(&[0]).unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(list: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in list {
            bytes.extend((4 + value.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// An answer as `nf_tables_fill_flowtable_info` of `net/netfilter/nf_tables_api.c` writes it.
    fn answer(flags: u32, devices: &[(u16, &[u8])]) -> Vec<u8> {
        let devices = attributes(devices);
        let hook = attributes(&[
            (1, &0_u32.to_be_bytes()),
            (2, &0_u32.to_be_bytes()),
            (NFTA_FLOWTABLE_HOOK_DEVS, &devices),
        ]);
        // NFPROTO_INET, version 0, and the generation of the rules.
        let mut bytes = vec![1, 0, 0, 9];
        bytes.extend(attributes(&[
            (NFTA_FLOWTABLE_TABLE, b"filter\0"),
            (NFTA_FLOWTABLE_NAME, b"fast\0"),
            (5, &7_u64.to_be_bytes()),
            (4, &1_u32.to_be_bytes()),
            (NFTA_FLOWTABLE_FLAGS, &flags.to_be_bytes()),
            (NFTA_FLOWTABLE_HOOK, &hook),
        ]));
        bytes
    }

    #[test]
    fn tables_are_read_with_their_devices_and_their_offload() {
        let table = flow_table(&answer(1 | 2, &[(1, b"eth0\0"), (1, b"eth1\0")])).unwrap();
        assert_eq!((table.name.as_str(), table.is_offloaded), ("filter fast", true));
        assert!(table.has("eth0") && table.has("eth1") && !table.has("eth"), "{table:?}");
        assert!(!table.has("eth10") && !table.has("wan0"), "{table:?}");
        let counting = flow_table(&answer(2, &[(2, b"eth")])).unwrap();
        assert!(!counting.is_offloaded && counting.has("eth10") && !counting.has("wan0"), "{counting:?}");
    }

    #[test]
    fn answers_that_are_cut_off_are_no_tables() {
        let whole = answer(1, &[(1, b"eth0\0")]);
        for length in 0..24 {
            assert_eq!(flow_table(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn the_kernel_takes_the_request() {
        // Other users may be refused.
        if rustix::process::geteuid().is_root() {
            flow_tables().unwrap();
        }
    }
}
