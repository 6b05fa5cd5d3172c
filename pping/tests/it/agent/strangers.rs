//! Foreign BPF programs, loaded without aya.

use std::{
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::Path,
};

use pping_lab::Namespace;

use super::monitor::ok;

// From `enum bpf_cmd` in linux/bpf.h.
const PROG_LOAD: libc::c_long = 5;
const OBJ_PIN: libc::c_long = 6;
const LINK_CREATE: libc::c_long = 28;

/// `enum bpf_prog_type`
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Kind {
    Tc = 3,
    Xdp = 6,
}

/// `enum bpf_attach_type`
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Place {
    Xdp = 37,
    TcxIngress = 46,
    TcxEgress = 47,
}

/// A loaded program. It disappears when dropped, unless something else holds it.
pub(super) struct Foreign {
    program: OwnedFd,
    pub(super) id: u32,
}

impl Foreign {
    /// Loads a program that passes every packet on. Its name has at most 15 letters, digits and underscores.
    pub(super) fn load(kind: Kind, name: &str) -> Self {
        #[repr(C)]
        struct ProgLoad {
            prog_type: u32,
            insn_cnt: u32,
            insns: u64,
            license: u64,
            log: [u64; 2],
            kern_version: u32,
            prog_flags: u32,
            prog_name: [u8; 16],
        }
        // `XDP_PASS` and `TC_ACT_UNSPEC`.
        let verdict: i32 = match kind {
            Kind::Xdp => 2,
            Kind::Tc => -1,
        };
        // `r0 = verdict; exit`
        let instructions = [0xb7 | u64::from(verdict as u32) << 32, 0x95];
        let mut prog_name = [0; 16];
        prog_name[..name.len()].copy_from_slice(name.as_bytes());
        let program = make(
            PROG_LOAD,
            &ProgLoad {
                prog_type: kind as u32,
                insn_cnt: 2,
                insns: instructions.as_ptr() as u64,
                license: c"GPL".as_ptr() as u64,
                log: [0; 2],
                kern_version: 0,
                prog_flags: 0,
                prog_name,
            },
        );
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).unwrap();
        let id = info.lines().find_map(|line| line.strip_prefix("prog_id:")).unwrap().trim().parse().unwrap();
        Self { program, id }
    }

    /// Attaches it by a link, until the link is dropped.
    pub(super) fn attach(&self, host: &Namespace, interface: &str, place: Place) -> OwnedFd {
        let name = std::ffi::CString::new(interface).unwrap();
        let link = host.enter(|| {
            // SAFETY: the name ends with a zero.
            let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
            make(LINK_CREATE, &[self.program.as_raw_fd() as u32, ifindex, place as u32, 0])
        });
        ok(link)
    }

    /// Pins it, so that tc can find it.
    pub(super) fn pin(&self, path: &Path) {
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        call(OBJ_PIN, &[path.as_ptr() as u64, self.program.as_raw_fd() as u64]);
    }
}

fn make<T>(command: libc::c_long, attributes: &T) -> OwnedFd {
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(call(command, attributes)) }
}

fn call<T>(command: libc::c_long, attributes: &T) -> i32 {
    // SAFETY: the length is that of the attributes, and the caller keeps alive what they point to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    assert!(result >= 0, "bpf({command}): {}", io::Error::last_os_error());
    result as i32
}
