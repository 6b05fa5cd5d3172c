//! What is kept of a flow between two packets.

pub(super) mod cold;
pub(super) mod hot;
pub(super) mod latest;
pub(super) mod lifecycle;
pub(super) mod locked;
pub(super) mod traffic;
