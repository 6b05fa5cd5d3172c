//! Errors between pping and the kernel.

use std::{io, path::PathBuf};

use pping_common::limits::DEFAULT_MAX_INTERFACES;

/// Why the kernel could not be used as wanted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A pattern of interface names is malformed.
    #[error("--interface {pattern}: give a name, or a pattern like 'ppp*' or 'eth[0-3]'")]
    InterfacePattern {
        /// The pattern.
        pattern: String,
    },
    /// An interface does not exist.
    #[error("--interface {name}: there is no such interface here; {hint}")]
    UnknownInterface {
        /// Its name.
        name: String,
        /// Similar names, or else the names that exist.
        hint: String,
    },
    /// An interface carries frames that pping cannot read.
    #[error(
        "--interface {name}: its link type {number} (ARPHRD in linux/if_arp.h) is not supported; give one \
         that carries Ethernet or IP alone (tun, WireGuard, ppp, IP tunnels)"
    )]
    UnsupportedLinkType {
        /// Its name.
        name: String,
        /// The kernel's number of its type.
        number: u16,
    },
    /// Joined interfaces are one.
    #[error("--interface {name}: {one} and {other} are names of the same interface; name it once")]
    JoinedTwice {
        /// The name of the joined interfaces.
        name: String,
        /// One name.
        one: String,
        /// The other.
        other: String,
    },
    /// Joined interfaces have packets that begin in different ways.
    #[error(
        "--interface {name}: the frames of {other} begin otherwise than those of {one} (one has Ethernet headers, the \
         other IP alone), so a flow cannot pass both; give them apart: -i {one} -i {other}"
    )]
    JoinedLinkTypes {
        /// The name of the joined interfaces.
        name: String,
        /// One of them.
        one: String,
        /// The one that does not fit.
        other: String,
    },
    /// There is no socket for promiscuous mode.
    #[error(
        "--mirror: no packet socket, which keeps the port in promiscuous mode: {0}; it takes CAP_NET_RAW: run as root, grant it \
         with `sudo setcap cap_bpf,cap_net_admin,cap_net_raw,cap_perfmon+ep PPING`, or for a service by `systemctl edit pping` \
         as in docs/placement.md"
    )]
    Promiscuous(#[source] io::Error),
    /// The kernel cannot walk through the list of so many interfaces.
    #[error(
        "--max-interfaces {wanted}: this kernel can have up to {DEFAULT_MAX_INTERFACES}; more take Linux 5.13 and programs that \
         are compiled (net.core.bpf_jit_enable)"
    )]
    MaxInterfaces {
        /// What was asked for.
        wanted: u32,
    },
    /// All interface ids are taken.
    #[error(
        "--interface {name}: there is no room for more interfaces; raise --max-interfaces (joined interfaces take one more than \
             they are)"
    )]
    TooManyInterfaces {
        /// The one too many.
        name: String,
    },
    /// A file or directory of `--pin` cannot be used.
    #[error("--pin {}: {reason}", path.display())]
    Pin {
        /// The file or directory.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The kernel lacks something that `--residence` needs.
    #[error("--residence: {reason}")]
    Residence {
        /// What it lacks, and which kernel has it.
        reason: String,
    },
    /// The list of features to treat as missing has an unknown name.
    #[error("{variable}={list}: there is no feature {name}; known features are {known}")]
    UnknownFeature {
        /// The variable of the environment.
        variable: &'static str,
        /// Its value.
        list: String,
        /// The unknown name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The kernel rejected a program or a map.
    #[error("the kernel rejected {what}: {source}")]
    Load {
        /// The program or map.
        what: String,
        /// The kernel's answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The programs for such a kernel were left out of this build.
    #[error(
        "this pping was built by `cargo xtask run` on another kernel, and has no programs for this one; build it with \
         `cargo xtask build --release`"
    )]
    OtherKernel,
    /// A program could not be attached.
    #[error("attaching to {interface} at {attach_point} failed: {reason}")]
    Attach {
        /// The interface.
        interface: String,
        /// The attach point.
        attach_point: &'static str,
        /// The kernel's answer, and what to do.
        reason: String,
    },
    /// Leftovers of a killed pping could not be removed.
    #[error("cannot remove leftovers of a killed pping on {interface}: {source}")]
    Cleanup {
        /// The interface.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A map of the kernel programs could not be read or written.
    #[error("cannot access a map of the kernel programs: {0}")]
    Map(Box<dyn std::error::Error + Send + Sync>),
    /// The kernel's routing socket failed.
    #[error("cannot get the interfaces from the kernel: {0}")]
    Netlink(Box<dyn std::error::Error + Send + Sync>),
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Returns the option whose value is wrong, if an option is at fault.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self::InterfacePattern { .. }
            | Self::UnknownInterface { .. }
            | Self::UnsupportedLinkType { .. }
            | Self::JoinedTwice { .. }
            | Self::JoinedLinkTypes { .. }
            | Self::TooManyInterfaces { .. } => Some("interface"),
            Self::MaxInterfaces { .. } => Some("max-interfaces"),
            Self::Promiscuous(_) => Some("mirror"),
            Self::Pin { .. } => Some("pin"),
            Self::Residence { .. } => Some("residence"),
            Self::UnknownFeature { .. }
            | Self::Load { .. }
            | Self::OtherKernel
            | Self::Attach { .. }
            | Self::Cleanup { .. }
            | Self::Map(_)
            | Self::Netlink(_)
            | Self::Io(_) => None,
        }
    }
}

impl From<aya::maps::MapError> for Error {
    fn from(error: aya::maps::MapError) -> Self {
        Self::Map(error.into())
    }
}

/// Returns the message of the innermost error, which is the kernel's.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
