//! Programs that do next to nothing, for `cargo xtask bench` to measure the others against.
#![no_std]
#![no_main]

use aya_ebpf::{bindings::TC_ACT_UNSPEC, helpers::bpf_ktime_get_ns, macros::classifier, programs::TcContext};
use pping_common::parse::{Frame, LinkType, Vlan};
use pping_ebpf::octets::Linear;

/// Nothing.
#[classifier]
pub fn baseline_empty(_: TcContext) -> i32 {
    TC_ACT_UNSPEC
}

/// Reads the clock.
#[classifier]
pub fn baseline_clock(_: TcContext) -> i32 {
    // SAFETY: this helper only reads a clock.
    core::hint::black_box(unsafe { bpf_ktime_get_ns() });
    TC_ACT_UNSPEC
}

/// Parses the packet and reads the clock.
#[classifier]
pub fn baseline_parse_clock(ctx: TcContext) -> i32 {
    let mut frame = Frame::EMPTY;
    // Looks at what was parsed, so that none of it is optimised away.
    core::hint::black_box(frame.parse(&Linear::of_skb(&ctx), LinkType::Ethernet, Vlan::NONE).is_ok());
    core::hint::black_box(frame.transport.segment.timestamps.tsecr);
    // SAFETY: this helper only reads a clock.
    core::hint::black_box(unsafe { bpf_ktime_get_ns() });
    TC_ACT_UNSPEC
}

pping_ebpf::panic_handler!();
