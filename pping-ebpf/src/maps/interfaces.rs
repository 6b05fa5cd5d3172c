//! The watched interfaces with their counters, local addresses, and excluded prefixes.

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    helpers::bpf_get_smp_processor_id,
    macros::map,
    maps::{Array, HashMap, LpmTrie, lpm_trie::Key},
};
use pping_common::{
    abi::{Counters, Interface, InterfaceName, InterfaceRoom},
    group::LabelKey,
    limits::{INTERFACE_PROBES, MAX_EXCLUDED_PREFIXES, MAX_LOCAL_ADDRESSES},
    parse::IpAddress,
};

use crate::{config, shared::prelude::*};

/// The watched interfaces. The agent makes room for `--max-interfaces`, here and below. Maps that can be mapped to user space
/// begin at a page, so that their elements are aligned to cache lines.
#[map]
static INTERFACES: Array<Interface> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The names of interfaces by interface id. With pinned maps, the agent keeps them for its successor.
#[map]
static INTERFACE_NAMES: Array<InterfaceName> = Array::with_max_entries(1, 0);

/// The counters, by CPU and interface id. The agent makes room for all CPUs. Not a per-CPU map: the kernel does not
/// align its elements to cache lines, and reads one more cache line to find them.
#[map]
static COUNTERS: Array<Counters> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// This host's addresses, looked up once per flow.
#[map]
static LOCAL_ADDRESSES: HashMap<[u8; 16], u8> = HashMap::with_max_entries(MAX_LOCAL_ADDRESSES, 0);

/// The excluded prefixes.
#[map]
static EXCLUDED: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(MAX_EXCLUDED_PREFIXES, 0);

/// The watched interface with this ifindex.
#[inline(always)]
pub(crate) fn interface(ifindex: u32) -> Option<Shared<Interface>> {
    let last_entry = config::last_interface_entry();
    for probe in 0..INTERFACE_PROBES {
        let interface = interface_at(InterfaceRoom::entry(last_entry, ifindex, probe))?;
        if interface.at(field!(Interface, ifindex)).read() == ifindex {
            return Some(interface);
        }
    }
    None
}

/// An entry of the table of interfaces.
#[inline(always)]
pub(crate) fn interface_at(entry: u32) -> Option<Shared<Interface>> {
    INTERFACES.shared(entry)
}

/// This CPU's counters of an interface. Packets add to them by [`Shared::count`], because softirqs are off while a
/// packet is handled. A packet may interrupt the sweep, so the sweep adds in one instruction ([`Shared::add`]).
#[inline(always)]
pub(crate) fn counters(interface_id: u16) -> Option<Shared<Counters>> {
    // SAFETY: this helper only reads a number.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    COUNTERS.shared(cpu * config::max_interfaces() + u32::from(interface_id))
}

/// Whether an address is one of this host.
#[inline(always)]
pub(crate) fn is_local(address: IpAddress) -> bool {
    // SAFETY: only whether there is an entry matters; its value is not read.
    address.is_loopback() || unsafe { LOCAL_ADDRESSES.get(address.to_bytes()) }.is_some()
}

/// Whether an address is excluded.
#[inline(always)]
pub(crate) fn is_excluded(address: IpAddress) -> bool {
    EXCLUDED.get(Key::new(LabelKey::BITS, LabelKey::new(0, address))).is_some()
}
