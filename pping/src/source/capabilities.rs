//! Whether this process may do what it has to.

use caps::{CapSet, Capability};

use crate::Error;

/// Checks for the capabilities to load and attach programs before anything is tried, since what the
/// kernel says otherwise is "operation not permitted".
///
/// # Errors
/// [`Error::MissingCapabilities`] names them and how to grant them.
pub fn check() -> Result<(), Error> {
    let has = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    // Before Linux 5.8 there was only CAP_SYS_ADMIN for all things BPF, and it still implies the others.
    let needed = if has(Capability::CAP_SYS_ADMIN) {
        vec![Capability::CAP_NET_ADMIN]
    } else {
        vec![Capability::CAP_BPF, Capability::CAP_NET_ADMIN, Capability::CAP_PERFMON]
    };
    let missing: Vec<_> =
        needed.into_iter().filter(|&capability| !has(capability)).map(|it| it.to_string()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe()
        .map_or_else(|_| "$(command -v pping)".to_owned(), |path| path.display().to_string());
    Err(Error::MissingCapabilities { missing: missing.join(", "), program })
}
