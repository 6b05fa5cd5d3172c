//! Checks `--pin`.

use std::path::Path;

use rustix::fs::statfs;

use super::{name::Name, report::Check};
use crate::kernel::{
    features::{Feature, Features},
    pins::BPF_FS_MAGIC,
};

/// Checks that programs and links can be pinned in `directory`.
pub(super) fn pins(directory: &Path, features: Option<Features>) -> Check {
    let found = directory.display().to_string();
    if features.is_some_and(|features| !features.has(Feature::Tcx)) {
        return Check::degraded(
            Name::Pin,
            "pinning needs links at tc, which this kernel lacks (Linux 6.6)",
            "pping runs without pins: packets that pass while it restarts are not measured",
        );
    }
    // pping makes the directory if it does not exist.
    let Some(there) = directory.ancestors().find(|directory| directory.exists()) else {
        return Check::unknown(Name::Pin, format!("{found}: no directory above it exists"));
    };
    match statfs(there) {
        Ok(system) if system.f_type == BPF_FS_MAGIC => Check::ok(Name::Pin, format!("{found} is on a bpffs")),
        Ok(_) => Check::missing(
            Name::Pin,
            format!("{found} is not on a bpffs"),
            "give a directory under /sys/fs/bpf, or mount one: mount -t bpf -o mode=0700 bpf /run/pping",
        ),
        Err(error) => Check::unknown(Name::Pin, format!("{}: {error}", there.display())),
    }
}
