//! Flows: their keys, their state between two packets, and how packets change it.

mod cold;
mod count;
mod hot;
mod key;
mod latest;
mod lifecycle;
mod locked;
mod order;
mod quic;
mod state;
mod step;
mod tcp;
#[cfg(test)]
mod tests;
mod traffic;
mod transitions;
mod window;

pub use cold::{Cold, Events, Facts, Locked, LockedDirection, PendingNumber, SpinTimes, Totals, flush};
pub use count::{Behind, DirectionCounts, count};
pub use hot::{DirectionState, FlowSnapshot, Hot, HotDirection, HotEntry, ProtocolState, is_proved};
pub use key::{Endpoint, FlowKey};
pub use latest::Latest;
pub use lifecycle::{Changes, Lifecycle, Reason};
pub use locked::{LockedFlow, PendingLookup};
pub use state::{Flow, Noted, is_expired, is_pending_idle, last_known};
pub use step::Outcome;
pub use tcp::has_still_timestamps;
pub use traffic::Sent;
