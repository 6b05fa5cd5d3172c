//! Whether `--residence` works here.

use super::report::Check;
use crate::kernel::residence::{TRACEPOINTS, offsets};

/// The tracepoints by which packets are followed through queues, and the types of the kernel that say where to read. Without them pping
/// runs, unless packets are to be followed. `every` is how many of them, if times in this host are to be measured.
pub(super) fn residence(every: Option<u32>) -> Check {
    const NAME: &str = "residence";
    match (offsets(), every) {
        (Ok(_), _) => {
            let names = TRACEPOINTS.map(|it| it.name).join(", ");
            Check::ok(NAME, format!("the tracepoints {names}, and the types of this kernel"))
        }
        (Err(_), Some(0)) => Check::ok(NAME, "forwarding only, which any kernel can tell".to_owned()),
        (Err(error), Some(_)) => {
            Check::missing(NAME, error.to_string(), "add --residence-every 0, or boot a kernel that has it")
        }
        (Err(error), None) => {
            Check::degraded(NAME, error.to_string(), "nothing, unless --residence is wanted")
        }
    }
}
