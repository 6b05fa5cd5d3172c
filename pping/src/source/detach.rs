//! Detaching what is pinned, there and then.
//!
//! A link whose pin is removed detaches its program, but in the kernel's own time: until then the same program cannot be
//! attached there again, as it has to be where an interface got another name.

use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

// Of `enum bpf_cmd` in linux/bpf.h.
const BPF_OBJ_GET: libc::c_long = 7;
const BPF_LINK_DETACH: libc::c_long = 34;

/// What `BPF_OBJ_GET` takes, of `union bpf_attr`.
#[repr(C)]
struct ObjGet {
    pathname: u64,
    bpf_fd: u32,
    file_flags: u32,
}

/// What `BPF_LINK_DETACH` takes.
#[repr(C)]
struct LinkDetach {
    link_fd: u32,
}

/// Detaches the program of a link that is pinned; the link, of no use any more, stays until its pin is removed.
///
/// # Errors
/// What the kernel says, as when the interface is gone already.
pub(super) fn detach(pinned: &Path) -> io::Result<()> {
    let path = CString::new(pinned.as_os_str().as_bytes())?;
    let link = bpf(BPF_OBJ_GET, &ObjGet { pathname: path.as_ptr() as u64, bpf_fd: 0, file_flags: 0 })?;
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    let link = unsafe { OwnedFd::from_raw_fd(link) };
    bpf(BPF_LINK_DETACH, &LinkDetach { link_fd: link.as_raw_fd() as u32 }).map(drop)
}

fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<i32> {
    // SAFETY: the attributes are as long as is said, and the path they may point to lives as long as the caller's.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
