//! What is kept of a flow between two packets.

pub(super) mod cold;
pub(super) mod direction_state;
pub(super) mod hot;
pub(super) mod latest;
pub(super) mod lifecycle;
pub(super) mod locked;
pub(super) mod protocol_state;
pub(super) mod traffic;
