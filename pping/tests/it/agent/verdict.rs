//! A tc program that hides accepted packets from programs behind it, as many do.

use std::{
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

use pping_lab::Topology;

use super::{foreign::WHERE, monitor::ok};

/// `r0 = TC_ACT_OK; exit`
const ACCEPT: [u64; 2] = [0xb7, 0x95];

// From linux/bpf.h.
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const SCHED_CLS: u32 = 3;
const TCX: [u32; 2] = [46, 47];

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    instructions_at: u64,
    license_at: u64,
}

#[repr(C)]
struct LinkCreate {
    program: i32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// Attaches one in each direction of the interface, behind all that are attached already, until dropped.
pub(super) fn accept_all(topology: &Topology) -> [OwnedFd; 2] {
    let load = ProgLoad {
        prog_type: SCHED_CLS,
        instructions: ACCEPT.len() as u32,
        instructions_at: ACCEPT.as_ptr() as u64,
        license_at: c"GPL".as_ptr() as u64,
    };
    let program = make(PROG_LOAD, &load);
    let ifindex = ok(topology.router().enter(|| ifindex_of(WHERE)));
    TCX.map(|attach_type| {
        let link = LinkCreate { program: program.as_raw_fd(), ifindex, attach_type, flags: 0 };
        ok(topology.router().enter(|| make(LINK_CREATE, &link)))
    })
}

fn ifindex_of(name: &str) -> u32 {
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the string ends with a zero byte.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

fn make<T>(command: libc::c_long, attributes: &T) -> OwnedFd {
    // SAFETY: the length is that of the attributes, and what they point to is static.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    assert!(result >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(result as i32) }
}
