//! What is kept over time.

mod minimum;
mod totals;

pub use minimum::Minimum;
pub use totals::Totals;
