//! Checks the capabilities of this process.

use caps::{CapSet, Capability};

use super::{name::Name, report::Check};
use crate::capabilities::{self, Missing};

/// The needed capabilities, and `CAP_SYS_ADMIN`, which includes two of them.
const RELEVANT: [Capability; 4] =
    [Capability::CAP_BPF, Capability::CAP_NET_ADMIN, Capability::CAP_PERFMON, Capability::CAP_SYS_ADMIN];

/// Lists the capabilities that this process has, or those that are missing.
pub(super) fn capabilities() -> Check {
    match capabilities::check() {
        Ok(()) => {
            let names = RELEVANT.into_iter().filter(|&it| has(it)).map(|it| it.to_string());
            Check::ok(Name::Capabilities, names.collect::<Vec<_>>().join(", "))
        }
        Err(Missing { missing, program }) => Check::missing(
            Name::Capabilities,
            format!("missing {missing}"),
            format!(
                "run as root, or grant the capabilities:\n\
                 sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {program}"
            ),
        ),
    }
}

/// Whether this process has a capability.
pub(super) fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}
