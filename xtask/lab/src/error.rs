use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Errors of the lab. Each message is complete, with the kernel's reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Namespaces, veth pairs and packet sockets need root.
    #[error("the lab makes network namespaces and packet sockets, which needs root: run it with sudo")]
    NotRoot,
    /// A program of the lab could not be started.
    #[error("cannot run `{program}`: {reason}{}", install_hint(program))]
    Start {
        /// The program as it was called.
        program: String,
        /// Why the kernel refused.
        reason: io::Error,
    },
    /// A program ran and failed.
    #[error("`{command}` failed ({status}): {stderr}")]
    Failed {
        /// The whole command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// Its standard error.
        stderr: String,
    },
    /// Something awaited did not happen.
    #[error("{awaited} did not happen within {timeout:?}{context}")]
    Timeout {
        /// What was awaited.
        awaited: String,
        /// For how long.
        timeout: Duration,
        /// What was seen instead; empty if nothing.
        context: String,
    },
    /// A capture lost packets, so nothing may be concluded from it.
    #[error("the capture {} is incomplete ({report}): give it a larger buffer or less traffic", file.display())]
    Incomplete {
        /// The file written so far.
        file: PathBuf,
        /// The counters as tcpdump printed them.
        report: String,
    },
    /// The echo differs from what was sent.
    #[error("the echo differs from what was sent, at byte {offset}")]
    Corrupt {
        /// The offset of the first byte that differs.
        offset: u64,
    },
    /// The kernel refused something.
    #[error("cannot {action}: {reason}")]
    System {
        /// What the lab was doing.
        action: String,
        /// Why the kernel refused.
        reason: io::Error,
    },
}

/// A result of the lab.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds what the lab was doing to an error of the kernel.
pub(crate) trait Context<T> {
    fn while_doing(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn while_doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::System { action: action(), reason: error.into() })
    }
}

/// Names the Debian package of a missing tool.
fn install_hint(program: &str) -> String {
    let package = match program {
        "ip" => "iproute2",
        "ping" => "iputils-ping",
        "dnsmasq" => "dnsmasq-base",
        "kea-dhcp4" => "kea-dhcp4-server",
        "kea-dhcp6" => "kea-dhcp6-server",
        "dhcpd" => "isc-dhcp-server",
        "dhclient" => "isc-dhcp-client",
        "radclient" => "freeradius-utils",
        "busybox" | "ethtool" | "tcpdump" | "iperf3" | "curl" | "tshark" => program,
        _ => return String::new(),
    };
    format!(" (on Debian and Ubuntu it is in the package {package})")
}
