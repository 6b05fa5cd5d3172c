//! What pping does instead of measuring.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::Arguments;

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Check a configuration file, or show what is in effect
    Config {
        /// Which of the two.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Take away what --pin left behind, which ends its measuring
    Unpin {
        /// The directory that was given to --pin
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Write a man page, a completion or the example configuration to standard output
    Generate {
        /// Which
        #[arg(value_enum)]
        page: Page,
    },
}

/// What to do with the configuration.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Say all that is wrong with a configuration file, without starting anything
    Check {
        /// The file [default: /etc/pping/pping.toml]
        file: Option<PathBuf>,
    },
    /// Show what these options, the environment and the file make, and which of them says so
    ///
    /// What it writes is a configuration file itself.
    Show(Box<Arguments>),
}

/// What can be made from the list of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// The man page pping(1)
    Man,
    /// The man page pping.toml(5)
    ManToml,
    /// Completions for bash
    CompleteBash,
    /// Completions for zsh
    CompleteZsh,
    /// Completions for fish
    CompleteFish,
    /// The example configuration, with every option in it
    Config,
}
