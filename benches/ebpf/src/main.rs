//! Programs for `cargo xtask bench` and for tests: some do next to nothing, to compare pping's with, and some
//! generate the packets of a conversation.
#![no_std]
#![no_main]
#![expect(missing_docs, unreachable_pub, reason = "the macros wrap the hooks in functions of their own")]
#![expect(clippy::needless_pass_by_value, reason = "the macros hand the context over")]

use aya_ebpf::{
    bindings::{
        TC_ACT_UNSPEC,
        xdp_action::{XDP_ABORTED, XDP_PASS},
    },
    helpers::{
        bpf_get_smp_processor_id, bpf_ktime_get_ns,
        generated::{bpf_redirect, bpf_xdp_store_bytes},
    },
    macros::{classifier, map, xdp},
    maps::{Array, PerCpuArray},
    programs::{TcContext, XdpContext},
};
use pping_bench_programs::exchange::{Connection, Exchange, PacketTemplate, Traffic};
use pping_common::parse::{Direction, Frame, LinkType, Vlan};
use pping_ebpf::Linear;

/// The offsets of the addresses and ports in the bench's segment, and of its timestamps.
const ADDRESSES_AND_PORTS: usize = 14 + 12;
const TIMESTAMPS: usize = 14 + 20 + 20 + 4;

/// The exchange that [`bench_exchange`] generates.
#[map]
static EXCHANGE: Array<Exchange> = Array::with_max_entries(1, 0);

/// The number of the last exchange, which another CPU may have made.
#[map]
static NUMBER: Array<u32> = Array::with_max_entries(1, 0);

/// The traffic that [`traffic`] generates.
#[map]
static TRAFFIC: Array<Traffic> = Array::with_max_entries(1, 0);

/// What each connection of each network has sent.
#[map]
static CONNECTIONS: Array<Connection> = Array::with_max_entries(2 * Traffic::MAX_FLOWS, 0);

/// The last `TSval` that each CPU made.
#[map]
static TSVAL: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// The packet that [`baseline_parse`] parses.
#[map]
static FRAME: PerCpuArray<Frame> = PerCpuArray::with_max_entries(1, 0);

/// Does nothing.
#[classifier]
pub fn baseline_empty(_: TcContext) -> i32 {
    TC_ACT_UNSPEC
}

/// Does nothing, at XDP.
#[xdp]
pub fn baseline_xdp(_: XdpContext) -> u32 {
    XDP_PASS
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
pub fn baseline_parse(ctx: TcContext) -> i32 {
    if let Some(frame) = FRAME.get_ptr_mut(0) {
        // SAFETY: each CPU has its own, and softirqs are off while a packet is handled, so there is one user.
        let frame = unsafe { &mut *frame };
        let parsed = pping_ebpf::parse(&Linear::of_skb(&ctx), LinkType::Ethernet, Vlan::NONE, frame);
        core::hint::black_box(&parsed);
    }
    // SAFETY: this helper only reads a clock.
    core::hint::black_box(unsafe { bpf_ktime_get_ns() });
    TC_ACT_UNSPEC
}

/// Generates a segment with a new `TSval`, then its echo.
#[classifier]
pub fn baseline_echo(ctx: TcContext) -> i32 {
    exchange(&ctx, |_| {});
    TC_ACT_UNSPEC
}

/// The same, with pping's program run on both.
#[classifier]
pub fn bench_echo(ctx: TcContext) -> i32 {
    exchange(&ctx, |direction| observe(&ctx, direction));
    TC_ACT_UNSPEC
}

/// Generates the packets of [`EXCHANGE`].
#[classifier]
pub fn baseline_exchange(ctx: TcContext) -> i32 {
    exchange_given(&ctx, |_| {});
    TC_ACT_UNSPEC
}

/// The same, with pping's program run on both.
#[classifier]
pub fn bench_exchange(ctx: TcContext) -> i32 {
    exchange_given(&ctx, |direction| observe(&ctx, direction));
    TC_ACT_UNSPEC
}

#[inline(always)]
fn observe(ctx: &TcContext, direction: Direction) {
    match direction {
        Direction::Ingress => coming(ctx),
        Direction::Egress => going(ctx),
    };
}

// These are functions, because a stage returns to the caller of the function that calls the stage, and the second
// packet has to follow. They return a number, because the verifier demands that of functions that call a stage.

#[inline(never)]
fn coming(ctx: &TcContext) -> i32 {
    pping_ebpf::watch(ctx, Direction::Ingress);
    TC_ACT_UNSPEC
}

#[inline(never)]
fn going(ctx: &TcContext) -> i32 {
    pping_ebpf::watch(ctx, Direction::Egress);
    TC_ACT_UNSPEC
}

pping_ebpf::stages!(#[classifier] TcContext => TC_ACT_UNSPEC, i32: pping_tc_copies, pping_tc_slow, pping_tc_step4, pping_tc_step6, pping_tc_report4, pping_tc_report6, pping_tc_networks4, pping_tc_networks6);

/// Generates the next packet of [`TRAFFIC`], and sends it to the router.
#[xdp]
pub fn traffic(ctx: XdpContext) -> u32 {
    next(&ctx).unwrap_or(XDP_ABORTED)
}

#[inline(always)]
fn next(ctx: &XdpContext) -> Option<u32> {
    /// The first client port, and a timestamp and a sequence number that never change.
    const PORT: u16 = 40_000;
    const CONSTANT: u32 = 7;
    const START: u32 = 1;
    /// The offset of the IP header. The addresses, the transport header and IPv4's identification have theirs in it.
    const IP: usize = 14;
    let (number, traffic) = (NUMBER.get_ptr_mut(0)?, TRAFFIC.get(0)?);
    // SAFETY: a valid pointer into the map, and one run of the bench at a time.
    let number = unsafe { core::ptr::replace(number, (*number).wrapping_add(1)) };
    let (is_answer, flow) = if traffic.is_opening != 0 {
        (number % 2 == 1, number / 2)
    } else if number % 3 == 2 {
        (true, number / 3)
    } else {
        (false, number - number / 3)
    };
    let flow = flow & (traffic.flows - 1);
    // SAFETY: a valid pointer into the map, and one run of the bench at a time.
    let connection = unsafe { &mut *CONNECTIONS.get_ptr_mut(traffic.first + flow)? };
    let end = START.wrapping_add(connection.sent);
    let (which, numbers, timestamps) = if is_answer {
        (1, [START, end], [CONSTANT, connection.tsval])
    } else {
        let now = if traffic.is_by_clock == 0 { number / Traffic::TICK } else { milliseconds() } + 1;
        connection.tsval = now;
        connection.sent = connection.sent.wrapping_add(Traffic::PAYLOAD);
        (0, [end, START], [now, CONSTANT])
    };
    let [sources, address_length, transport] =
        if traffic.is_v6 == 0 { [IP + 12, 4, IP + 20] } else { [IP + 8, 16, IP + 40] };
    store(ctx, 0, &traffic.packets[which]);
    store(ctx, transport + 2 * which, &(PORT.wrapping_add(flow as u16)).to_be_bytes());
    store(ctx, transport + 4, &numbers[0].to_be_bytes());
    store(ctx, transport + 8, &numbers[1].to_be_bytes());
    // Timestamps come after the header and the two bytes that align them.
    store(ctx, transport + 24, &timestamps[0].to_be_bytes());
    store(ctx, transport + 28, &timestamps[1].to_be_bytes());
    let further = (flow / Traffic::FLOWS_PER_ADDRESS) as u16 * Traffic::ADDRESS_STEP;
    if further != 0 {
        let address = sources + address_length * which + address_length - 2;
        store(ctx, address, &(traffic.clients + further).to_be_bytes());
        if traffic.is_v6 == 0 {
            store(ctx, IP + 4, &(Traffic::IDENTIFICATION - further).to_be_bytes());
        }
    }
    // SAFETY: this helper takes plain numbers.
    Some(unsafe { bpf_redirect(traffic.interfaces[which], 0) } as u32)
}

/// The time in units of about a millisecond.
#[inline(always)]
fn milliseconds() -> u32 {
    // SAFETY: this helper only reads a clock.
    (unsafe { bpf_ktime_get_ns() } >> 20) as u32
}

#[inline(always)]
fn store(ctx: &XdpContext, at: usize, bytes: &[u8]) {
    // SAFETY: this helper reads as many bytes as its argument says.
    unsafe {
        bpf_xdp_store_bytes(ctx.ctx, at as u32, bytes.as_ptr().cast_mut().cast(), bytes.len() as u32);
    }
}

#[inline(always)]
fn exchange_given(ctx: &TcContext, observe: impl Fn(Direction)) {
    let (Some(number), Some(exchange)) = (NUMBER.get_ptr_mut(0), EXCHANGE.get(0)) else { return };
    // SAFETY: a valid pointer into the map, and one run of the bench at a time.
    let number = unsafe { &mut *number };
    *number = number.wrapping_add(1);
    let [there, back] = &exchange.packets;
    make(ctx, there, *number);
    observe(Direction::Egress);
    make(ctx, back, *number);
    observe(Direction::Ingress);
}

#[inline(always)]
fn make(ctx: &TcContext, template: &PacketTemplate, number: u32) {
    let _ = ctx.store(0, &template.start, 0);
    for field in &template.fields {
        let _ = ctx.store(field.at as usize, &field.value(number).to_be_bytes(), 0);
    }
}

#[inline(always)]
fn exchange(ctx: &TcContext, observe: impl Fn(Direction)) {
    let Some(tsval) = TSVAL.get_ptr_mut(0) else { return };
    // SAFETY: a valid pointer into the map, to the value of this CPU.
    let tsval = unsafe { &mut *tsval };
    *tsval = tsval.wrapping_add(1);
    let [a, b, c, d] = tsval.to_be_bytes();
    // SAFETY: this helper only reads a number.
    let cpu = unsafe { bpf_get_smp_processor_id() } as u8;
    // 10.0.0.1:40000 to 10.0.0.2:443 and back, or the next port on the next CPU.
    let there = [10_u8, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40 + (cpu & 63), 0x01, 0xbb];
    let back = [10_u8, 0, 0, 2, 10, 0, 0, 1, 0x01, 0xbb, 0x9c, 0x40 + (cpu & 63)];
    let _ = ctx.store(ADDRESSES_AND_PORTS, &there, 0);
    let _ = ctx.store(TIMESTAMPS, &[a, b, c, d, 0, 0, 0, 7], 0);
    observe(Direction::Egress);
    let _ = ctx.store(ADDRESSES_AND_PORTS, &back, 0);
    let _ = ctx.store(TIMESTAMPS, &[0, 0, 0, 7, a, b, c, d], 0);
    observe(Direction::Ingress);
}

pping_ebpf::panic_handler!();
