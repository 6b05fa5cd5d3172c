//! The commands of pping. The options are those of [`crate::config`].

use std::{
    env,
    ffi::OsString,
    net::Ipv6Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    ArgMatches, Args, CommandFactory as _, Parser, Subcommand, ValueEnum,
    error::{ContextKind, ContextValue, ErrorKind},
};

#[cfg(feature = "live")]
use crate::groups_command::GroupsArguments;
use crate::{
    config::{Arguments, interface},
    features,
};
#[cfg(feature = "history")]
use crate::{history::HistoryArguments, report::ReportArguments};

/// Examples, and what they do.
pub(crate) const EXAMPLES: &str = "\
Examples:
  pping -i eth0                            samples of flows, pings and DNS queries
  pping -i eth0 --rate-limit 0             every sample there is
  pping -i eth0 --format jsonl | jq 'select(.type == \"rtt\").rtt'
                                           one JSON record a line, and the RTTs among them, in nanoseconds
  pping -i eth0 --methods tcp-handshake,dns
                                           how long handshakes and DNS queries take
  pping -r trace.pcapng                    samples of a capture, without root
  ssh gw tcpdump -U -w - not port 22 | pping -r -
                                           samples of a live capture
  pping -i eth0 --aggregate 10s --group-by /24,/48
                                           percentiles of each network every ten seconds
  pping -i eth0 -i eth1 --format none --groups customers.csv --listen 127.0.0.1:9464
                                           only metrics for Prometheus, by customer
  pping check -i eth0                      check whether and how well pping runs here
  pping top                                show what a running pping measures
  pping top -i eth0                        show what passes eth0
  pping groups add 10.11.2.7 customer-7    give an address a name while pping measures
  pping history --worst 20 --from -7d      show which groups were worst in the last week
  pping report --week > week.html          write a page about the last week
  pping config show                        show all values and where each is set";

/// Continuous passive round-trip times of every flow that passes, without sending a packet.
#[derive(Clone, Debug, Parser)]
#[command(name = "pping", version = features::VERSION, long_version = features::LONG_VERSION.as_str(), after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// The options.
    #[command(flatten)]
    pub arguments: Arguments,

    /// The command; without one, pping measures.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The options that say where measurements go. `pping top` hides them, because it writes to the screen.
pub(crate) const NOT_FOR_TOP: [&str; 22] = [
    "aggregate",
    "flow_summary",
    "with_samples",
    "hdr_log",
    "groups_socket",
    "groups_state",
    "format",
    "output",
    "listen",
    "web_config",
    "listen_names",
    "prometheus_groups",
    "baseline",
    "history",
    "history_disk",
    "history_keep",
    "otlp",
    "otlp_interval",
    "otlp_headers",
    "otlp_ca",
    "otlp_temporality",
    "pin",
];

/// The parser of the command line.
pub fn command() -> clap::Command {
    let hide = |command: clap::Command, option| command.mut_arg(option, |option| option.hide(true));
    Cli::command()
        .mut_subcommand("top", |top| NOT_FOR_TOP.into_iter().fold(top, hide))
        .mut_subcommand("check", |check| hide(check, "read"))
}

/// Parses the command line of this process.
///
/// # Errors
/// If it is invalid, or asks for the help or the version.
pub fn matches() -> Result<ArgMatches, clap::Error> {
    let typed: Vec<OsString> = env::args_os().collect();
    command().try_get_matches_from(&typed).map_err(|error| with_option(error, &typed))
}

/// Adds the option that was left out to the error of a word that is no command, most likely an interface or a file.
fn with_option(mut error: clap::Error, typed: &[OsString]) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand | ErrorKind::ArgumentConflict => ContextKind::InvalidSubcommand,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    if word.starts_with('-') || Cli::command().find_subcommand(word).is_some() {
        return error;
    }
    let word = word.clone();
    let command = match typed.get(1).and_then(|word| word.to_str()) {
        Some(command @ ("check" | "cleanup" | "top")) => format!("pping {command}"),
        _ => "pping".to_owned(),
    };
    let hint = if Path::new(&word).is_file() {
        format!("to read the capture {word}, write `{command} -r {word}`")
    } else {
        format!("to watch the interface {word}, write `{command} -i {word}`")
    };
    if error.kind() == ErrorKind::ArgumentConflict {
        // The parser takes the word for a command that contradicts the options before it.
        error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(&Cli::command());
        error.insert(ContextKind::InvalidArg, ContextValue::String(word));
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Check a configuration file, or show the current values
    Config {
        /// The command.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Check that pping can run here, and list what limits its accuracy
    ///
    /// This takes the options that pping would be given, and checks the kernel, privileges, memory and interfaces for
    /// them: all interfaces that are up, if neither `-i` nor the configuration names one. Each line of the table is `ok`,
    /// `degraded`, `missing` or `unknown`, with what helps. Nothing is attached, changed or left behind.
    /// `--json` writes a JSON document instead. The exit status is 0 if pping can run, and 1 if it cannot.
    Check(Box<CheckArguments>),
    /// Show what is measured: by a running pping, by this one (-i), or in a capture (-r)
    ///
    /// It shows the interfaces and the groups of the last minute, with the slowest first. `?` lists the keys. Without -i and -r
    /// it asks a running pping, which needs `--listen`. With -i it measures itself, and takes the options of `pping` for that;
    /// with -r it plays a capture. Groups are those of `/24,/48` then, unless --group-by or --groups says otherwise.
    Top(Box<TopArguments>),
    /// Show what was measured in the past, from the files of --history, and look after them
    ///
    /// Without a command it prints the intervals of a range: of one group, or of all together. It needs no running pping,
    /// and reads while one writes.
    #[cfg(feature = "history")]
    History(Box<HistoryArguments>),
    /// Show what was measured in the past (not in this build)
    #[cfg(not(feature = "history"))]
    History {
        /// What the command takes in other builds.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<OsString>,
    },
    /// Write a report of a day or a week, from the files of --history: one page of HTML
    ///
    /// The page needs neither scripts nor a network, and can be printed: the worst and best groups, busy hours, changes against
    /// the week before, quality by hour, and what was not measured.
    #[cfg(feature = "history")]
    Report(Box<ReportArguments>),
    /// Write a report of a day or a week (not in this build)
    #[cfg(not(feature = "history"))]
    Report {
        /// What the command takes in other builds.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<OsString>,
    },
    /// Remove what --pin left behind, and stop its measuring
    Unpin {
        /// Directory that was given to --pin
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Remove what a killed pping left on interfaces
    ///
    /// Only a kernel without TCX (before Linux 6.6) keeps anything: tc filters that measure nothing any more. The next
    /// pping removes them from the interfaces that it watches. This command removes them from all interfaces of this network
    /// namespace, or from those that -i names. It leaves alone what belongs to a running pping or to other programs. What
    /// --pin keeps is removed by `pping unpin`.
    Cleanup {
        /// Clean up this interface, or all that match this pattern (may be given several times, or separated by commas)
        #[arg(short, long = "interface", value_name = "INTERFACE", value_delimiter = ',', value_parser = interface)]
        interfaces: Vec<String>,
    },
    /// Change the groups of a running pping: give prefixes labels, take them away, and list them
    ///
    /// It needs `--groups-socket`. A change takes effect within milliseconds, touches no other prefix, and is kept across restarts.
    #[cfg(feature = "live")]
    Groups(Box<GroupsArguments>),
    /// Change the groups of a running pping (not in this build)
    #[cfg(not(feature = "live"))]
    Groups {
        /// What the command takes in other builds.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<OsString>,
    },
    /// Write a man page, a completion or the example configuration to standard output
    Generate {
        /// What to write
        #[arg(value_enum)]
        page: Page,
    },
}

/// The options of `pping check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArguments {
    /// Write a JSON document instead of a table
    #[arg(long)]
    pub json: bool,
    /// The options that pping would be given.
    #[command(flatten)]
    pub arguments: Arguments,
}

/// The options of `pping top`.
#[derive(Clone, Debug, Args)]
pub struct TopArguments {
    /// Ask the pping at this address, which its --listen has: `gw:9464`, `https://gw.example:9464`
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9464", value_parser = url,
        conflicts_with = "source")]
    pub connect: String,
    /// Log in with this name of its --web-config, and this password (asked for if left out)
    ///
    /// Others on this machine can see a password that is given here.
    #[arg(short, long, value_name = "NAME[:PASSWORD]", conflicts_with = "source")]
    pub user: Option<String>,
    /// Trust the authorities, or self-signed certificates, in this file (PEM) and no others
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub cacert: Option<PathBuf>,
    /// Accept any certificate: anyone on the path can then read and change everything, even the password
    #[arg(long, conflicts_with_all = ["cacert", "source"])]
    pub insecure: bool,
    /// Present this client certificate (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    pub cert: Option<PathBuf>,
    /// Read the private key of that certificate from this file (PEM), unless it is in the same file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Refresh at this interval; with -i and --once, measure for this long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration)]
    pub interval: Duration,
    /// Write one screen as text, for a script or a ticket; with -r, after all of the capture
    #[arg(long)]
    pub once: bool,
    /// With --once, write the sums of this level of --roll-up, or `network`, instead of groups
    ///
    /// `network` stands for the networks at the other end, by --remote-groups.
    #[arg(long, value_name = "LEVEL", requires = "once")]
    pub by: Option<String>,
    /// Show the 15 minutes before this moment, from the files of --history: `-2h`, `2026-11-25 21:00`
    #[cfg(feature = "history")]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["source", "connect", "user"])]
    pub at: Option<String>,
    /// The options of what is measured.
    #[command(flatten)]
    pub arguments: Arguments,
}

/// The port that the examples of `--listen` have.
const PORT: u16 = 9464;

/// The URL of a running pping. What names no scheme is a host, most likely with a port.
fn url(text: &str) -> Result<String, String> {
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(format!("an IPv6 address needs brackets: write [{text}]"));
    }
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(match (text.contains("://"), has_port) {
        (true, _) => text.to_owned(),
        (false, true) => format!("http://{text}"),
        (false, false) => format!("http://{text}:{PORT}"),
    })
}

/// The commands of `pping config`.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Report every error in a configuration file, without starting anything
    Check {
        /// The file [default: /etc/pping/pping.toml]
        file: Option<PathBuf>,
    },
    /// Show the configuration that these options, the environment and the file make, and where each value is set
    ///
    /// The output is a configuration file itself.
    Show(Box<Arguments>),
}

/// The texts that can be generated from the options.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_without_its_option_gets_the_option() {
        let capture = tempfile::NamedTempFile::new().unwrap();
        let file = capture.path().to_str().unwrap();
        for (typed, hint) in [
            ("pping eth0", Some("to watch the interface eth0, write `pping -i eth0`".to_owned())),
            ("pping -v eth0", Some("write `pping -i eth0`".to_owned())),
            ("pping -i eth0 eth1", Some("write `pping -i eth1`".to_owned())),
            ("pping chekc", Some("write `pping -i chekc`".to_owned())),
            ("pping top eth0", Some("write `pping top -i eth0`".to_owned())),
            ("pping check eth0", Some("write `pping check -i eth0`".to_owned())),
            (&format!("pping {file}"), Some(format!("to read the capture {file}, write `pping -r {file}`"))),
            ("pping --ratelimit 1s", None),
            ("pping -i eth0 -r trace.pcap", None),
            ("pping -v check", None),
        ] {
            let typed: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let error = command().try_get_matches_from(&typed).map_err(|error| with_option(error, &typed));
            let message = error.unwrap_err().to_string();
            match hint {
                Some(hint) => assert!(message.contains(&hint), "{message}"),
                None => assert!(!message.contains("`pping"), "{message}"),
            }
        }
    }

    #[test]
    fn a_host_and_a_port_are_enough_to_connect() {
        let connect = |text: &str| {
            let typed = ["pping", "top", "--connect", text];
            match Cli::try_parse_from(typed).unwrap().command {
                Some(Command::Top(top)) => top.connect,
                other => panic!("{other:?}"),
            }
        };
        for (text, url) in [
            ("gw:9464", "http://gw:9464"),
            ("gw", "http://gw:9464"),
            ("[2001:db8::1]", "http://[2001:db8::1]:9464"),
            ("https://gw.example", "https://gw.example"),
            ("http://gw:80", "http://gw:80"),
        ] {
            assert_eq!(connect(text), url);
        }
        for text in ["::1", "2001:db8::1:9464"] {
            let said = Cli::try_parse_from(["pping", "top", "--connect", text]).unwrap_err().to_string();
            assert!(said.contains(&format!("write [{text}]")), "{said}");
        }
        for option in ["--user=me", "--cacert=ca.pem", "--insecure", "--cert=me.pem"] {
            for source in ["-ieth0", "-rtrace.pcap"] {
                let said = Cli::try_parse_from(["pping", "top", option, source]).unwrap_err().to_string();
                assert!(said.contains("cannot be used with"), "{said}");
            }
        }
    }
}
