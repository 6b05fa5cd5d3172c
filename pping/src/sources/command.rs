//! The commands of sources.

use std::{path::PathBuf, sync::Arc};

use clap::Subcommand;

use super::{
    dhcp::{self, DhcpArguments},
    error::Error,
    radius::{self, RadiusArguments},
    shaped_devices::{self, ShapedDevicesArguments},
};

/// The programs that tell a running pping which prefix belongs to whom.
#[derive(Clone, Debug, Subcommand)]
pub enum SourceCommand {
    /// Take names from RADIUS accounting: listen for what a BNG or another NAS reports of its sessions
    ///
    /// It runs until it is stopped, and needs no privileges. An address has the name of its session from the moment at which the
    /// NAS reports it, and until the session ends or reports nothing for too long. What it said last stays when it stops.
    Radius(RadiusArguments),
    /// Take names from the lease files of Kea, dnsmasq and ISC's dhcpd, and follow them as they change
    ///
    /// It runs until it is stopped, and needs no privileges but to read the files. What it said last stays when it stops.
    Dhcp(DhcpArguments),
    /// Take names from `ShapedDevices.csv` of LibreQoS: the circuits, and their parent nodes
    ///
    /// All that came from it before is replaced, and what stays is not touched.
    ShapedDevices(ShapedDevicesArguments),
}

impl SourceCommand {
    /// Performs the command, for the pping at `socket`. `source` is who makes the changes, if the user said so.
    ///
    /// # Errors
    /// If it cannot start, or cannot go on.
    pub(crate) fn run(self, socket: PathBuf, source: Option<Arc<str>>) -> Result<(), Error> {
        let or = |default: &str| source.unwrap_or_else(|| default.into());
        match self {
            Self::Radius(asked) => radius::run(asked, socket, or("radius")),
            Self::Dhcp(asked) => dhcp::run(asked, socket, or("dhcp")),
            Self::ShapedDevices(asked) => shaped_devices::run(asked, socket, or("shaped-devices")),
        }
    }
}
