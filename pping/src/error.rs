//! The error of pping, which gathers those of all modules. It knows the option at fault and the exit code.

#[cfg(feature = "live")]
use std::path::PathBuf;
use std::{io, process::ExitCode};

#[cfg(feature = "top")]
use crate::client;
#[cfg(feature = "history")]
use crate::history;
#[cfg(feature = "otlp")]
use crate::otlp;
#[cfg(feature = "live")]
use crate::{capabilities, groups_command, http, kernel};
use crate::{capture, config, features, groups::networks, output, text::FileError};

/// Why pping stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// The groups file is invalid.
    #[error("--groups {0}")]
    Groups(FileError),
    /// The groups socket could not be made.
    #[cfg(feature = "live")]
    #[error("--groups-socket {}: {reason}", path.display())]
    GroupsSocket {
        /// Its path.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// Another pping keeps its groups in the same file.
    #[cfg(feature = "live")]
    #[error("--groups-state {}: another pping keeps its groups in this file; give each its own", .0.display())]
    GroupsState(PathBuf),
    /// `pping groups` could not do what it was told.
    #[cfg(feature = "live")]
    #[error(transparent)]
    GroupsCommand(#[from] groups_command::Error),
    /// The groups file lacks columns of the tree.
    #[error("--roll-up: {0}")]
    RollUp(String),
    /// The file of networks at the other end is invalid.
    #[error("--remote-groups {0}")]
    Networks(#[from] networks::Error),
    /// The file of profiles is invalid.
    #[error("--quality {0}")]
    Quality(FileError),
    /// The capture could not be read.
    #[error("--read {0}")]
    Capture(#[from] capture::FileError),
    /// Records could not be written.
    #[error(transparent)]
    Output(#[from] output::Error),
    /// Capabilities are missing.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Capabilities(#[from] capabilities::Missing),
    /// The kernel could not be used.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Kernel(#[from] kernel::Error),
    /// Metrics could not be served.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Http(#[from] http::Error),
    /// The history could not be read or written.
    #[cfg(feature = "history")]
    #[error(transparent)]
    History(#[from] history::Error),
    /// Metrics could not be pushed.
    #[cfg(feature = "otlp")]
    #[error(transparent)]
    Otlp(#[from] otlp::Error),
    /// A running pping gave no answer.
    #[cfg(feature = "top")]
    #[error(transparent)]
    Client(#[from] client::Error),
    /// `pping top` has no terminal to draw on.
    #[cfg(feature = "top")]
    #[error("pping top needs a terminal; `pping top --once` writes one screen as text")]
    NoTerminal,
    /// `pping check` found that pping does not run here.
    #[cfg(feature = "live")]
    #[error("pping cannot run here: {}", missing.join(", "))]
    Unfit {
        /// The failed checks.
        missing: Vec<String>,
    },
    /// This build lacks what was asked for.
    #[error(transparent)]
    Missing(#[from] features::Missing),
    /// An error whose option is not set on the command line.
    #[error("{error} (it is set by {origin})")]
    SetBy {
        /// What is wrong.
        error: Box<Error>,
        /// Where the option is set.
        origin: config::Origin,
    },
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Returns the option whose value is wrong; `None` if no option is at fault, or if the message already says where
    /// it is set.
    pub fn option(&self) -> Option<&'static str> {
        match self {
            Self::Groups(_) => Some("groups"),
            #[cfg(feature = "live")]
            Self::GroupsSocket { .. } => Some("groups-socket"),
            #[cfg(feature = "live")]
            Self::GroupsState(_) => Some("groups-state"),
            #[cfg(feature = "live")]
            Self::GroupsCommand(_) => None,
            Self::RollUp(_) => Some("roll-up"),
            Self::Networks(_) => Some("remote-groups"),
            Self::Quality(_) => Some("quality"),
            Self::Capture(_) => Some("read"),
            Self::Output(error) => error.option(),
            #[cfg(feature = "live")]
            Self::Kernel(error) => error.option(),
            #[cfg(feature = "live")]
            Self::Http(error) => error.option(),
            #[cfg(feature = "otlp")]
            Self::Otlp(error) => error.option(),
            #[cfg(feature = "history")]
            Self::History(_) => None,
            #[cfg(feature = "live")]
            Self::Capabilities(_) | Self::Unfit { .. } => None,
            #[cfg(feature = "top")]
            Self::Client(_) | Self::NoTerminal => None,
            Self::Missing(missing) => missing.option,
            Self::Config(_) | Self::SetBy { .. } | Self::Io(_) => None,
        }
    }

    /// 2 for an error in options, the configuration or privileges, 1 for a failure while running.
    pub fn exit_code(&self) -> ExitCode {
        if self.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
    }

    fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) | Self::Missing(_) => true,
            Self::Capture(error) => !matches!(error, capture::FileError::Read { .. }),
            #[cfg(feature = "live")]
            Self::Capabilities(_) | Self::Kernel(kernel::Error::UnknownFeature { .. }) => true,
            #[cfg(feature = "history")]
            Self::History(error) => error.is_usage(),
            #[cfg(feature = "live")]
            Self::GroupsCommand(error) => error.is_usage(),
            #[cfg(feature = "top")]
            Self::Client(error) => error.is_usage(),
            #[cfg(feature = "top")]
            Self::NoTerminal => true,
            Self::SetBy { error, .. } => error.is_usage(),
            error => error.option().is_some(),
        }
    }
}

#[cfg(feature = "live")]
impl From<aya::maps::MapError> for Error {
    fn from(error: aya::maps::MapError) -> Self {
        kernel::Error::from(error).into()
    }
}
