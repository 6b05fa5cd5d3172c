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
use indexmap::IndexMap;
use ipnet::IpNet;

pub use self::error::Error;
use crate::{
    foreign_text::sanitized,
    groups::{
        self, Connection, PrefixRule,
        protocol::{self, Addition, Answer, DEFAULT_SOURCE, Effect, FILE_SOURCE, Filter, Listed, Request},
    },
    output,
    sources::SourceCommand,
    spelling::counted,
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
    /// Name who makes the change: each source has its own prefixes and columns, and removes no others
    ///
    /// Without it, `radius`, `dhcp` and `shaped-devices` are their own sources, and other commands are `cli`. `list` lists only what
    /// comes from this source (`file` is the groups file), and without it everything.
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
        /// Give the label another column, as in a groups file: `site=north` (may be given several times)
        ///
        /// They replace all columns that this source gave the label before, and in those columns they win over the groups file. They go
        /// with the last prefix of the label from this source.
        #[arg(long = "column", value_name = "NAME=VALUE", value_parser = column)]
        columns: Vec<(String, String)>,
    },
    /// Take prefixes away that this source added
    ///
    /// What another source or the groups file says of them counts again.
    Remove {
        /// Prefixes or addresses
        #[arg(required_unless_present = "all", value_parser = prefix)]
        prefixes: Vec<IpNet>,
        /// Take away all that this source added
        #[arg(long, conflicts_with = "prefixes")]
        all: bool,
    },
    /// List prefixes, with their labels and where they come from
    ///
    /// `columns` are those that this source gives the label, and `current_columns` are those that count, of all sources. A label of the
    /// groups file without a prefix comes last.
    List {
        /// Only those that contain this prefix or address or are inside it, or that have this label
        #[arg(value_name = "PREFIX|LABEL")]
        filter: Option<String>,
        /// Write one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Make the prefixes of this file all that this source lists
    ///
    /// The file has the format of a groups file (`-` is standard input, CSV), and its columns are all that this source gives the labels.
    /// Prefixes that stay are not touched. If the file has an error, nothing changes.
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

/// A source, or the groups file.
fn source(text: &str) -> Result<Arc<str>, String> {
    if text == FILE_SOURCE { Ok(text.into()) } else { protocol::source(text) }
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
    let is_list = matches!(command, GroupsCommand::List { .. });
    if let Some(source) = source.as_ref().filter(|_| !is_list) {
        protocol::source(source).map_err(|reason| Error::SourceName(format!("--source: {reason}")))?;
    }
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
        GroupsCommand::Remove { all: true, .. } => {
            let (_, removed) = replace(&mut connect(&socket)?, &[], &source)?;
            print(&format!("{source}: {} removed\n", prefixes(removed)))
        }
        GroupsCommand::Remove { prefixes, all: false } => remove(&mut connect(&socket)?, &prefixes, &source),
        GroupsCommand::List { filter, json } => {
            let source = given.map(|source| source.to_string());
            list(&mut connect(&socket)?, filter.as_deref(), source, json)
        }
        GroupsCommand::Replace { file } => {
            let additions = read(&file, &source, true)?;
            let (all, changed) = replace(&mut connect(&socket)?, &additions, &source)?;
            print(&format!("{source} lists {} now: {changed} changed\n", prefixes(all)))
        }
        GroupsCommand::Source(command) => Ok(command.run(socket, given)?),
        GroupsCommand::Import { file } => {
            let additions = read(&file, &source, false)?;
            let answers = connect(&socket)?.ask_all(&additions)?;
            let count = |effect| answers.iter().filter(|answer| answer.change == Some(effect)).count();
            let [added, moved, columns] = [Effect::Added, Effect::Moved, Effect::Columns].map(count);
            let unchanged = answers.len() - added - moved - columns;
            let added = prefixes(added);
            print(&format!(
                "{added} added, {moved} moved, {columns} with other columns, {unchanged} as before\n"
            ))
        }
    }
}

fn prefixes(number: usize) -> String {
    counted(number, "prefix", "prefixes")
}

/// Makes these all that a source lists. Returns how many it has then, and how many changes that made.
fn replace(
    connection: &mut Connection,
    additions: &[Request],
    source: &Arc<str>,
) -> Result<(usize, usize), Error> {
    connection.ask(&Request::Replace { source: Arc::clone(source) })?;
    connection.ask_all(additions)?;
    let answer = connection.ask(&Request::Commit)?;
    Ok((answer.prefixes.unwrap_or_default(), answer.changed.unwrap_or_default()))
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
        (_, Some(now)) if answer.change == Some(Effect::Columns) => format!("{now}, with other columns"),
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
        text.push_str("prefix,group,source,current,columns,current_columns\n");
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
fn row(listed: &Listed, is_terminal: bool) -> String {
    let Listed { prefix, label, source, current, columns, current_columns } = listed;
    let prefix = prefix.as_deref().unwrap_or_default();
    let current = if *current { "yes" } else { "no" };
    let [label, columns, current_columns] = [label.clone(), joined(columns), joined(current_columns)]
        .map(|text| quoted(&if is_terminal { sanitized(&text) } else { text }));
    format!("{prefix},{label},{source},{current},{columns},{current_columns}\n")
}

fn joined(columns: &IndexMap<String, String>) -> String {
    let mut all = String::new();
    for (name, value) in columns {
        let separator = if all.is_empty() { "" } else { " " };
        // Writing to a string does not fail.
        write!(all, "{separator}{name}={value}").ok();
    }
    all
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Reads a file with the format of a groups file. A label without columns has none from now on if `is_all`, and else keeps those that
/// the source gave it.
fn read(file: &Path, source: &Arc<str>, is_all: bool) -> Result<Vec<Request>, Error> {
    let rule = PrefixRule::EachLabel;
    let file = if file == Path::new("-") { groups::open_stdin(rule) } else { groups::open(file, rule) }?;
    let add = |(prefix, label, columns): (IpNet, &Arc<str>, &groups::Columns)| {
        let columns = Some(columns.clone()).filter(|columns| is_all || !columns.is_empty());
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
        let columns = |columns: &[(&str, &str)]| {
            columns.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let listed = Listed {
            prefix: Some("10.0.0.0/8".to_owned()),
            label: "Müller, Söhne".to_owned(),
            source: "file".to_owned(),
            current: true,
            columns: columns(&[("site", "north"), ("plan", "a \"b\"")]),
            current_columns: columns(&[("site", "south")]),
        };
        let expected = "10.0.0.0/8,\"Müller, Söhne\",file,yes,\"site=north plan=a \"\"b\"\"\",site=south\n";
        assert_eq!(row(&listed, true), expected);
        let alone = Listed { prefix: None, columns: columns(&[]), ..listed };
        assert_eq!(row(&alone, true), ",\"Müller, Söhne\",file,yes,,site=south\n");
    }
}
