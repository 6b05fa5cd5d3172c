//! Aggregation of RTTs: of a series, of a flow, and of the whole run.

mod distribution;
mod flows;
#[cfg(feature = "live")]
mod measurements;
mod range;
mod totals;

pub use distribution::Distribution;
pub(crate) use flows::FlowSamples;
pub use flows::{HostRtts, Rtts};
#[cfg(feature = "live")]
pub(crate) use measurements::{Measurements, RttSummary};
pub(crate) use range::{Range, rtt_at};
#[cfg(feature = "live")]
pub(crate) use range::{add_bins, join};
pub use totals::{Totals, TotalsKey};
