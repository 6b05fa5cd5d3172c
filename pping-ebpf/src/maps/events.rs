//! The events for the agent.

use aya_ebpf::{macros::map, maps::RingBuf};
use pping_common::limits::RING_BYTES;

#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);
