//! What is kept over time.

mod answers;
mod distribution;
mod flows;
mod totals;

pub use answers::Answers;
pub use distribution::Distribution;
pub use totals::Totals;
