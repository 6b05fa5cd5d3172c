//! The stages of a packet, and the arrays by which programs call them.

use std::path::PathBuf;

use aya::{
    Ebpf,
    maps::{Map, MapError, ProgramArray},
    programs::{ProgramError, ProgramFd},
};
use pping_common::abi::Stage;

use crate::kernel::{
    Error,
    object::refused,
    pins::{self, Pins},
};

/// A kind of hook. Programs call only stages of their own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// tc, at ingress and at egress.
    Tc,
    /// XDP.
    Xdp,
}

impl Hook {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tc, Self::Xdp];

    /// The name of the array of its stages.
    fn stages(self) -> &'static str {
        match self {
            Self::Tc => "TC_STAGES",
            Self::Xdp => "XDP_STAGES",
        }
    }

    fn program(self, stage: Stage) -> String {
        let hook = match self {
            Self::Tc => "tc",
            Self::Xdp => "xdp",
        };
        format!("pping_{hook}_{}", stage.name())
    }
}

/// Whether a program with this name is called by others, not attached.
pub(super) fn is_stage(name: &str) -> bool {
    Hook::ALL.into_iter().any(|hook| Stage::ALL.into_iter().any(|stage| hook.program(stage) == name))
}

/// Makes the programs of some hooks call their stages, which are loaded already. The slow paths come last, one right
/// after the other: only they insert flows, and the stages that they call are there by then.
pub(super) fn fill(programs: &mut Ebpf, hooks: &[Hook]) -> Result<(), Error> {
    for stage in Stage::ALL.into_iter().rev() {
        for &hook in hooks {
            let name = hook.program(stage);
            let program = descriptor(programs, &name).map_err(|error| refused(&name, error))?;
            let map = programs.map_mut(hook.stages()).ok_or_else(|| no_map(hook))?;
            ProgramArray::try_from(map)?.set(stage as u32, &program, 0)?;
        }
    }
    Ok(())
}

/// Pins the arrays. The kernel empties an array that is neither pinned nor open, and programs that outlive the agent
/// could not call their stages any more.
pub(super) fn pin(programs: &Ebpf, pins: &Pins) -> Result<(), Error> {
    for hook in Hook::ALL {
        let (map, path) = array(programs, hook, pins)?;
        map.pin(&path).map_err(|error| Error::Pin { path, reason: error.to_string() })?;
    }
    Ok(())
}

/// Returns the paths of the pinned arrays.
///
/// # Errors
/// If the kernel does not know them.
pub fn pinned(programs: &Ebpf, pins: &Pins) -> Result<[PathBuf; Hook::ALL.len()], Error> {
    let [tc, xdp] = Hook::ALL.map(|hook| array(programs, hook, pins).map(|(_, path)| path));
    Ok([tc?, xdp?])
}

/// Removes the pins of the arrays.
///
/// # Errors
/// If the kernel does not know them, or if a pin cannot be removed.
pub fn unpin(programs: &Ebpf, pins: &Pins) -> Result<(), Error> {
    pinned(programs, pins)?.iter().try_for_each(|path| pins::remove(path))
}

/// Returns an array and the path of its pin, which is unique to a run: while links move to the programs of a new run,
/// some still run those of the old one.
fn array<'a>(programs: &'a Ebpf, hook: Hook, pins: &Pins) -> Result<(&'a Map, PathBuf), Error> {
    let map = programs.map(hook.stages()).ok_or_else(|| no_map(hook))?;
    let Map::ProgramArray(data) = map else { return Err(no_map(hook).into()) };
    Ok((map, pins.stages(hook.stages(), data.info()?.id())))
}

fn no_map(hook: Hook) -> MapError {
    MapError::InvalidName { name: hook.stages().to_owned() }
}

fn descriptor(programs: &Ebpf, name: &str) -> Result<ProgramFd, ProgramError> {
    let program = programs.program(name).ok_or(ProgramError::NotLoaded)?;
    Ok(program.fd()?.try_clone()?)
}
