//! `pping groups`: changes the groups of a running pping through its groups socket.

mod error;

use std::{
    fmt::Write as _,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{Args, Subcommand};
use ipnet::IpNet;

pub use self::error::Error;
use crate::{
    foreign_text::sanitized,
    groups::{
        self, Connection,
        protocol::{self, Addition, Answer, DEFAULT_SOURCE, Effect, Filter, Listed, Request},
    },
    output,
    sources::SourceCommand,
};

/// The socket of the service.
pub const DEFAULT_SOCKET: &str = "/run/pping-groups/pping/groups.sock";

/// How long pping may take for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// The options of `pping groups`.
#[derive(Clone, Debug, Args)]
pub struct GroupsArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: GroupsCommand,
    /// Use the socket of this pping, which its --groups-socket has
    #[arg(long, value_name = "PATH", global = true, default_value = DEFAULT_SOCKET)]
    pub socket: PathBuf,
    /// Name who makes the change: each source has its own prefixes, and removes no others
    ///
    /// Without it, `radius`, `dhcp` and `shaped-devices` are their own sources, and other commands are `cli`.
    #[arg(long, value_name = "NAME", global = true, value_parser = source)]
    pub source: Option<Arc<str>>,
}

/// The commands of `pping groups`.
#[derive(Clone, Debug, Subcommand)]
pub enum GroupsCommand {
    /// Give a prefix a label: from now on its hosts are in that group
    Add {
        /// Prefix or address
        #[arg(value_parser = prefix)]
        prefix: IpNet,
        /// Label of the group
        label: String,
        /// Set another column of the label, as in a groups file: `site=north` (may be given several times)
        #[arg(long = "column", value_name = "NAME=VALUE", value_parser = column)]
        columns: Vec<(String, String)>,
    },
    /// Take prefixes away that this source added
    ///
    /// What another source or the groups file says of them counts again.
    Remove {
        /// Prefixes or addresses
        #[arg(required = true, value_parser = prefix)]
        prefixes: Vec<IpNet>,
    },
    /// List prefixes, with their labels and where they come from
    List {
        /// Only those that contain this prefix or address or are inside it, or that have this label
        #[arg(value_name = "PREFIX|LABEL")]
        filter: Option<String>,
        /// Only those from this source (`file` is the groups file)
        #[arg(long = "from", value_name = "NAME")]
        from: Option<String>,
        /// Write one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Make the prefixes of this file all that this source lists
    ///
    /// The file has the format of a groups file (`-` is standard input, CSV). Prefixes that stay are not touched. If the file has
    /// an error, nothing changes.
    Replace {
        /// File with prefixes and labels
        file: PathBuf,
    },
    /// Add all prefixes of this file to those that this source lists
    ///
    /// The file has the format of a groups file (`-` is standard input, CSV). If it has an error, nothing changes.
    Import {
        /// File with prefixes and labels
        file: PathBuf,
    },
    /// The programs that do so all the time.
    #[command(flatten)]
    Source(SourceCommand),
}

fn prefix(text: &str) -> Result<IpNet, String> {
    groups::prefix(text)
}

fn source(text: &str) -> Result<Arc<str>, String> {
    protocol::source(text)
}

fn column(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE, like site=north")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Performs the command.
///
/// # Errors
/// If pping cannot be reached, or refuses something.
pub(crate) fn perform(arguments: GroupsArguments) -> Result<(), Error> {
    let GroupsArguments { command, socket, source } = arguments;
    let given = source.clone();
    let source = source.unwrap_or_else(|| DEFAULT_SOURCE.into());
    match command {
        GroupsCommand::Add { prefix, label, columns } => {
            let named = |(name, value): (String, String)| (name.into(), value.into());
            let columns = Some(columns).filter(|it| !it.is_empty());
            let columns = columns.map(|columns| columns.into_iter().map(named).collect());
            let addition = Addition { prefix, label: label.into(), columns, source };
            let answer = connect(&socket)?.ask(&Request::Add(addition))?;
            print(&format!("{prefix}: {}\n", said(&answer)))
        }
        GroupsCommand::Remove { prefixes } => remove(&mut connect(&socket)?, &prefixes, &source),
        GroupsCommand::List { filter, from, json } => {
            list(&mut connect(&socket)?, filter.as_deref(), from, json)
        }
        GroupsCommand::Replace { file } => {
            let additions = read(&file, &source)?;
            let mut connection = connect(&socket)?;
            connection.ask(&Request::Replace { source: Arc::clone(&source) })?;
            connection.ask_all(&additions)?;
            let answer = connection.ask(&Request::Commit)?;
            let (all, changed) = (answer.prefixes.unwrap_or_default(), answer.changed.unwrap_or_default());
            print(&format!("{source} lists {all} prefixes now: {changed} changed\n"))
        }
        GroupsCommand::Source(command) => Ok(command.run(socket, given)?),
        GroupsCommand::Import { file } => {
            let additions = read(&file, &source)?;
            let answers = connect(&socket)?.ask_all(&additions)?;
            let count = |effect| answers.iter().filter(|answer| answer.change == Some(effect)).count();
            let (added, moved) = (count(Effect::Added), count(Effect::Moved));
            let unchanged = answers.len() - added - moved;
            print(&format!("{added} prefixes added, {moved} moved, {unchanged} as they were\n"))
        }
    }
}

fn connect(socket: &Path) -> Result<Connection, Error> {
    Ok(Connection::open(socket, PATIENCE)?)
}

fn remove(connection: &mut Connection, prefixes: &[IpNet], source: &Arc<str>) -> Result<(), Error> {
    for &prefix in prefixes {
        let answer = connection.ask(&Request::Remove { prefix, source: Arc::clone(source) })?;
        print(&format!("{prefix}: {}\n", said(&answer)))?;
    }
    Ok(())
}

/// Says what a change did.
fn said(answer: &Answer) -> String {
    let [before, now] = [&answer.before, &answer.now].map(|label| label.as_deref().map(sanitized));
    match (before, now) {
        (Some(before), Some(now)) if before != now => format!("now {now}, before {before}"),
        (_, Some(now)) if answer.change == Some(Effect::Unchanged) => format!("{now}, as before"),
        (_, Some(now)) => format!("now {now}"),
        (Some(before), None) => format!("removed, before {before}"),
        (None, None) => "done".to_owned(),
    }
}

fn list(
    connection: &mut Connection,
    filter: Option<&str>,
    source: Option<String>,
    json: bool,
) -> Result<(), Error> {
    let prefix = filter.and_then(groups::address_in);
    let label = filter.filter(|_| prefix.is_none()).map(str::to_owned);
    let mut text = String::new();
    if !json {
        text.push_str("prefix,group,source,current,columns\n");
    }
    let is_terminal = io::stdout().is_terminal();
    let take = |line: &str, listed: Listed| {
        if json {
            text.push_str(line);
            text.push('\n');
        } else {
            text.push_str(&row(&listed, is_terminal));
        }
        if text.len() >= 1 << 16 { print(&std::mem::take(&mut text)) } else { Ok(()) }
    };
    connection.list(&Request::List(Filter { prefix, label, source }), take)?;
    print(&text)
}

/// A line of CSV, in which nothing harms a terminal if it goes there.
fn row(Listed { prefix, label, source, current, columns }: &Listed, is_terminal: bool) -> String {
    let mut all = String::new();
    for (name, value) in columns {
        let separator = if all.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        write!(all, "{separator}{name}={value}").ok();
    }
    let current = if *current { "yes" } else { "no" };
    let [label, all] =
        [label, &all].map(|text| quoted(&if is_terminal { sanitized(text) } else { text.clone() }));
    format!("{prefix},{label},{source},{current},{all}\n")
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Reads a file with the format of a groups file.
fn read(file: &Path, source: &Arc<str>) -> Result<Vec<Request>, Error> {
    let file = if file == Path::new("-") { groups::open_stdin() } else { groups::open(file) }?;
    let add = |(prefix, label, columns): (IpNet, &Arc<str>, &groups::Columns)| {
        let columns = Some(columns.clone()).filter(|columns| !columns.is_empty());
        Request::Add(Addition { prefix, label: Arc::clone(label), columns, source: Arc::clone(source) })
    };
    Ok(file.rows().map(add).collect())
}

fn print(text: &str) -> Result<(), Error> {
    Ok(output::print(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_can_be_read_as_a_line_of_csv() {
        let columns = [("site", "north"), ("plan", "a \"b\"")];
        let listed = Listed {
            prefix: "10.0.0.0/8".to_owned(),
            label: "Müller, Söhne".to_owned(),
            source: "file".to_owned(),
            current: true,
            columns: columns.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect(),
        };
        let expected = "10.0.0.0/8,\"Müller, Söhne\",file,yes,\"site=north plan=a \"\"b\"\"\"\n";
        assert_eq!(row(&listed, true), expected);
    }
}
