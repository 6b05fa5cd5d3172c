//! What a packet does to its flow.

pub(super) mod count;
pub(super) mod order;
pub(super) mod quic;
pub(super) mod step;
pub(super) mod tcp;
pub(super) mod transitions;
pub(super) mod window;
