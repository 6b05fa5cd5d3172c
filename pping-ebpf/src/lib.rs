//! The kernel half of pping. `main.rs` has the programs that are attached; what they do is here, in the order in which a packet
//! meets it: [`bytes`] reads it, [`fast_path`] counts common packets, [`observe`] counts and parses the others, [`track`] finds
//! the flow in its [`table`] and lets `pping-common` decide ([`dns`] does the same with queries), [`aggregate`] adds a sample to its
//! series, [`emit`] reports it to the agent. [`sweep`] adds up what flows sent, and removes idle ones. [`lease`] ends all of it when
//! the agent was killed and its programs were not. See docs/architecture.md, the life of a packet.
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
mod bounds;
mod bytes;
mod config;
mod dns;
mod emit;
mod fast_path;
mod launder;
mod lease;
mod maps;
mod observe;
mod sweep;
mod sync;
mod table;
mod track;

pub use bytes::Linear;
pub use observe::{observe_skb, observe_xdp, parse};
pub use sweep::{sweep, sweep_one};

/// The panic handler and the licence of a binary. The verifier rejects a program that can panic, as it would loop for ever.
#[macro_export]
macro_rules! panic_handler {
    () => {
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            loop {}
        }

        /// Some helpers are open to programs under a licence compatible with the GPL only.
        #[unsafe(link_section = "license")]
        #[unsafe(no_mangle)]
        static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
    };
}
