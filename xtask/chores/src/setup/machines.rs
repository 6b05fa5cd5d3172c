//! Tools to boot other kernels.

use super::Missing;
use crate::{arch::Arch, environment};

const TOOLS: [Missing; 6] = [
    tool("cpio", &["cpio"]),
    tool("modprobe", &["kmod"]),
    tool("xz", &["xz-utils"]),
    tool("zstd", &["zstd"]),
    tool("readelf", &["binutils"]),
    tool("setpriv", &["util-linux"]),
];

/// The programs that the guest uses, if its processor is this machine's.
const GUEST_TOOLS: [Missing; 7] = [
    tool("busybox", &["busybox"]),
    tool("dash", &["dash"]),
    tool("ip", &["iproute2"]),
    tool("tc", &["iproute2"]),
    tool("ping", &["iputils-ping"]),
    tool("bpftool", &["bpftool"]),
    tool("tcpdump", &["tcpdump"]),
];

const fn tool(program: &'static str, packages: &'static [&'static str]) -> Missing {
    Missing { what: program, packages, elsewhere: "the package your distribution has it in" }
}

const fn emulator(arch: Arch) -> Missing {
    match arch {
        Arch::X86_64 => tool("qemu-system-x86_64", &["qemu-system-x86"]),
        Arch::Aarch64 => tool("qemu-system-aarch64", &["qemu-system-arm"]),
    }
}

/// Returns the programs for machines of an architecture that are not on `PATH`.
pub(super) fn missing(arch: Arch) -> Vec<Missing> {
    let is_own = Arch::of_host().is_ok_and(|host| host == arch);
    let guest_tools = GUEST_TOOLS.into_iter().filter(|_| is_own);
    let tools = TOOLS.into_iter().chain([emulator(arch)]).chain(guest_tools);
    tools.filter(|tool| environment::find_program(tool.what).is_none()).collect()
}
