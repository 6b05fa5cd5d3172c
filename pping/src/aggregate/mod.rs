//! Round-trip times added up: of a series, of a flow, of the whole run.

mod distribution;
mod flows;
mod totals;

pub use distribution::Distribution;
pub(crate) use flows::FlowSamples;
pub use flows::Rtts;
pub use totals::Totals;
