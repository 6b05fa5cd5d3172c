//! What is kept over time.

mod distribution;
mod minimum;
mod totals;

pub use distribution::Distribution;
pub use minimum::Minimum;
pub use totals::Totals;
