//! The commands of bpf(2) that aya does not offer.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use aya::programs::ProgramFd;
use pping_common::parse::Direction;
use rustix::process::{Resource, Rlimit, setrlimit};

// Of `enum bpf_cmd` in linux/bpf.h.
const PROG_LOAD: libc::c_long = 5;
const OBJ_PIN: libc::c_long = 6;
const OBJ_GET: libc::c_long = 7;
const PROG_TEST_RUN: libc::c_long = 10;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const PROG_QUERY: libc::c_long = 16;
const LINK_CREATE: libc::c_long = 28;
const LINK_DETACH: libc::c_long = 34;

/// `BPF_PROG_TYPE_SCHED_CLS` of `enum bpf_prog_type`.
const SCHED_CLS: u32 = 3;
// Of `enum bpf_attach_type`.
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;
const XDP: u32 = 37;
/// The most programs that the kernel attaches at one attach point (`BPF_MPROG_MAX`).
const MAX_PROGRAMS: usize = 64;
/// `BPF_F_BEFORE` without naming a program: before all others.
const BEFORE: u32 = 1 << 3;

/// An instruction, `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Instruction {
    pub(super) code: u8,
    /// The destination register in the lower half, the source register in the upper.
    pub(super) registers: u8,
    pub(super) offset: i16,
    pub(super) immediate: i32,
}

/// The first fields of a command's part of `union bpf_attr`.
#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
}

#[repr(C)]
struct ProgTestRun {
    prog_fd: u32,
    retval: u32,
}

#[repr(C)]
struct Object {
    pathname: u64,
    bpf_fd: u32,
    file_flags: u32,
}

#[repr(C)]
struct ObjectInfo {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// The first fields of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgInfo {
    prog_type: u32,
    id: u32,
    tag: [u8; 8],
    jited_prog_len: u32,
    xlated_prog_len: u32,
}

/// The first fields of `struct bpf_link_info`, of a link to an interface.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    link_type: u32,
    id: u32,
    prog_id: u32,
    /// The rest depends on the type, and begins at a multiple of 8.
    padding: u32,
    ifindex: u32,
    attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct LinkDetach {
    link_fd: u32,
}

/// The whole part of `union bpf_attr` for queries, since the kernel writes its last field (`revision`).
#[repr(C)]
#[derive(Default)]
struct ProgQuery {
    target_ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    count: u32,
    reserved: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// Lifts the limit of locked memory, if this process may. Before Linux 5.11 the programs and maps of all processes of
/// the same user count against it.
pub(super) fn lift_memory_limit() {
    let unlimited = Rlimit { current: None, maximum: None };
    if let Err(error) = setrlimit(Resource::Memlock, unlimited) {
        // Linux 5.11 and newer have no use for that limit.
        tracing::debug!("cannot raise the limit of locked memory: {error}");
    }
}

/// Loads a tc program.
///
/// # Errors
/// The error of the kernel, for example if it does not know an instruction.
pub(super) fn load_classifier(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    make(
        PROG_LOAD,
        &mut ProgLoad {
            prog_type: SCHED_CLS,
            insn_cnt: instructions.len() as u32,
            insns: instructions.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
        },
    )
}

/// Runs a program that needs no packet. (aya runs only programs of an [`aya::Ebpf`], which one thread has at a time.)
///
/// # Errors
/// The error of the kernel.
pub(super) fn run(program: &ProgramFd) -> io::Result<()> {
    let program = program.as_fd().as_raw_fd() as u32;
    call(PROG_TEST_RUN, &mut ProgTestRun { prog_fd: program, retval: 0 }).map(drop)
}

/// Returns the bytes of machine code of a program: 0 if the kernel interprets it.
///
/// # Errors
/// The error of the kernel.
pub(super) fn machine_code_len(program: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = ProgInfo::default();
    let mut query = ObjectInfo {
        bpf_fd: program.as_raw_fd() as u32,
        info_len: size_of::<ProgInfo>() as u32,
        info: &raw mut info as u64,
    };
    call(OBJ_GET_INFO_BY_FD, &mut query)?;
    Ok(info.jited_prog_len)
}

/// Attaches a tc program to an interface by a TCX link, before all others. Takes the ifindex, because another interface
/// may have the name by now.
///
/// # Errors
/// The error of the kernel.
pub(super) fn attach_tcx(program: BorrowedFd<'_>, ifindex: u32, direction: Direction) -> io::Result<OwnedFd> {
    let mut target = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: ifindex,
        attach_type: attach_type(direction),
        flags: BEFORE,
    };
    make(LINK_CREATE, &mut target)
}

/// Returns the ids of the programs that are attached by TCX, in the order in which they run.
///
/// # Errors
/// The error of the kernel, for example without `CAP_NET_ADMIN`. A kernel without TCX is no error: it has no such
/// programs.
pub(crate) fn tcx(ifindex: u32, direction: Direction) -> io::Result<Vec<u32>> {
    let mut ids = [0_u32; MAX_PROGRAMS];
    let mut query = ProgQuery {
        target_ifindex: ifindex,
        attach_type: attach_type(direction),
        prog_ids: ids.as_mut_ptr() as u64,
        count: ids.len() as u32,
        ..ProgQuery::default()
    };
    match call(PROG_QUERY, &mut query) {
        Ok(_) => Ok(ids.into_iter().take(query.count as usize).collect()),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Attaches an XDP program to an interface by a link, in the driver or as generic XDP.
///
/// # Errors
/// The error of the kernel.
pub(super) fn attach_xdp(program: BorrowedFd<'_>, ifindex: u32, is_native: bool) -> io::Result<OwnedFd> {
    // Of linux/if_link.h.
    const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
    const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
    let mut target = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: ifindex,
        attach_type: XDP,
        flags: if is_native { XDP_FLAGS_DRV_MODE } else { XDP_FLAGS_SKB_MODE },
    };
    make(LINK_CREATE, &mut target)
}

/// Returns the interface of a TCX or XDP link; `None` if that is gone, or the program was detached from it.
///
/// # Errors
/// The error of the kernel.
pub(super) fn interface_of(link: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    let mut info = LinkInfo::default();
    let mut query = ObjectInfo {
        bpf_fd: link.as_raw_fd() as u32,
        info_len: size_of::<LinkInfo>() as u32,
        info: &raw mut info as u64,
    };
    call(OBJ_GET_INFO_BY_FD, &mut query)?;
    Ok((info.ifindex != 0).then_some(info.ifindex))
}

/// Pins the object of a descriptor.
///
/// # Errors
/// The error of the kernel.
pub(super) fn pin(object: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut object =
        Object { pathname: path.as_ptr() as u64, bpf_fd: object.as_raw_fd() as u32, file_flags: 0 };
    call(OBJ_PIN, &mut object).map(drop)
}

/// Opens a pinned object.
///
/// # Errors
/// The error of the kernel.
pub(super) fn open(pinned: &CStr) -> io::Result<OwnedFd> {
    make(OBJ_GET, &mut Object { pathname: pinned.as_ptr() as u64, bpf_fd: 0, file_flags: 0 })
}

/// Detaches the program of a link.
///
/// # Errors
/// The error of the kernel, for example if the interface is gone already.
pub(super) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    call(LINK_DETACH, &mut LinkDetach { link_fd: link.as_raw_fd() as u32 }).map(drop)
}

fn attach_type(direction: Direction) -> u32 {
    match direction {
        Direction::Ingress => TCX_INGRESS,
        Direction::Egress => TCX_EGRESS,
    }
}

/// Calls a command that returns a new descriptor.
fn make<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    let descriptor = call(command, attributes)?;
    // SAFETY: the kernel has just made this descriptor, and only this call knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Calls a command, which may write its answer into the attributes.
fn call<T>(command: libc::c_long, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the size is that of the attributes, and the caller keeps alive what they point to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}
