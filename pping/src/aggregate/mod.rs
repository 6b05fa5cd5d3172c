//! What is kept over time.

mod answers;
mod distribution;
mod exposed;
mod flows;
mod inflation;
mod minimum;
mod totals;

pub use answers::Answers;
pub use distribution::Distribution;
pub use exposed::{Exposed, is_free};
pub use inflation::{Inflated, Inflation, PERCENTILES};
pub use minimum::Minimum;
pub use totals::Totals;
