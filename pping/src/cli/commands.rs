//! What pping does instead of measuring.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Arguments, values::interface};

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Check a configuration file, or show what is in effect
    Config {
        /// Which of the two.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look whether pping can run here, and what keeps it from measuring well
    ///
    /// It takes the options that pping would be given, and looks at the kernel, privileges, memory and interfaces for
    /// those: all that are up, where neither `-i` nor the configuration names one. Each line of the table is `ok`,
    /// `degraded`, `missing` or `unknown`, with what helps. Nothing is attached, and nothing changed or left behind.
    /// `--json` writes a JSON document instead. The exit status is 0 if pping can run, and 1 if it cannot.
    Check(Box<CheckArguments>),
    /// Take away what --pin left behind, which ends its measuring
    Unpin {
        /// The directory that was given to --pin
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Remove from interfaces what a pping that was killed left there
    ///
    /// Only a kernel without TCX (before Linux 6.6) leaves anything: tc filters that measure nothing any more. The next
    /// pping removes them from the interfaces that it watches, and this from all of this network namespace, or from those
    /// that -i names. What belongs to a pping that runs stays, and so does what belongs to others. Nor is what --pin keeps
    /// removed, which `pping unpin` does.
    Cleanup {
        /// The interface, or a pattern (may be given several times); all of them, unless given
        #[arg(short, long = "interface", value_name = "INTERFACE", value_parser = interface)]
        interfaces: Vec<String>,
    },
    /// Write a man page, a completion or the example configuration to standard output
    Generate {
        /// Which
        #[arg(value_enum)]
        page: Page,
    },
}

/// What to look at.
#[derive(Clone, Debug, Args)]
pub struct CheckArguments {
    /// Write a JSON document instead of a table
    #[arg(long)]
    pub json: bool,
    /// What pping would be given.
    #[command(flatten)]
    pub arguments: Arguments,
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
