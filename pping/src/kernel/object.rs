//! The compiled kernel programs, one set for each kind of kernel, and the programs and maps in them by their names.

use std::{error::Error as StdError, io};

use aya::{
    Ebpf,
    maps::{Map, MapData},
    programs::{Program, ProgramError, RawTracePoint, SchedClassifier, Xdp},
};
use pping_common::abi::PacketProgram;

use super::features::{Feature, Features, NOT_SUPPORTED};
use crate::{kernel::Error, memory};

static NEWEST: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs"));

/// For kernels that lack [`Feature::Fetch`].
static ADD_ONLY: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pping-programs-add-only"));

/// Returns the programs that a kernel with these features accepts.
///
/// # Errors
/// If this build has programs for other kernels only: `cargo xtask run` compiles them just for the kernel that runs it.
pub fn for_features(features: Features) -> Result<&'static [u8], Error> {
    present(if features.has(Feature::Fetch) { NEWEST } else { ADD_ONLY })
}

fn present(programs: &[u8]) -> Result<&[u8], Error> {
    if programs.is_empty() { Err(Error::OtherKernel) } else { Ok(programs) }
}

/// Gives back the memory that loading took: aya reads all types of the kernel. Also gives back the pages of the object, which is not read any more.
pub(super) fn release_memory(object: &'static [u8]) {
    // SAFETY: it takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let whole_pages = object.as_ptr() as usize..object.as_ptr() as usize + object.len();
    let (start, end) = (whole_pages.start.next_multiple_of(page), whole_pages.end / page * page);
    if start < end {
        // SAFETY: read-only pages of the program file, which the kernel reads again on the next access.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
    memory::give_back();
}

/// One of the two tc programs, by its [name](PacketProgram::name).
pub fn classifier<'a>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, Error> {
    program_mut(programs, name)
}

/// The XDP program.
pub fn xdp(programs: &mut Ebpf) -> Result<&mut Xdp, Error> {
    program_mut(programs, PacketProgram::Xdp.name())
}

/// One of the two sweep programs.
pub fn sweep_program<'a>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut RawTracePoint, Error> {
    program_mut(programs, name)
}

pub(super) fn program_mut<'a, P>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Error>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    programs
        .program_mut(name)
        .ok_or_else(|| refused(name, "it is not part of this build"))?
        .try_into()
        .map_err(|error| refused(name, error))
}

/// Takes a map out of the object, to read or write it directly.
pub(super) fn take_map(programs: &mut Ebpf, name: &str) -> Result<Map, Error> {
    programs.take_map(name).ok_or_else(|| refused(name, "it is not part of this build"))
}

/// Takes a map that is an array.
pub(super) fn array(programs: &mut Ebpf, name: &str) -> Result<MapData, Error> {
    match take_map(programs, name)? {
        Map::Array(map) => Ok(map),
        _ => Err(refused(name, "it is not an array")),
    }
}

/// Returns the error for a program or map that the kernel refuses or the object lacks.
pub(super) fn refused(what: &str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    let source = source.into();
    let source = match advice(&*source) {
        Some(advice) => format!("{source}: {advice}").into(),
        None => source,
    };
    Error::Load { what: what.to_owned(), source }
}

/// Returns the cause of an error, and what to do, if the kernel's answer tells.
fn advice(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<io::Error>()?.raw_os_error()? {
        libc::EMFILE => {
            Some("too many open files; allow more (`ulimit -n 1024`, or `LimitNOFILE=` of a systemd service)")
        }
        libc::ENFILE => Some("the system has too many open files (sysctl fs.file-max)"),
        libc::ENOMEM => Some(
            "the kernel has not enough memory, or the control group may not use as much; with --profile small the \
             maps take less than 16 MiB, and a lower --max-flows saves memory, too (see pping check)",
        ),
        NOT_SUPPORTED => Some(
            "the kernel did not compile the program (ENOTSUPP); see sysctl net.core.bpf_jit_enable and \
             net.core.bpf_jit_limit",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use aya::maps::MapError;

    use super::*;

    #[test]
    fn programs_left_out_of_a_build_are_an_error() {
        assert_eq!(present(b"ELF").unwrap(), b"ELF");
        let said = present(b"").unwrap_err().to_string();
        assert!(said.contains("has no programs for this one; build it with `cargo xtask build"), "{said}");
    }

    #[test]
    fn this_build_has_programs_for_all_kernels() {
        assert!(!NEWEST.is_empty() && !ADD_ONLY.is_empty());
    }

    #[test]
    fn the_cause_of_a_failed_load_is_named() {
        let message = |errno| {
            let error = MapError::CreateError {
                name: "FLOWS_V4".to_owned(),
                io_error: io::Error::from_raw_os_error(errno),
            };
            refused("the maps", error).to_string()
        };
        for (errno, part) in [(libc::EMFILE, "ulimit -n"), (NOT_SUPPORTED, "net.core.bpf_jit_limit")] {
            let message = message(errno);
            assert!(message.contains("FLOWS_V4") && message.contains(part), "{message}");
        }
    }
}
