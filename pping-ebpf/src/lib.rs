//! The kernel half of pping. `main.rs` defines the programs, and this library does their work. In the order in which a
//! packet meets them: [`packet_context`] has the packet, [`stages`] the stages that it goes through, [`bytes`] reads
//! it, [`fast_path`] counts common packets, [`track`] finds the flow of the others in its [`table`] and lets
//! `pping-common` decide ([`dns`] does the same with queries), [`aggregate`] adds a sample to its series, and [`emit`]
//! puts it on the ring for the agent. [`sweep`] adds up what flows sent, and removes idle flows. [`cost`] times a packet
//! now and then.
//! [`residence`] times packets in this host, if the user asks for that. [`lease`] stops programs that outlive a killed
//! agent. See docs/architecture.md, the life of a packet.
//!
//! pping observes: nothing here can drop, delay, change or redirect a packet, and whatever goes wrong
//! with one, its program returns the verdict that lets the packet go on (`TC_ACT_UNSPEC`, `XDP_PASS`).
#![no_std]
#![expect(internal_features, reason = "BPF's atomic instructions are reachable as intrinsics only")]
#![expect(
    clippy::needless_borrows_for_generic_args,
    reason = "maps take keys and values by reference or by value, and by value is a copy on a small stack"
)]
#![feature(asm_experimental_arch, core_intrinsics)]

mod aggregate;
mod barrier;
mod bins;
mod bytes;
mod config;
mod copies;
mod cost;
mod count;
mod dns;
mod emit;
mod fast_path;
mod flow;
mod flow_guard;
mod lease;
mod maps;
mod numbers;
mod packet_context;
mod residence;
mod rings;
mod shared;
mod stages;
mod step;
pub mod sweep;
mod sync;
mod table;
mod track;

pub use bytes::Linear;
pub use residence::queue::{dequeued, enqueued, freed};
pub use stages::{
    networks_v4, networks_v6, parse, report_v4, report_v6, slow, step_v4, step_v6, tell_copies, watch,
};

/// Defines the stages of one kind of program, by its context and the verdict that they return. A stage never returns to
/// its caller. A binary defines them for each kind of program that it has.
#[macro_export]
macro_rules! stages {
    (#[$kind:ident] $context:ty => $verdict:expr, $result:ty: $copies:ident, $slow:ident, $step4:ident, $step6:ident,
     $report4:ident, $report6:ident, $networks4:ident, $networks6:ident) => {
        /// Tells copies at a mirror port.
        #[$kind]
        #[inline(always)]
        pub fn $copies(ctx: $context) -> $result {
            $crate::tell_copies(&ctx);
            $verdict
        }

        /// Parses, counts and tracks the packets that the attached program does not count itself.
        #[$kind]
        #[inline(always)]
        pub fn $slow(ctx: $context) -> $result {
            $crate::slow(&ctx);
            $verdict
        }

        /// Matches and records in a flow over IPv4.
        #[$kind]
        #[inline(always)]
        pub fn $step4(ctx: $context) -> $result {
            $crate::step_v4(&ctx);
            $verdict
        }

        /// Matches and records in a flow over IPv6.
        #[$kind]
        #[inline(always)]
        pub fn $step6(ctx: $context) -> $result {
            $crate::step_v6(&ctx);
            $verdict
        }

        /// Reports what happened in a flow over IPv4.
        #[$kind]
        #[inline(always)]
        pub fn $report4(ctx: $context) -> $result {
            $crate::report_v4(&ctx);
            $verdict
        }

        /// Reports what happened in a flow over IPv6.
        #[$kind]
        #[inline(always)]
        pub fn $report6(ctx: $context) -> $result {
            $crate::report_v6(&ctx);
            $verdict
        }

        /// Counts what happened in a flow over IPv4 for the network at the other end.
        #[$kind]
        #[inline(always)]
        pub fn $networks4(ctx: $context) -> $result {
            $crate::networks_v4(&ctx);
            $verdict
        }

        /// Counts what happened in a flow over IPv6 for the network at the other end.
        #[$kind]
        #[inline(always)]
        pub fn $networks6(ctx: $context) -> $result {
            $crate::networks_v6(&ctx);
            $verdict
        }
    };
}

/// Defines the panic handler and the licence of a binary. The handler never ends, so the verifier rejects a program
/// that can panic.
#[macro_export]
macro_rules! panic_handler {
    () => {
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            loop {}
        }

        /// The kernel allows some helpers only to programs under a licence compatible with the GPL.
        #[unsafe(link_section = "license")]
        #[unsafe(no_mangle)]
        static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
    };
}
