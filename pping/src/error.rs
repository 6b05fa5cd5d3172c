//! What can go wrong, said so that the reader knows what to do next.

use std::{fmt, io, net::SocketAddr, path::PathBuf, process::ExitCode};

use crate::{capture, output};

/// Why the agent stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option has a value that cannot be.
    #[error("{option} {value}: {hint}")]
    InvalidOption {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        hint: &'static str,
    },
    /// The environment or the configuration file says something that cannot be.
    #[error("{}", lines(.0))]
    Configuration(Vec<Fault>),
    /// The configuration file is not to be had.
    #[error("configuration file {}: {source}{}", path.display(), configuration_hint(source))]
    OpenConfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to measure.
    #[error(
        "--interface or --read is needed: try pping -i eth0, or pping -r trace.pcapng; \
         PPING_INTERFACE does not name one, and {} {hint}; see pping --help", file.display()
    )]
    NoSource {
        /// The file that could have said it.
        file: PathBuf,
        /// Why it did not.
        hint: &'static str,
    },
    /// Something is wrong with an option that is not on the command line.
    #[error("{error} (it is set by {origin})")]
    SetElsewhere {
        /// What is wrong.
        error: Box<Error>,
        /// The variable, or the file and line.
        origin: String,
    },
    /// Options that were put together from several places and cannot be together.
    #[error("{0}")]
    Usage(String),
    /// An interface that is not there.
    #[error("--interface {name}: there is no such interface here; {hint}")]
    UnknownInterface {
        /// Its name.
        name: String,
        /// The nearest names there are.
        hint: String,
    },
    /// An interface whose frames cannot be read.
    #[error(
        "--interface {name}: its link type {number} (ARPHRD in linux/if_arp.h) is not supported; Ethernet, \
         and interfaces that carry IP alone (tun, WireGuard, ppp, IP tunnels) are"
    )]
    UnsupportedLinkType {
        /// Its name.
        name: String,
        /// The kernel's number of its type.
        number: u16,
    },
    /// Too many interfaces.
    #[error("--interface {name}: no more interfaces can be watched by one pping; start another")]
    TooManyInterfaces {
        /// The one too many.
        name: String,
    },
    /// Capabilities are missing.
    #[error(
        "missing {missing}: run as root, or grant what is needed with\n  \
         sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {program}\n\
         (kernels before 5.8 want CAP_SYS_ADMIN instead of CAP_BPF and CAP_PERFMON)"
    )]
    MissingCapabilities {
        /// Their names.
        missing: String,
        /// The path of the running program.
        program: String,
    },
    /// `pping check` found that pping does not run here.
    #[error("pping cannot run here: {}", missing.join(", "))]
    Unfit {
        /// The titles of what is missing.
        missing: Vec<String>,
    },
    /// The kernel did not take the programs.
    #[error("the kernel did not accept {what}: {source}")]
    Load {
        /// What it did not accept.
        what: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A program could not be attached.
    #[error("attaching to {interface} at {hook} failed: {reason}")]
    Attach {
        /// The interface.
        interface: String,
        /// The hook.
        hook: &'static str,
        /// What the kernel said, and what to do.
        reason: String,
    },
    /// What a run that was killed left could not be removed.
    #[error("removing what a pping that was killed left on {interface} failed: {source}")]
    Cleanup {
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel programs' maps could not be read or written.
    #[error("a map of the kernel programs: {0}")]
    Map(Box<dyn std::error::Error + Send + Sync>),
    /// An interface went away.
    #[error("interface {name} is gone: it was deleted or renamed while it was being watched")]
    InterfaceGone {
        /// Its name.
        name: String,
    },
    /// The kernel's routing socket failed.
    #[error("asking the kernel for its interfaces failed: {0}")]
    Netlink(Box<dyn std::error::Error + Send + Sync>),
    /// There is nothing in this program to watch interfaces with.
    #[error(
        "--interface {interface}: this pping was built without the feature `live` and reads captures only (-r FILE); \
         build it with `cargo xtask build`"
    )]
    NotLive {
        /// The interfaces.
        interface: String,
    },
    /// An option that makes no sense with a capture.
    #[error("{option}: not with --read: {reason}")]
    NotOffline {
        /// The option.
        option: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The groups file is not to be had.
    #[error("--groups {}: {source}", path.display())]
    OpenGroups {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The groups file says something that cannot be.
    #[error("--groups {}:{line}:{column}: {reason}", path.display())]
    Groups {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The capture is not to be had.
    #[error("--read {}: {source}{hint}", path.display())]
    OpenCapture {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What may have been meant.
        hint: String,
    },
    /// The capture is no file that could be one.
    #[error("--read {}: {reason}", path.display())]
    NoCapture {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// The capture cannot be read, or not any further.
    #[error("--read {}: {fault}{}", path.display(), so_far(*packets))]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: capture::Fault,
        /// How many packets were read.
        packets: u64,
    },
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] output::Error),
    /// The address to serve metrics at is not to be had.
    #[error("--listen {address}: {source}{}", listen_hint(source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Nothing can be pinned there.
    #[error("--pin {}: {reason}", path.display())]
    Pin {
        /// The file or directory.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The web configuration is not to be had.
    #[error("--web-config {}: {source}", path.display())]
    OpenWebConfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The web configuration says something that cannot be.
    #[error("--web-config {}:{line}:{column}: {reason}", path.display())]
    WebConfig {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The character in the line, from 1.
        column: u64,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Something the operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Something wrong that somebody wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: a file with line and column, or a variable of the environment and its value.
    pub place: String,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.reason)
    }
}

fn lines(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}

impl Error {
    /// 2 for wrong usage, 1 for a failure while running.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::SetElsewhere { error, .. } => error.exit_code(),
            Self::Output(error) if error.option().is_some() => ExitCode::from(2),
            Self::InvalidOption { .. }
            | Self::Configuration(_)
            | Self::OpenConfig { .. }
            | Self::NoSource { .. }
            | Self::Usage(_)
            | Self::UnknownInterface { .. }
            | Self::UnsupportedLinkType { .. }
            | Self::TooManyInterfaces { .. }
            | Self::MissingCapabilities { .. }
            | Self::NotLive { .. }
            | Self::NotOffline { .. }
            | Self::OpenGroups { .. }
            | Self::Groups { .. }
            | Self::OpenCapture { .. }
            | Self::NoCapture { .. }
            | Self::Pin { .. }
            | Self::Listen { .. }
            | Self::OpenWebConfig { .. }
            | Self::WebConfig { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

fn so_far(packets: u64) -> String {
    match packets {
        0 => String::new(),
        _ => format!("; {packets} packets were read before that, and their samples are written"),
    }
}

fn configuration_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; `pping generate config` writes one to begin with",
        io::ErrorKind::PermissionDenied => "; have whoever runs pping read it",
        _ => "",
    }
}

fn listen_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; choose another port, or stop what listens there (ss -ltnp)",
        io::ErrorKind::AddrNotAvailable => "; give an address of this host",
        io::ErrorKind::PermissionDenied => {
            "; choose a port from 1024 on, or grant CAP_NET_BIND_SERVICE for those below"
        }
        _ => "",
    }
}
