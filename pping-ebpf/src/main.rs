//! The programs that pping attaches, the stages that they call, and the sweep that it runs.
#![no_std]
#![no_main]
#![expect(clippy::needless_pass_by_value, reason = "the macros hand the context over")]
#![expect(missing_docs, unreachable_pub, reason = "the macros wrap the hooks in functions of their own")]

use aya_ebpf::{
    bindings::{TC_ACT_UNSPEC, xdp_action::XDP_PASS},
    macros::{classifier, raw_tracepoint, xdp},
    programs::{RawTracePointContext, TcContext, XdpContext},
};
use pping_common::parse::Direction;

// Everything that is called for each packet is inlined: before Linux 6.2, a program without functions is verified in a
// fraction of the instructions.

/// Packets coming in, as the driver hands them over.
#[xdp]
#[inline(always)]
pub fn pping_xdp(ctx: XdpContext) -> u32 {
    pping_ebpf::watch(&ctx, Direction::Ingress);
    XDP_PASS
}

/// Packets coming in, as the network stack gets them.
#[classifier]
#[inline(always)]
pub fn pping_ingress(ctx: TcContext) -> i32 {
    pping_ebpf::watch(&ctx, Direction::Ingress);
    TC_ACT_UNSPEC
}

/// Packets going out.
#[classifier]
#[inline(always)]
pub fn pping_egress(ctx: TcContext) -> i32 {
    pping_ebpf::watch(&ctx, Direction::Egress);
    TC_ACT_UNSPEC
}

pping_ebpf::stages!(#[xdp] XdpContext => XDP_PASS, u32: pping_xdp_copies, pping_xdp_slow, pping_xdp_step4, pping_xdp_step6, pping_xdp_report4, pping_xdp_report6, pping_xdp_networks4, pping_xdp_networks6);
pping_ebpf::stages!(#[classifier] TcContext => TC_ACT_UNSPEC, i32: pping_tc_copies, pping_tc_slow, pping_tc_step4, pping_tc_step6, pping_tc_report4, pping_tc_report6, pping_tc_networks4, pping_tc_networks6);

/// Adds up what flows sent, and removes idle flows and unanswered queries. Never attached: in each sweep the agent runs
/// it several times, each time for a share of a table. It is a raw tracepoint, because the kernel runs those with
/// softirqs enabled: packets on the same CPU do not wait for the sweep, unless ksoftirqd has them.
#[raw_tracepoint]
pub fn pping_sweep(ctx: RawTracePointContext) -> i32 {
    pping_ebpf::sweep::run(&ctx);
    0
}

/// The same for kernels that cannot walk through a map. The agent runs it once for each flow and each query.
#[raw_tracepoint]
pub fn pping_sweep_one(ctx: RawTracePointContext) -> i32 {
    pping_ebpf::sweep::run_one(&ctx);
    0
}

/// A root qdisc has taken a packet. Attached only with `--residence`, as are the next two.
#[raw_tracepoint(tracepoint = "qdisc_enqueue")]
pub fn pping_enqueued(ctx: RawTracePointContext) -> i32 {
    pping_ebpf::enqueued(&ctx);
    0
}

/// A root qdisc hands packets over to the driver.
#[raw_tracepoint(tracepoint = "qdisc_dequeue")]
pub fn pping_dequeued(ctx: RawTracePointContext) -> i32 {
    pping_ebpf::dequeued(&ctx);
    0
}

/// The kernel drops a packet.
#[raw_tracepoint(tracepoint = "kfree_skb")]
pub fn pping_freed(ctx: RawTracePointContext) -> i32 {
    pping_ebpf::freed(&ctx);
    0
}

pping_ebpf::panic_handler!();
