//! The stages of a packet, and the arrays by which programs call them.

use aya::{
    Ebpf,
    maps::{MapError, ProgramArray},
    programs::{Program, ProgramError, ProgramFd},
};
use pping_common::abi::Stage;

use crate::kernel::{Error, lookup::refused};

/// A kind of hook. Programs call those of their own kind only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// tc, at ingress and at egress.
    Tc,
    /// XDP.
    Xdp,
}

impl Hook {
    /// The name of the array of its stages.
    pub(in crate::kernel) fn stages(self) -> &'static str {
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

/// Loads the stages of a hook that are not loaded yet, and has its programs call them.
///
/// # Errors
/// When the kernel does not accept them.
pub fn load(programs: &mut Ebpf, hook: Hook) -> Result<(), Error> {
    for stage in Stage::ALL {
        let name = hook.program(stage);
        match programs.program_mut(&name) {
            Some(Program::SchedClassifier(program)) if program.fd().is_err() => program.load(),
            Some(Program::Xdp(program)) if program.fd().is_err() => program.load(),
            _ => continue,
        }
        .map_err(|error| refused(&name, error))?;
    }
    fill(programs, hook)
}

/// Has the programs of a hook call its stages, which are loaded.
pub(super) fn fill(programs: &mut Ebpf, hook: Hook) -> Result<(), Error> {
    for stage in Stage::ALL {
        let name = hook.program(stage);
        let program = descriptor(programs, &name).map_err(|error| refused(&name, error))?;
        let map = programs
            .map_mut(hook.stages())
            .ok_or_else(|| MapError::InvalidName { name: hook.stages().to_owned() })?;
        ProgramArray::try_from(map)?.set(stage as u32, &program, 0)?;
    }
    Ok(())
}

fn descriptor(programs: &Ebpf, name: &str) -> Result<ProgramFd, ProgramError> {
    let program = programs.program(name).ok_or(ProgramError::NotLoaded)?;
    Ok(program.fd()?.try_clone()?)
}
