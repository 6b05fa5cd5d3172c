//! The contexts of packets at tc and at XDP: what they say of a packet, and the stages that their programs call.

use aya_ebpf::{
    macros::map,
    maps::ProgramArray,
    programs::{TcContext, XdpContext},
};
use pping_common::{
    abi::{PacketProgram, Stage},
    bytes::Bytes,
    parse::{Direction, Vlan},
};

use crate::{
    barrier::{barrier_ptr, within},
    bytes::{Linear, Scattered},
};

/// The stages at tc, by [`Stage`]. XDP has its own array, because an array holds programs of one type only.
#[map]
static TC_STAGES: ProgramArray = ProgramArray::with_max_entries(Stage::COUNT, 0);

/// The stages at XDP.
#[map]
static XDP_STAGES: ProgramArray = ProgramArray::with_max_entries(Stage::COUNT, 0);

/// A packet at tc or XDP.
pub trait PacketContext {
    /// The kernel's number of the interface.
    fn ifindex(&self) -> u32;

    /// The linear part of the packet, with its pointers loaded again, so that the verifier knows nothing of them.
    fn linear(&self) -> Linear;

    /// All of the packet that can be read.
    fn bytes(&self) -> impl Bytes;

    /// The VLAN tag that the device has taken out of the packet.
    fn vlan(&self) -> Vlan;

    /// The direction that the attached program wrote to scratch space, with bounds that the verifier sees.
    fn direction(&self, written: Direction) -> Direction;

    /// The attached program that got the packet. All of its stages return the same.
    fn program(&self, direction: Direction) -> PacketProgram;

    /// Jumps to the program of a stage. Returns only if that program is not loaded.
    fn call(&self, stage: Stage);
}

impl PacketContext for XdpContext {
    #[inline(always)]
    fn ifindex(&self) -> u32 {
        // SAFETY: the context is valid, and the verifier knows this field as readable.
        unsafe { (*self.ctx).ingress_ifindex }
    }

    #[inline(always)]
    fn linear(&self) -> Linear {
        // SAFETY: the context of the program.
        unsafe { Linear::of_md(barrier_ptr(self.ctx)) }
    }

    #[inline(always)]
    fn bytes(&self) -> impl Bytes {
        self.linear()
    }

    #[inline(always)]
    fn vlan(&self) -> Vlan {
        Vlan::NONE
    }

    #[inline(always)]
    fn direction(&self, _: Direction) -> Direction {
        Direction::Ingress
    }

    #[inline(always)]
    fn program(&self, _: Direction) -> PacketProgram {
        PacketProgram::Xdp
    }

    #[inline(always)]
    fn call(&self, stage: Stage) {
        // SAFETY: nothing here needs to be dropped, and the other program gets the context that it expects.
        unsafe { XDP_STAGES.tail_call(self, stage as u32) };
    }
}

impl PacketContext for TcContext {
    #[inline(always)]
    fn ifindex(&self) -> u32 {
        // SAFETY: the context is valid, and the verifier knows this field as readable.
        unsafe { (*self.skb.skb).ifindex }
    }

    #[inline(always)]
    fn linear(&self) -> Linear {
        // SAFETY: the context of the program.
        unsafe { Linear::of_sk_buff(barrier_ptr(self.skb.skb)) }
    }

    #[inline(always)]
    fn bytes(&self) -> impl Bytes {
        Scattered(self)
    }

    #[inline(always)]
    fn vlan(&self) -> Vlan {
        let mut vlan = Vlan::NONE;
        // SAFETY: the context is valid, and the verifier knows these fields as readable.
        let (is_tagged, tag) = unsafe { ((*self.skb.skb).vlan_present != 0, (*self.skb.skb).vlan_tci) };
        if is_tagged {
            vlan.push(tag as u16);
        }
        vlan
    }

    #[inline(always)]
    fn direction(&self, written: Direction) -> Direction {
        match within::<2>(written as usize) {
            0 => Direction::Ingress,
            _ => Direction::Egress,
        }
    }

    #[inline(always)]
    fn program(&self, direction: Direction) -> PacketProgram {
        PacketProgram::at_tc(direction)
    }

    #[inline(always)]
    fn call(&self, stage: Stage) {
        // SAFETY: nothing here needs to be dropped, and the other program gets the context that it expects.
        unsafe { TC_STAGES.tail_call(self, stage as u32) };
    }
}
