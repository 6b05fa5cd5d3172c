//! Descriptors for the links of many interfaces.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors, if links of so many interfaces need that.
pub(super) fn make_room_for_links(max_interfaces: u32) {
    // Two links, and a file that may be open for a moment.
    const EACH: u64 = 3;
    const OTHERS: u64 = 256;
    let wanted = OTHERS + EACH * u64::from(max_interfaces);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let most = limit.maximum.unwrap_or(wanted);
    let current = wanted.min(most);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit });
    if raised.is_err() || current < wanted {
        tracing::warn!(
            "only {current} descriptors may be open, and {max_interfaces} interfaces need {wanted}; raise that limit \
             (LimitNOFILE= of a service, ulimit -Hn), or some are not watched"
        );
    }
}
