//! Features of the running kernel that not every kernel has.

use std::{env, fmt, io, os::fd::AsFd as _, path::Path};

use aya::{
    programs::ProgramType,
    sys::{BpfHelper, is_helper_supported},
};

use pping_common::parse::Direction;

use super::bpf::{self, Instruction};
use crate::kernel::Error;

/// The environment variable that lists features to treat as missing: for tests, and to find out whether a feature is to
/// blame.
pub const WITHOUT: &str = "PPING_WITHOUT";

/// A kernel feature that pping prefers to have, but can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Atomic instructions that return the old value (Linux 5.12, on arm64 5.18).
    Fetch,
    /// A helper that walks through a map in the kernel (Linux 5.13).
    ForEach,
    /// tc programs attached by links (Linux 6.6).
    Tcx,
    /// The kernel's types, for tools that inspect programs.
    Btf,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fetch, Self::ForEach, Self::Tcx, Self::Btf];

    /// The name in [`WITHOUT`] and in `pping check`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::ForEach => "for-each",
            Self::Tcx => "tcx",
            Self::Btf => "btf",
        }
    }

    /// The first kernel that has it, or the kernel's build option.
    pub fn since(self) -> &'static str {
        match self {
            Self::Fetch => "Linux 5.12 (5.18 on arm64)",
            Self::ForEach => "Linux 5.13",
            Self::Tcx => "Linux 6.6",
            Self::Btf => "CONFIG_DEBUG_INFO_BTF",
        }
    }

    /// The behaviour of pping without it.
    pub fn instead(self) -> &'static str {
        match self {
            Self::Fetch => "pping locks flows with atomic additions",
            Self::ForEach => "pping sweeps with a system call for each flow that is due",
            Self::Tcx => {
                "pping uses clsact filters, which stop measuring a few seconds after pping is killed"
            }
            Self::Btf => "nothing changes, except for tools that inspect the programs",
        }
    }

    /// Whether the running kernel has it.
    ///
    /// # Errors
    /// If that cannot be found out, for example without the capabilities to load a program.
    fn probe(self) -> io::Result<bool> {
        match self {
            Self::Fetch => has_fetch(compile(&EXCHANGE), || compile(&LOAD)),
            Self::ForEach => {
                is_helper_supported(ProgramType::RawTracePoint, BpfHelper::BPF_FUNC_for_each_map_elem)
                    .map_err(io::Error::other)
            }
            // No interface has this ifindex. A kernel with TCX says so (`ENODEV`); one without fails before it looks.
            Self::Tcx => {
                let program = bpf::load_classifier(&NOTHING)?;
                match bpf::attach_tcx(program.as_fd(), i32::MAX as u32, Direction::Ingress) {
                    Err(error) if error.raw_os_error() != Some(libc::ENODEV) => Ok(false),
                    _ => Ok(true),
                }
            }
            Self::Btf => Ok(Path::new("/sys/kernel/btf/vmlinux").exists()),
        }
    }
}

/// The error of a kernel that runs no program without compiling it, and cannot compile this one (`ENOTSUPP`). The C
/// library does not have it.
pub(super) const NOT_SUPPORTED: i32 = 524;

/// Whether the kernel has [`Feature::Fetch`], from how it took a program with such an instruction, and one of the same
/// length without: each the bytes of its machine code, 0 if the kernel interprets it.
///
/// arm64 verifies these instructions since 5.12, but compiles them since 5.18. In between it interprets a whole program
/// for one of them, or does not load it if it was built without the interpreter.
fn has_fetch(with: io::Result<u32>, without: impl FnOnce() -> io::Result<u32>) -> io::Result<bool> {
    match with {
        Ok(0) => Ok(without()? == 0),
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | NOT_SUPPORTED)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Loads a program, and returns the bytes of its machine code.
fn compile(instructions: &[Instruction]) -> io::Result<u32> {
    bpf::machine_code_len(bpf::load_classifier(instructions)?.as_fd())
}

/// `r0 = 0; exit`
const NOTHING: [Instruction; 2] = [
    Instruction { code: 0xb7, registers: 0, offset: 0, immediate: 0 },
    Instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 },
];

/// `r0 = 0; *(u64 *)(r10 - 8) = r0; r0 = xchg_64(r10 - 8, r0); r0 = 0; exit`
const EXCHANGE: [Instruction; 5] = [
    NOTHING[0],
    Instruction { code: 0x7b, registers: 0x0a, offset: -8, immediate: 0 },
    Instruction { code: 0xdb, registers: 0x0a, offset: -8, immediate: 0xe1 },
    NOTHING[0],
    NOTHING[1],
];

/// The same, but `r0 = *(u64 *)(r10 - 8)` instead of the exchange.
const LOAD: [Instruction; 5] = [
    EXCHANGE[0],
    EXCHANGE[1],
    Instruction { code: 0x79, registers: 0xa0, offset: -8, immediate: 0 },
    EXCHANGE[3],
    EXCHANGE[4],
];

/// Features to treat as missing, whether the kernel has them or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisabledFeatures(u8);

impl DisabledFeatures {
    /// None.
    pub const NOTHING: Self = Self(0);

    /// Treats these features as missing.
    pub fn these(features: &[Feature]) -> Self {
        Self(features.iter().fold(0, |bits, &feature| bits | 1 << feature as u8))
    }

    /// Reads the features that [`WITHOUT`] lists.
    ///
    /// # Errors
    /// [`Error::UnknownFeature`] if a name is unknown.
    pub fn from_environment() -> Result<Self, Error> {
        Self::parse(&env::var(WITHOUT).unwrap_or_default())
    }

    fn parse(list: &str) -> Result<Self, Error> {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let feature = |name: &str| {
            Feature::ALL.into_iter().find(|feature| feature.name() == name).ok_or_else(|| {
                let known = Feature::ALL.map(Feature::name).join(", ");
                Error::UnknownFeature {
                    variable: WITHOUT,
                    list: list.to_owned(),
                    name: name.to_owned(),
                    known,
                }
            })
        };
        Ok(Self::these(&names.map(feature).collect::<Result<Vec<_>, _>>()?))
    }

    fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u8 != 0
    }
}

/// The features of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features([bool; Feature::ALL.len()]);

impl Features {
    /// Probes the running kernel, except for the features to treat as missing.
    ///
    /// # Errors
    /// If a feature cannot be probed, for example without the capabilities to load a program.
    pub fn probe(without: DisabledFeatures) -> io::Result<Self> {
        bpf::lift_memory_limit();
        let mut features = Self([false; Feature::ALL.len()]);
        for feature in Feature::ALL {
            features.0[feature as usize] = !without.has(feature) && feature.probe()?;
        }
        Ok(features)
    }

    /// Whether the kernel has it.
    pub fn has(&self, feature: Feature) -> bool {
        self.0[feature as usize]
    }

    /// The missing features.
    pub fn missing(&self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(|&feature| !self.has(feature))
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreted_program_does_not_prove_the_feature() {
        let failed = |error| Err(io::Error::from_raw_os_error(error));
        let unneeded = || unreachable!("it answers nothing");
        assert!(has_fetch(Ok(80), unneeded).unwrap());
        // Before 5.12, and on arm64 before 5.18 without an interpreter.
        assert!(!has_fetch(failed(libc::EINVAL), unneeded).unwrap());
        assert!(!has_fetch(failed(524), unneeded).unwrap());
        // On arm64 before 5.18 with an interpreter.
        assert!(!has_fetch(Ok(0), || Ok(60)).unwrap());
        // The kernel interprets everything.
        assert!(has_fetch(Ok(0), || Ok(0)).unwrap());
        let not_allowed = has_fetch(failed(libc::EPERM), unneeded).unwrap_err();
        assert_eq!(not_allowed.raw_os_error(), Some(libc::EPERM));
        assert!(has_fetch(Ok(0), || failed(libc::EPERM)).is_err());
    }

    #[test]
    fn a_list_is_of_features_and_of_nothing_else() {
        assert_eq!(DisabledFeatures::parse("").unwrap(), DisabledFeatures::NOTHING);
        let both = DisabledFeatures::parse("tcx, for-each").unwrap();
        assert_eq!(both, DisabledFeatures::these(&[Feature::Tcx, Feature::ForEach]));
        assert!(both.has(Feature::Tcx) && !both.has(Feature::Fetch));
        let error = DisabledFeatures::parse("tcx,foreach").unwrap_err().to_string();
        assert!(error.contains("PPING_WITHOUT=tcx,foreach") && error.contains("fetch, for-each"), "{error}");
    }
}
