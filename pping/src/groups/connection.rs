//! A connection to the groups socket.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use super::protocol::{Answer, Listed, Request};

/// The requests that are sent before the answers are read. They fit into the buffers of the kernel.
pub(crate) const AT_A_TIME: usize = 200;

/// Why a client of the groups socket failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The groups socket cannot be reached.
    #[error("--socket {}: {reason}", path.display())]
    Connect {
        /// Its path.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The connection broke.
    #[error("--socket {}: the connection to pping broke: {reason}", path.display())]
    Broken {
        /// Its path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// pping refused a request.
    #[error("{0}")]
    Refused(String),
}

/// A connection to the groups socket.
pub(crate) struct Connection {
    path: PathBuf,
    reader: BufReader<UnixStream>,
}

impl Connection {
    /// Connects. pping may take as long as `patience` for an answer.
    ///
    /// # Errors
    /// If nobody listens there, or others than the user may connect.
    pub(crate) fn open(path: &Path, patience: Duration) -> Result<Self, Error> {
        let connected = || -> io::Result<UnixStream> {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            Ok(stream)
        };
        let stream = connected().map_err(|error| {
            let reason = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    format!("{error}; is pping running with --groups-socket? Name its socket with --socket")
                }
                io::ErrorKind::PermissionDenied => {
                    format!("{error}; only the user and the group of the socket may connect: run this as one of them (sudo -u pping)")
                }
                _ => error.to_string(),
            };
            Error::Connect { path: path.to_owned(), reason }
        })?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(stream) })
    }

    /// Sends a request, and returns its answer.
    ///
    /// # Errors
    /// If the request is refused, or the connection breaks.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Answer, Error> {
        self.send(std::slice::from_ref(request))?;
        let line = self.line()?;
        self.answer(&line)
    }

    /// Sends requests, and returns their answers.
    ///
    /// # Errors
    /// The first refusal, or if the connection breaks.
    pub(crate) fn ask_all(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Error> {
        let mut answers = Vec::with_capacity(requests.len());
        for requests in requests.chunks(AT_A_TIME) {
            for answer in self.exchange(requests)? {
                answers.push(answer.map_err(Error::Refused)?);
            }
        }
        Ok(answers)
    }

    /// Sends at most [`AT_A_TIME`] requests, and returns for each of them its answer, or why it was refused.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(crate) fn exchange(&mut self, requests: &[Request]) -> Result<Vec<Result<Answer, String>>, Error> {
        self.send(requests)?;
        let mut answers = Vec::with_capacity(requests.len());
        for _ in requests {
            let line = self.line()?;
            answers.push(match self.answer(&line) {
                Err(Error::Refused(reason)) => Err(reason),
                answer => Ok(answer?),
            });
        }
        Ok(answers)
    }

    /// Sends a request to list, and passes each line to `take`.
    ///
    /// # Errors
    /// Those of `take`, or if the request is refused or the connection breaks.
    pub(crate) fn list<E: From<Error>>(
        &mut self,
        request: &Request,
        mut take: impl FnMut(&str, Listed) -> Result<(), E>,
    ) -> Result<(), E> {
        self.send(std::slice::from_ref(request))?;
        loop {
            let line = self.line()?;
            match serde_json::from_str(&line) {
                Ok(listed) => take(&line, listed)?,
                Err(_) => return Ok(self.answer(&line).map(|_| ())?),
            }
        }
    }

    fn send(&mut self, requests: &[Request]) -> Result<(), Error> {
        let mut lines = Vec::new();
        for request in requests {
            request.write(&mut lines);
        }
        let sent = self.reader.get_mut().write_all(&lines);
        sent.map_err(|error| self.said_at_last().unwrap_or_else(|| self.broken(error.to_string())))
    }

    /// Why pping closed the connection, if it said so.
    fn said_at_last(&mut self) -> Option<Error> {
        let line = self.line().ok()?;
        self.answer(&line).err()
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err(self.broken("it was closed".to_owned())),
            Ok(_) => {
                line.truncate(line.trim_end().len());
                Ok(line)
            }
            Err(error) => Err(self.broken(error.to_string())),
        }
    }

    fn answer(&self, line: &str) -> Result<Answer, Error> {
        let answer: Answer = serde_json::from_str(line)
            .map_err(|error| self.broken(format!("an answer cannot be read: {error}")))?;
        match answer.error {
            Some(reason) => Err(Error::Refused(reason)),
            None => Ok(answer),
        }
    }

    fn broken(&self, reason: String) -> Error {
        Error::Broken { path: self.path.clone(), reason }
    }
}
