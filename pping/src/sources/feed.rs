//! What a source says of prefixes, and how it gets to a running pping and stays there.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use ipnet::IpNet;

use super::{
    change::{Change, Name},
    complaints::Complaints,
    error::Error,
};
use crate::groups::{
    AT_A_TIME, Connection, ConnectionError,
    overlay::MAX_PREFIXES,
    protocol::{Addition, Answer, Filter, MAX_LINE, Request},
};

/// How long pping may take for an answer: a million prefixes take it half a minute.
const PATIENCE: Duration = Duration::from_mins(1);

/// The interval of attempts to connect.
const RECONNECT: Duration = Duration::from_millis(250);

/// The interval at which an idle connection is tested.
const TEST: Duration = Duration::from_secs(2);

/// A byte of a name takes up to this many bytes of a line, with the others of the line.
const ESCAPED: usize = 8;

/// The kind of complaints about refused changes.
const REFUSED: &str = "refused by pping";

/// What a source says of prefixes. It is passed on in full to each pping that starts, and otherwise as it changes.
///
/// Nothing is lost while no pping listens, because all that is said now is kept here.
pub(super) struct Feed {
    socket: PathBuf,
    source: Arc<str>,
    connection: Option<Connection>,
    /// Whether the pping at the other end was told everything once.
    is_synchronized: bool,
    wanted: HashMap<IpNet, Name, RandomState>,
    /// The prefixes that pping has not been told of since they changed. Without a connection there are none, because the next pping
    /// gets everything.
    changed: IndexSet<IpNet, RandomState>,
    /// The prefixes whose names pping refused. It lists them under no name.
    refused: HashSet<IpNet, RandomState>,
    /// Whether this knows everything that it has to say.
    is_complete: bool,
    adoption: Adoption,
    next_attempt: Instant,
    last_use: Instant,
    /// Whether the log says that no pping listens.
    is_missed: bool,
}

/// Whether prefixes of an earlier run stay until somebody says otherwise.
#[derive(PartialEq)]
enum Adoption {
    /// They go.
    Never,
    /// They will be asked for at the first connection.
    Due,
    /// They were.
    Done(Vec<(IpNet, Name)>),
}

/// pping has not accepted everything.
#[derive(Debug)]
pub(super) struct Unaccepted;

impl Feed {
    /// A feed for the pping at `socket`. With `adopts`, what this source said in an earlier run stays at first: see
    /// [`Feed::take_adopted`]. Without, it goes once this [is complete](Feed::complete).
    pub(super) fn new(socket: PathBuf, source: Arc<str>, adopts: bool) -> Self {
        let now = Instant::now();
        Self {
            socket,
            source,
            connection: None,
            is_synchronized: false,
            wanted: HashMap::default(),
            changed: IndexSet::default(),
            refused: HashSet::default(),
            is_complete: adopts,
            adoption: if adopts { Adoption::Due } else { Adoption::Never },
            next_attempt: now,
            last_use: now,
            is_missed: false,
        }
    }

    /// This knows everything that it has to say.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Who makes the changes.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The number of prefixes, without those that pping refused.
    pub(super) fn len(&self) -> usize {
        self.wanted.len().saturating_sub(self.refused.len())
    }

    /// The prefixes.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        self.wanted.keys().copied()
    }

    /// The prefixes with their names.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = (IpNet, &Name)> {
        self.wanted.iter().map(|(prefix, name)| (*prefix, name))
    }

    /// Takes a change. [`Feed::flush`] passes it on.
    pub(super) fn apply(&mut self, change: Change, complaints: &mut Complaints) {
        match change {
            Change::Set(prefix, name) if is_too_long(&name) => {
                complaints.warn(REFUSED, || {
                    format!("{prefix} is left out: its name, or that of a column, has thousands of letters")
                });
                self.apply(Change::Unset(prefix), complaints);
            }
            Change::Set(prefix, name) => {
                if self.wanted.get(&prefix) == Some(&name) {
                    return;
                }
                if self.wanted.len() >= MAX_PREFIXES && !self.wanted.contains_key(&prefix) {
                    complaints.warn("without room", || {
                        format!("{prefix} is left out: there are {MAX_PREFIXES} prefixes already")
                    });
                    return;
                }
                self.wanted.insert(prefix, name);
                self.note(prefix);
            }
            Change::Unset(prefix) => {
                if self.wanted.remove(&prefix).is_some() {
                    self.note(prefix);
                }
            }
        }
    }

    fn note(&mut self, prefix: IpNet) {
        self.refused.remove(&prefix);
        if self.is_synchronized {
            self.changed.insert(prefix);
        }
    }

    /// Passes on what changed.
    ///
    /// # Errors
    /// If no pping listens, or it does not answer. Everything is passed on when one does.
    pub(super) fn flush(&mut self, complaints: &mut Complaints) -> Result<(), Unaccepted> {
        if self.connection.is_none() && Instant::now() < self.next_attempt {
            return Err(Unaccepted);
        }
        match self.pass_on(complaints) {
            Ok(connection) => {
                self.connection = Some(connection);
                if std::mem::take(&mut self.is_missed) {
                    tracing::warn!("{}: pping listens again", self.socket.display());
                }
                Ok(())
            }
            Err(error) => {
                self.is_synchronized = false;
                self.next_attempt = Instant::now() + RECONNECT;
                if !std::mem::replace(&mut self.is_missed, true) {
                    tracing::warn!("{error}; changes wait for it");
                }
                Err(Unaccepted)
            }
        }
    }

    /// Passes on everything, once.
    ///
    /// # Errors
    /// If no pping listens, or it does not answer.
    pub(super) fn flush_once(&mut self, complaints: &mut Complaints) -> Result<(), Error> {
        self.connection = Some(self.pass_on(complaints)?);
        Ok(())
    }

    /// The prefixes that this source listed in an earlier run, once after they have become known. They are part of this from
    /// then on.
    pub(super) fn take_adopted(&mut self) -> Option<Vec<(IpNet, Name)>> {
        match &mut self.adoption {
            Adoption::Done(adopted) => {
                let adopted = std::mem::take(adopted);
                self.adoption = Adoption::Never;
                Some(adopted)
            }
            Adoption::Never | Adoption::Due => None,
        }
    }

    fn pass_on(&mut self, complaints: &mut Complaints) -> Result<Connection, Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.socket, PATIENCE)?,
        };
        if self.adoption == Adoption::Due {
            self.adoption = Adoption::Done(self.adopt(&mut connection)?);
        }
        let changed = std::mem::take(&mut self.changed);
        if self.is_synchronized && changed.is_empty() && self.last_use.elapsed() < TEST {
            return Ok(connection);
        }
        if self.is_synchronized {
            self.send_changes(&mut connection, &changed, complaints)?;
        } else if self.is_complete {
            self.send_all(&mut connection, complaints)?;
            self.is_synchronized = true;
        }
        self.last_use = Instant::now();
        Ok(connection)
    }

    /// Asks for the prefixes of an earlier run, and adds those that are not known otherwise.
    fn adopt(&mut self, connection: &mut Connection) -> Result<Vec<(IpNet, Name)>, Error> {
        let source = Some(self.source.to_string());
        let mut adopted = Vec::new();
        connection.list(&Request::List(Filter { source, ..Filter::default() }), |_, listed| {
            let Some(Ok(prefix)) = listed.prefix.map(|prefix| prefix.parse()) else {
                return Ok::<(), ConnectionError>(());
            };
            let columns = listed.columns.into_iter().map(|(name, value)| (name.into(), value.into()));
            let name = Name { label: listed.label.into(), columns: Some(columns.collect()) };
            if !self.wanted.contains_key(&prefix) {
                adopted.push((prefix, name));
            }
            Ok(())
        })?;
        self.wanted.extend(adopted.iter().cloned());
        Ok(adopted)
    }

    /// Makes this all that the source lists. What pping refuses is not listed.
    fn send_all(&mut self, connection: &mut Connection, complaints: &mut Complaints) -> Result<(), Error> {
        connection.ask(&Request::Replace { source: Arc::clone(&self.source) })?;
        let all = self.wanted.iter().map(|(&prefix, name)| self.add(prefix, name));
        let refused = send(connection, all.chain([Request::Commit]), complaints)?;
        self.refused = refused.into_iter().collect();
        Ok(())
    }

    /// Tells of the prefixes that changed, each as it is now. Without any, it tests the connection now and then.
    fn send_changes(
        &mut self,
        connection: &mut Connection,
        changed: &IndexSet<IpNet, RandomState>,
        complaints: &mut Complaints,
    ) -> Result<(), Error> {
        let test = changed.is_empty().then_some(Request::Hello);
        let requests = changed.iter().map(|&prefix| match self.wanted.get(&prefix) {
            Some(name) => self.add(prefix, name),
            None => self.remove(prefix),
        });
        let refused = send(connection, requests.chain(test), complaints)?;
        // Until now they have the names that they had before, which may be those of other customers.
        send(connection, refused.iter().map(|&prefix| self.remove(prefix)), complaints)?;
        self.refused.extend(refused);
        Ok(())
    }

    fn add(&self, prefix: IpNet, Name { label, columns }: &Name) -> Request {
        let source = Arc::clone(&self.source);
        Request::Add(Addition { prefix, label: Arc::clone(label), columns: columns.clone(), source })
    }

    fn remove(&self, prefix: IpNet) -> Request {
        Request::Remove { prefix, source: Arc::clone(&self.source) }
    }
}

/// Whether a name does not fit into a line of the protocol. pping would not refuse it alone, but close the connection.
fn is_too_long(Name { label, columns }: &Name) -> bool {
    let columns = columns.iter().flatten().map(|(name, value)| name.len() + value.len());
    label.len() + columns.sum::<usize>() > MAX_LINE / ESCAPED
}

/// Sends requests, and complains about those that are refused. Returns the prefixes that were not added.
///
/// # Errors
/// If the connection breaks.
fn send(
    connection: &mut Connection,
    mut requests: impl Iterator<Item = Request>,
    complaints: &mut Complaints,
) -> Result<Vec<IpNet>, Error> {
    let (mut some, mut refused) = (Vec::with_capacity(AT_A_TIME), Vec::new());
    loop {
        some.extend(requests.by_ref().take(AT_A_TIME));
        if some.is_empty() {
            return Ok(refused);
        }
        let answers = connection.exchange(&some)?;
        refused.extend(some.iter().zip(&answers).filter_map(|(request, answer)| match (request, answer) {
            (Request::Add(Addition { prefix, .. }), Err(_)) => Some(*prefix),
            _ => None,
        }));
        complain(&some, &answers, complaints);
        some.clear();
    }
}

/// Complains about what was refused.
fn complain(requests: &[Request], answers: &[Result<Answer, String>], complaints: &mut Complaints) {
    for (request, answer) in requests.iter().zip(answers) {
        let Err(reason) = answer else { continue };
        match request {
            Request::Add(Addition { prefix, label, .. }) => {
                complaints.warn(REFUSED, || format!("pping refused {prefix} for `{label}`: {reason}"));
            }
            // It was refused before, or never had a name.
            Request::Remove { prefix, .. } => tracing::debug!("{prefix}: {reason}"),
            _ => complaints.warn(REFUSED, || format!("pping refused a change: {reason}")),
        }
    }
}

#[cfg(test)]
mod tests;
