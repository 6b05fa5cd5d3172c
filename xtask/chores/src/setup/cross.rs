//! Tools to compile for another processor, and to run its programs.

use std::path::Path;

use super::Missing;
use crate::{arch::Arch, environment};

/// Needed to compile for 64-bit ARM on another processor. The second is a file, because GNU's compiler comes without a
/// C library.
const FOR_AARCH64: [Missing; 3] = [
    Missing {
        what: "aarch64-linux-gnu-gcc",
        packages: &["gcc-aarch64-linux-gnu"],
        elsewhere: "the package your distribution has it in (Debian's excludes gcc-multilib: remove that first)",
    },
    missing_tool("/usr/aarch64-linux-gnu/lib/libc.a", &["libc6-dev-arm64-cross"]),
    missing_tool("qemu-aarch64-static", &["qemu-user-static"]),
];

const fn missing_tool(what: &'static str, packages: &'static [&'static str]) -> Missing {
    Missing { what, packages, elsewhere: "the package your distribution has it in" }
}

/// Returns the tools for an architecture that are not here. Programs for this machine's own need none of them.
pub(super) fn missing(arch: Arch) -> Vec<Missing> {
    let is_own = Arch::of_host().is_ok_and(|host| host == arch);
    let tools = FOR_AARCH64.into_iter().filter(|_| !is_own && arch == Arch::Aarch64);
    tools.filter(|tool| !is_here(tool.what)).collect()
}

fn is_here(what: &str) -> bool {
    if what.starts_with('/') { Path::new(what).is_file() } else { environment::find_program(what).is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_programs_are_looked_for() {
        assert!(is_here("/etc/passwd") && is_here("sh"));
        assert!(!is_here("/etc/no-such-file") && !is_here("no-such-program"));
    }
}
