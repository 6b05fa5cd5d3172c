//! The processors that pping is released for.

use anyhow::{Result, bail};
use clap::{ValueEnum, builder::PossibleValue};

/// A processor architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Returns the architecture of this machine.
    pub fn of_host() -> Result<Self> {
        match Self::ALL.into_iter().find(|arch| arch.name() == std::env::consts::ARCH) {
            Some(arch) => Ok(arch),
            None => bail!("pping is released for x86_64 and aarch64, and this is {}", std::env::consts::ARCH),
        }
    }

    /// The name in the kernel, in RPM packages, and in archives.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The name in Debian and in container images.
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The name of the target of Rust's compiler.
    pub fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The prefix of the names of GNU's compiler and tools, which Debian installs under this name on the architecture
    /// itself as well.
    pub fn gnu(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
        }
    }
}

/// On a command line an architecture has Debian's name.
impl ValueEnum for Arch {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "64-bit ARM",
        };
        Some(PossibleValue::new(self.debian()).help(help))
    }
}
