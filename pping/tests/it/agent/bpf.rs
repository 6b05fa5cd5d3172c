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

/// What a program returns, which also decides its `enum bpf_prog_type`.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    /// `TC_ACT_UNSPEC`: the next program decides.
    TcNext = -1,
    /// `TC_ACT_OK`: accepts the packet, so no later program sees it. Many programs do this.
    TcAccept = 0,
    XdpPass = 2,
}

/// `enum bpf_attach_type`
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum AttachType {
    Xdp = 37,
    TcxIngress = 46,
    TcxEgress = 47,
}

/// A loaded program. The kernel unloads it on drop unless something else holds it.
pub(super) struct Program {
    descriptor: OwnedFd,
    pub(super) id: u32,
}

impl Program {
    /// Loads a program that only returns a verdict. Its name has at most 15 letters, digits and underscores.
    pub(super) fn load(verdict: Verdict, name: &str) -> Self {
        const SCHED_CLS: u32 = 3;
        const XDP: u32 = 6;
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
        let prog_type = match verdict {
            Verdict::XdpPass => XDP,
            Verdict::TcNext | Verdict::TcAccept => SCHED_CLS,
        };
        // `r0 = verdict; exit`
        let instructions = [0xb7 | u64::from(verdict as i32 as u32) << 32, 0x95];
        let mut prog_name = [0; 16];
        prog_name[..name.len()].copy_from_slice(name.as_bytes());
        let descriptor = make(
            PROG_LOAD,
            &ProgLoad {
                prog_type,
                insn_cnt: 2,
                insns: instructions.as_ptr() as u64,
                license: c"GPL".as_ptr() as u64,
                log: [0; 2],
                kern_version: 0,
                prog_flags: 0,
                prog_name,
            },
        );
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd())).unwrap();
        let id = info.lines().find_map(|line| line.strip_prefix("prog_id:")).unwrap().trim().parse().unwrap();
        Self { descriptor, id }
    }

    /// Attaches the program by a link, until the link is dropped.
    pub(super) fn attach(&self, host: &Namespace, interface: &str, attach_type: AttachType) -> OwnedFd {
        let name = std::ffi::CString::new(interface).unwrap();
        let link = host.enter(|| {
            // SAFETY: the name ends with a zero.
            let ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) };
            make(LINK_CREATE, &[self.descriptor.as_raw_fd() as u32, ifindex, attach_type as u32, 0])
        });
        ok(link)
    }

    /// Pins the program, so that tc can find it.
    pub(super) fn pin(&self, path: &Path) {
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        call(OBJ_PIN, &[path.as_ptr() as u64, self.descriptor.as_raw_fd() as u64]);
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
