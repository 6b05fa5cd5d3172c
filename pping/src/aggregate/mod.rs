//! What is kept over time.

mod answers;
mod distribution;
mod flows;
mod minimum;
mod totals;

pub use answers::Answers;
pub use distribution::Distribution;
pub use minimum::Minimum;
pub use totals::Totals;
