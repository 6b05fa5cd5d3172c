//! The capabilities of this process.

use caps::{CapSet, Capability, CapsHashSet, errors::CapsError};

/// Capabilities are missing.
#[derive(Debug, thiserror::Error)]
#[error(
    "missing {missing}: run as root, or grant the capabilities with\n  \
     sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {program}"
)]
pub struct Missing {
    /// Their names.
    pub(crate) missing: String,
    /// The path of the running program.
    pub(crate) program: String,
}

/// Checks for the capabilities that loading and attaching programs takes. Without this check the user would only see
/// the kernel's "operation not permitted".
///
/// # Errors
/// [`Missing`] if some are missing: it names them and how to grant them.
pub(crate) fn check() -> Result<(), Missing> {
    // It implies CAP_BPF and CAP_PERFMON, which are newer.
    if has(Capability::CAP_SYS_ADMIN) {
        return check_for_interfaces();
    }
    check_for(&[Capability::CAP_BPF, Capability::CAP_NET_ADMIN, Capability::CAP_PERFMON])
}

/// Checks for the capability to change what is attached to interfaces, without loading anything.
///
/// # Errors
/// [`Missing`] if it is missing.
pub(crate) fn check_for_interfaces() -> Result<(), Missing> {
    check_for(&[Capability::CAP_NET_ADMIN])
}

fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

fn check_for(needed: &[Capability]) -> Result<(), Missing> {
    let missing: Vec<_> = needed.iter().copied().filter(|&it| !has(it)).map(|it| it.to_string()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe()
        .map_or_else(|_| "$(command -v pping)".to_owned(), |path| path.display().to_string());
    Err(Missing { missing: missing.join(", "), program })
}

/// Gives up all capabilities of the calling thread, and of threads that it starts from here on.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn drop_all() -> Result<(), CapsError> {
    // The kernel drops ambient capabilities with the permitted ones.
    [CapSet::Inheritable, CapSet::Effective, CapSet::Permitted]
        .into_iter()
        .try_for_each(|set| caps::clear(None, set))
}

/// Sets `no_new_privs` (prctl(2)): neither this process nor one that it starts can gain privileges any more.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn set_no_new_privs() -> std::io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// The capabilities for attaching to new interfaces. (Loading the programs takes `CAP_PERFMON` as well.)
pub(crate) const FOR_INTERFACES: [Capability; 2] = [Capability::CAP_BPF, Capability::CAP_NET_ADMIN];

/// The capability for running a loaded program, where the kernel lets only privileged users call bpf(2).
pub(crate) const FOR_RUNS: [Capability; 1] = [Capability::CAP_BPF];

/// The capability for reopening files of other users when pping runs as root.
pub(crate) const FOR_FILES: [Capability; 1] = [Capability::CAP_DAC_OVERRIDE];

/// Reduces the calling thread, and threads that it starts later, to these capabilities, for good: not even root regains
/// others by starting another program. Returns the capabilities that are left.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn restrict_to(capabilities: &[Capability]) -> Result<Vec<Capability>, CapsError> {
    let permitted = caps::read(None, CapSet::Permitted)?;
    let kept: CapsHashSet = capabilities.iter().copied().filter(|it| permitted.contains(it)).collect();
    if permitted.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::read(None, CapSet::Bounding)?.difference(&kept) {
            caps::drop(None, CapSet::Bounding, *capability)?;
        }
    }
    // Effective comes first, because it must be a subset of permitted. Clearing inheritable also clears ambient.
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Permitted, &kept)?;
    caps::clear(None, CapSet::Inheritable)?;
    let mut kept: Vec<_> = kept.into_iter().collect();
    kept.sort_unstable_by_key(Capability::index);
    Ok(kept)
}
