//! Checks that `--residence` works here.

use super::report::Check;
use crate::kernel::residence::{TRACEPOINTS, offsets};

/// Checks the tracepoints that follow packets through queues, and the kernel's types that say where to read. pping runs without
/// them, unless it is asked to follow packets. `every` is `--residence-every`, or `None` without `--residence`.
pub(super) fn residence(every: Option<u32>) -> Check {
    const NAME: &str = "residence";
    match (offsets(), every) {
        (Ok(_), _) => {
            let names = TRACEPOINTS.map(|it| it.name).join(", ");
            Check::ok(NAME, format!("the tracepoints {names}, and the types of this kernel"))
        }
        (Err(_), Some(0)) => Check::ok(NAME, "forwarding only, which works on any kernel".to_owned()),
        (Err(error), Some(_)) => {
            Check::missing(NAME, error.to_string(), "add --residence-every 0, or boot a kernel that has it")
        }
        (Err(error), None) => {
            Check::degraded(NAME, error.to_string(), "nothing to do, unless you want --residence")
        }
    }
}
