//! The programs and maps of a loaded object by their names.

use aya::{
    Ebpf,
    maps::{Map, MapData},
    programs::{Program, ProgramError, RawTracePoint, SchedClassifier, Xdp},
};
use pping_common::abi::Direction;

use crate::kernel::Error;

/// The name of the tc program for a direction.
pub(super) fn tc_program(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => "pping_ingress",
        Direction::Egress => "pping_egress",
    }
}

/// One of the two tc programs.
pub fn classifier<'a>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, Error> {
    program_mut(programs, name)
}

/// The XDP program.
pub fn xdp(programs: &mut Ebpf) -> Result<&mut Xdp, Error> {
    program_mut(programs, "pping_xdp")
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
pub(super) fn refused(what: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Load { what: what.to_owned(), source: source.into() }
}
