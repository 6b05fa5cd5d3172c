//! Checks that `--residence` works here.

use std::fs;

use super::{name::Name, report::Check};
use crate::kernel::residence::{TRACEPOINTS, offsets};

/// The file that says what the kernel forbids even root (`kernel_lockdown(7)`). It exists only where lockdown does, and a container
/// may not see it.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// The mode in which no program reads kernel memory.
const CONFIDENTIALITY: &str = "confidentiality";

/// Checks the tracepoints that follow packets through queues, the kernel's types that say where to read, and that programs may
/// read kernel memory. pping runs without them, unless it is asked to follow packets. `every` is `--residence-every`, or `None`
/// without `--residence`.
pub(super) fn residence(every: Option<u32>) -> Check {
    let lockdown = fs::read_to_string(LOCKDOWN).unwrap_or_default();
    let found = match offsets() {
        Ok(_) if lockdown_mode(&lockdown) == Some(CONFIDENTIALITY) => Err(format!(
            "this kernel is locked down in the mode {CONFIDENTIALITY} ({LOCKDOWN}), and lets no program read kernel memory"
        )),
        found => found.map(drop).map_err(|error| error.to_string()),
    };
    check_of(found, every)
}

/// Returns the current mode of lockdown: the word in brackets.
fn lockdown_mode(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

/// `found` says why packets cannot be followed, if so.
fn check_of(found: Result<(), String>, every: Option<u32>) -> Check {
    const NAME: Name = Name::Residence;
    match (found, every) {
        (Ok(()), _) => {
            let names = TRACEPOINTS.map(|it| it.name).join(", ");
            Check::ok(NAME, format!("the tracepoints {names}, and the types of this kernel"))
        }
        (Err(_), Some(0)) => Check::ok(NAME, "forwarding only, which works on any kernel".to_owned()),
        (Err(reason), Some(_)) => {
            Check::missing(NAME, reason, "add --residence-every 0, or boot a kernel that allows it")
        }
        (Err(reason), None) => Check::degraded(NAME, reason, "nothing to do, unless you want --residence"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::Status;

    #[test]
    fn the_mode_of_lockdown_is_the_word_in_brackets() {
        for (text, mode) in [
            ("[none] integrity confidentiality\n", Some("none")),
            ("none [integrity] confidentiality\n", Some("integrity")),
            ("none integrity [confidentiality]\n", Some(CONFIDENTIALITY)),
            ("none integrity confidentiality\n", None),
            ("", None),
        ] {
            assert_eq!(lockdown_mode(text), mode, "{text}");
        }
    }

    #[test]
    fn an_obstacle_matters_only_to_those_who_follow_packets() {
        let status = |every| check_of(Err("no".to_owned()), every).status;
        assert_eq!([None, Some(0), Some(1)].map(status), [Status::Degraded, Status::Ok, Status::Missing]);
        assert_eq!(check_of(Ok(()), Some(1)).status, Status::Ok);
    }
}
