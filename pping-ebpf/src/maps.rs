//! The maps. The agent sets the sizes of the flow maps when it loads the programs.

use core::arch::asm;

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    macros::map,
    maps::{Array, HashMap, PerCpuArray, RingBuf},
};
use pping_common::{
    abi::{Counters, Interface, place},
    flow::{Address, Changes, Flow, FlowKey, Ipv4, Ipv6},
    limits::{DEFAULT_MAX_FLOWS, INTERFACE_PLACES, INTERFACE_PROBES, MAX_LOCAL_ADDRESSES, RING_OCTETS},
    parse::{Frame, IpAddress},
};

use crate::emit::State;

#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(RING_OCTETS, 0);

/// Flows are kept apart by family: hashing cost follows key length, and most traffic need not pay for
/// IPv6 addresses it does not have.
#[map]
pub(crate) static FLOWS_V4: HashMap<FlowKey<Ipv4>, Flow> = HashMap::with_max_entries(DEFAULT_MAX_FLOWS, 0);

#[map]
pub(crate) static FLOWS_V6: HashMap<FlowKey<Ipv6>, Flow> = HashMap::with_max_entries(DEFAULT_MAX_FLOWS, 0);

#[map]
static INTERFACES: Array<Interface> = Array::with_max_entries(INTERFACE_PLACES, 0);

#[map]
static COUNTERS: PerCpuArray<Counters> = PerCpuArray::with_max_entries(INTERFACE_PLACES, 0);

/// This host's addresses. Looked at once per flow.
#[map]
static LOCAL_ADDRESSES: HashMap<[u8; 16], u8> = HashMap::with_max_entries(MAX_LOCAL_ADDRESSES, 0);

#[map]
static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

/// The packet that a CPU is busy with. In a map for the verifier's sake: what is read back from there has
/// no history, so what follows is verified once instead of once for each way of getting there.
pub(crate) struct Scratch {
    /// The packet, taken apart.
    pub(crate) frame: Frame,
    /// What it changed in the life of its flow.
    pub(crate) changes: Changes,
    /// What its flow was like then.
    pub(crate) state: State,
}

/// The number of the present sweep.
#[map]
static SWEEPS: Array<u32> = Array::with_max_entries(1, 0);

/// What a new flow starts as. It is too large for the stack of a BPF program.
static EMPTY_FLOW: Flow = Flow::EMPTY;

/// An address family's flows.
pub(crate) trait Flows: Address + 'static {
    /// The flow map.
    fn map() -> &'static HashMap<FlowKey<Self>, Flow>;
}

impl Flows for Ipv4 {
    #[inline(always)]
    fn map() -> &'static HashMap<FlowKey<Self>, Flow> {
        &FLOWS_V4
    }
}

impl Flows for Ipv6 {
    #[inline(always)]
    fn map() -> &'static HashMap<FlowKey<Self>, Flow> {
        &FLOWS_V6
    }
}

/// Makes a flow entry, unless another CPU just did; `false` when the map is full.
#[inline(always)]
pub(crate) fn insert_flow<A: Flows>(key: &FlowKey<A>) -> bool {
    A::map().insert(key, &EMPTY_FLOW, u64::from(BPF_NOEXIST)).is_ok()
}

/// A monitored interface and its place in the table.
#[inline(always)]
pub(crate) fn interface(ifindex: u32) -> Option<(u16, Interface)> {
    for probe in 0..INTERFACE_PROBES {
        let place = place(ifindex, probe);
        let interface = INTERFACES.get(place)?;
        if interface.ifindex == ifindex {
            return Some((place as u16, *interface));
        }
    }
    None
}

/// Room for the packet that this CPU is busy with.
#[inline(always)]
pub(crate) fn scratch() -> Option<&'static mut Scratch> {
    // SAFETY: this CPU's own, and softirqs are off while a packet is handled, so there is one user.
    SCRATCH.get_ptr_mut(0).map(|scratch| unsafe { &mut *scratch })
}

/// Keeps the compiler from carrying over in registers what was just written to the scratch space.
#[inline(always)]
pub(crate) fn settle<T>(scratch: &mut T) {
    // SAFETY: a move to itself, which might, as far as the compiler knows, have changed the value. (Without
    // any instruction its line would be that of the next one twice, which the kernel rejects.)
    unsafe { asm!("{0} = {0}", inout(reg) &raw mut *scratch => _, options(nostack)) };
}

/// This CPU's counters of an interface.
#[inline(always)]
pub(crate) fn counters(place: u16) -> Option<*mut Counters> {
    COUNTERS.get_ptr_mut(u32::from(place))
}

/// Whether an address is one of this host.
#[inline(always)]
pub(crate) fn is_local(address: IpAddress) -> bool {
    // SAFETY: only whether there is an entry matters; its value is not read.
    address.is_loopback() || unsafe { LOCAL_ADDRESSES.get(address.to_octets()) }.is_some()
}

/// The number of the present sweep.
#[inline(always)]
pub(crate) fn sweeps() -> u32 {
    SWEEPS.get(0).copied().unwrap_or(0)
}

/// Begins the next sweep, and returns its number.
#[inline(always)]
pub(crate) fn begin_sweep() -> Option<u32> {
    let sweeps = SWEEPS.get_ptr_mut(0)?;
    // SAFETY: a valid, aligned pointer into the map; only the agent's one sweep at a time writes here.
    let sweeps = unsafe { &mut *sweeps };
    *sweeps = sweeps.wrapping_add(1);
    Some(*sweeps)
}
