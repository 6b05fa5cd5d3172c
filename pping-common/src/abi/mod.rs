//! The binary interface between the kernel programs and the agent: settings, counters, events.
//!
//! Fields only ever hold what the kernel programs put there, but the agent reads them as plain numbers
//! and turns them into names by lookup, so that no value is undefined behaviour.

mod control;
mod counters;
mod events;
mod interface;
mod ledger;
mod maps;
mod report;
mod selector;
mod sweep;

pub use control::Control;
pub use counters::{Counters, Lost};
pub use events::{
    Emit, EndEvent, Endpoints, EventKind, FlowEvent, FlowEventKind, RttEvent, TriggeredBy, Volume,
};
pub use interface::{Interface, InterfaceName, entry};
pub use ledger::{BUCKETS, Balance, LABEL_BYTES, LedgerEntry};
pub use maps::{LAYOUT, PINNED_MAPS, PinnedMap};
pub use report::{FlowReporter, FlowState};
pub use selector::SeriesSelector;
pub use sweep::SweepRequest;

pub use crate::{
    parse::Direction,
    series::{Purpose, Series, SeriesKey, SeriesRef, Tally, Traffic},
};

/// Marks what the agent may read from, and write to, maps and globals byte by byte.
#[cfg(feature = "aya")]
mod pod {
    use super::{Control, Counters, Emit, Interface, InterfaceName, SeriesKey};
    use crate::{
        dns::{Query, QueryKey},
        flow::FlowKey,
        group::{GroupKey, Grouping, LabelKey},
        parse::{Decap, Ipv4, Ipv6, Scope},
        rtt::Rules,
        table::Table,
    };

    // SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
    unsafe impl aya::Pod for Counters {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Interface {}
    // SAFETY: as above.
    unsafe impl aya::Pod for InterfaceName {}
    // SAFETY: `repr(C)`, `Copy`, no padding; only ever written from here, never read back.
    unsafe impl aya::Pod for Rules {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Scope {}
    // SAFETY: a number.
    unsafe impl aya::Pod for Decap {}
    // SAFETY: a number.
    unsafe impl aya::Pod for Emit {}
    // SAFETY: `repr(C)`, `Copy`, no padding, and every bit pattern of its integers is valid.
    unsafe impl aya::Pod for Grouping {}
    // SAFETY: as above.
    unsafe impl aya::Pod for GroupKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for LabelKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for SeriesKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Control {}
    // SAFETY: as above.
    unsafe impl aya::Pod for FlowKey<Ipv4> {}
    // SAFETY: as above.
    unsafe impl aya::Pod for FlowKey<Ipv6> {}
    // SAFETY: as above.
    unsafe impl aya::Pod for QueryKey<Ipv4> {}
    // SAFETY: as above.
    unsafe impl aya::Pod for QueryKey<Ipv6> {}
    // SAFETY: a number.
    unsafe impl aya::Pod for Query {}
    // SAFETY: as above: `repr(C)`, `Copy`, no padding, nothing but integers.
    unsafe impl aya::Pod for Table {}
}
