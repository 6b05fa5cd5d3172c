//! A client of the groups socket.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::yield_now,
    time::{Instant, timeout, timeout_at},
};

use super::{change_log::Done, list, replacement::Replacement, shared::Shared};
use crate::groups::protocol::{self, Answer, MAX_LINE, Request};

/// How long a client may be silent.
const IDLE: Duration = Duration::from_mins(10);

/// How long a client may take for the rest of a line, for the next one of a replacement, and to read answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Refuses a client that there is no room for.
pub(super) fn turn_away(stream: &UnixStream, reason: &str) {
    let mut line = Vec::new();
    protocol::write(&Answer::refused(reason), &mut line);
    // The buffer of a new connection has room for it.
    stream.try_write(&line).ok();
}

/// Answers a client until it closes the connection, is silent for too long, or does not read its answers.
pub(super) async fn answer(stream: UnixStream, shared: &Shared) {
    let (reader, writer) = stream.into_split();
    let mut client = Client { shared, writer, answers: Vec::new(), changes: Vec::new(), replacement: None };
    let ended = client.run(Lines { reader, buffer: Vec::new() }).await;
    if let Err(error) = ended {
        tracing::debug!("--groups-socket: a client is gone: {error}");
    }
}

/// The lines of a client.
struct Lines {
    reader: OwnedReadHalf,
    /// What was read, without the lines that were taken.
    buffer: Vec<u8>,
}

/// What a client sent.
enum Sent {
    /// Whole lines, of as many bytes.
    Lines(usize),
    /// The connection is at its end, or broken.
    End,
    /// The client has to be told why it is left.
    Refused(&'static str),
}

impl Lines {
    /// Reads until there are whole lines. The buffer has them, and perhaps the beginning of another one.
    ///
    /// A client that `is_replacing` keeps others from doing so, and may not be silent for long.
    async fn read(&mut self, is_replacing: bool) -> Sent {
        let mut deadline =
            Instant::now() + if self.buffer.is_empty() && !is_replacing { IDLE } else { PATIENCE };
        loop {
            if let Some(end) = self.buffer.iter().rposition(|&byte| byte == b'\n') {
                return Sent::Lines(end + 1);
            }
            if self.buffer.len() >= MAX_LINE {
                return Sent::Refused("the line is longer than 65536 bytes; send one request a line");
            }
            let was_empty = self.buffer.is_empty();
            self.buffer.reserve(MAX_LINE - self.buffer.len());
            let mut limited = (&mut self.reader).take((MAX_LINE - self.buffer.len()) as u64);
            match timeout_at(deadline, limited.read_buf(&mut self.buffer)).await {
                Ok(Ok(0) | Err(_)) => return Sent::End,
                Ok(Ok(_)) => {}
                Err(_) if is_replacing => {
                    return Sent::Refused(
                        "the next line of the replacement did not come within 10 s, so nothing is replaced; send it in one go",
                    );
                }
                Err(_) if was_empty => {
                    return Sent::Refused("there was no request for 10 minutes; connect again");
                }
                Err(_) => {
                    return Sent::Refused(
                        "the rest of the line did not come within 10 s; end each request with a line break",
                    );
                }
            }
            if was_empty {
                deadline = Instant::now() + PATIENCE;
            }
        }
    }
}

/// A client, and what it waits for.
struct Client<'a> {
    shared: &'a Shared,
    writer: OwnedWriteHalf,
    /// Answers that are still to be sent.
    answers: Vec<u8>,
    /// Changes that are still to be made, one after another.
    changes: Vec<Request>,
    /// All that a source lists, while it is being sent.
    replacement: Option<Replacement<'a>>,
}

impl Client<'_> {
    async fn run(&mut self, mut lines: Lines) -> io::Result<()> {
        loop {
            match lines.read(self.replacement.is_some()).await {
                Sent::Lines(length) => {
                    let taken: Vec<u8> = lines.buffer.drain(..length).collect();
                    self.take(&taken).await?;
                    // Others get their turn.
                    yield_now().await;
                }
                Sent::End => return Ok(()),
                Sent::Refused(reason) => {
                    self.refuse(reason);
                    return self.send().await;
                }
            }
        }
    }

    /// Carries out requests, and sends the answers.
    async fn take(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match Request::parse(line) {
                Ok(change @ (Request::Add(_) | Request::Remove { .. } | Request::Columns { .. }))
                    if self.replacement.is_none() =>
                {
                    self.changes.push(change);
                }
                Ok(request) => {
                    self.make_changes();
                    self.carry_out(request).await?;
                }
                Err(reason) => {
                    self.make_changes();
                    self.refuse(&reason);
                }
            }
        }
        self.make_changes();
        self.shared.resolve().await;
        self.send().await
    }

    /// Makes the changes that wait.
    fn make_changes(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        for done in self.shared.lock().perform(&self.changes) {
            let answer = match done {
                Ok(Done { effect, before, now }) => Answer {
                    change: Some(effect),
                    before: before.map(|label| label.to_string()),
                    now: now.map(|label| label.to_string()),
                    ..Answer::ok()
                },
                Err(reason) => Answer::refused(reason),
            };
            protocol::write(&answer, &mut self.answers);
        }
        self.changes.clear();
    }

    async fn carry_out(&mut self, request: Request) -> io::Result<()> {
        let answer = match request {
            Request::Hello => Ok(Answer::hello()),
            Request::List(filter) => {
                self.shared.resolve().await;
                let list = list::List::new(&self.shared.lock());
                let found = list.write(&filter, &mut self.answers, &mut self.writer).await?;
                Ok(Answer { prefixes: Some(found), ..Answer::ok() })
            }
            Request::Replace { source } => self.begin_replacing(source),
            Request::Commit => match self.replacement.take() {
                Some(replacement) => replacement.commit().await,
                None => Err("there is nothing to commit; begin with `replace`".to_owned()),
            },
            Request::Abort => match self.replacement.take() {
                Some(_) => Ok(Answer::ok()),
                None => Err("there is nothing to abort; begin with `replace`".to_owned()),
            },
            Request::Add(addition) => match &mut self.replacement {
                Some(replacement) => replacement.add(addition).map(|()| Answer::ok()),
                None => Err("this request came out of turn".to_owned()),
            },
            Request::Remove { .. } => {
                Err("a replacement lists all that stays; leave out what goes, and `commit`".to_owned())
            }
            Request::Columns { .. } => {
                Err("a replacement gives columns with its prefixes; add them there, and `commit`".to_owned())
            }
        };
        match answer {
            Ok(answer) => protocol::write(&answer, &mut self.answers),
            Err(reason) => self.refuse(&reason),
        }
        Ok(())
    }

    fn begin_replacing(&mut self, source: Arc<str>) -> Result<Answer, String> {
        if self.replacement.is_some() {
            return Err("a replacement has begun already; `commit` or `abort` it first".to_owned());
        }
        self.replacement = Some(Replacement::begin(self.shared, source)?);
        Ok(Answer::ok())
    }

    fn refuse(&mut self, reason: &str) {
        self.shared.lock().refuse(reason);
        protocol::write(&Answer::refused(reason), &mut self.answers);
    }

    /// Sends the answers.
    async fn send(&mut self) -> io::Result<()> {
        send(&mut self.answers, &mut self.writer).await
    }
}

/// Sends answers to a client that reads them in time.
///
/// # Errors
/// If it does not, or is gone.
async fn send(answers: &mut Vec<u8>, writer: &mut OwnedWriteHalf) -> io::Result<()> {
    timeout(PATIENCE, writer.write_all(answers)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    answers.clear();
    Ok(())
}
