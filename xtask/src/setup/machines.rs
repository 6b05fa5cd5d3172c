//! Tools to boot other kernels.

use super::Missing;
use crate::environment;

const TOOLS: [Missing; 13] = [
    tool("qemu-system-x86_64", &["qemu-system-x86"]),
    tool("busybox", &["busybox"]),
    tool("dash", &["dash"]),
    tool("cpio", &["cpio"]),
    tool("modprobe", &["kmod"]),
    tool("xz", &["xz-utils"]),
    tool("strip", &["binutils"]),
    tool("setpriv", &["util-linux"]),
    tool("ip", &["iproute2"]),
    tool("tc", &["iproute2"]),
    tool("ping", &["iputils-ping"]),
    tool("bpftool", &["bpftool"]),
    tool("tcpdump", &["tcpdump"]),
];

const fn tool(program: &'static str, packages: &'static [&'static str]) -> Missing {
    Missing { what: program, packages, elsewhere: "the package your distribution has it in" }
}

/// Returns the programs that are not on `PATH`.
pub(super) fn missing() -> Vec<Missing> {
    TOOLS.into_iter().filter(|tool| environment::find_program(tool.what).is_none()).collect()
}
