//! The watched interfaces with their counters, local addresses, and excluded prefixes.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap, LpmTrie, PerCpuArray, lpm_trie::Key},
};
use pping_common::{
    abi::{Counters, Interface, InterfaceName, entry},
    group::LabelKey,
    limits::{INTERFACE_PROBES, INTERFACE_TABLE, MAX_EXCLUDED_PREFIXES, MAX_INTERFACES, MAX_LOCAL_ADDRESSES},
    parse::IpAddress,
};

#[map]
static INTERFACES: Array<Interface> = Array::with_max_entries(INTERFACE_TABLE, 0);

/// The names of interfaces by interface id, which the agent keeps for the next one, where maps are pinned.
#[map]
static INTERFACE_NAMES: Array<InterfaceName> = Array::with_max_entries(MAX_INTERFACES, 0);

#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(MAX_INTERFACES, 0);

/// This host's addresses, looked up once per flow.
#[map]
static LOCAL_ADDRESSES: HashMap<[u8; 16], u8> = HashMap::with_max_entries(MAX_LOCAL_ADDRESSES, 0);

/// The excluded prefixes.
#[map]
static EXCLUDED: LpmTrie<LabelKey, u32> = LpmTrie::with_max_entries(MAX_EXCLUDED_PREFIXES, 0);

/// The watched interface with this ifindex.
#[inline(always)]
pub(crate) fn interface(ifindex: u32) -> Option<Interface> {
    for probe in 0..INTERFACE_PROBES {
        let interface = INTERFACES.get(entry(ifindex, probe))?;
        if interface.ifindex == ifindex {
            return Some(*interface);
        }
    }
    None
}

/// This CPU's counters of an interface.
#[inline(always)]
pub(crate) fn counters(interface_id: u16) -> Option<*mut Counters> {
    COUNTERS.get_ptr_mut(u32::from(interface_id))
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
