//! A receiver of OTLP that comes and goes, and sometimes fails.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use pping_lab::Namespace;

use super::{findings::Findings, load::rest};

/// Where the receiver listens, on the router.
pub(super) const ADDRESS: &str = "127.0.0.1:4318";

/// How long the receiver is there with each answer, and how long it is away afterwards. All answers come within the
/// first third of the shortest soak, because memory in that third is compared with memory in the last.
const THERE: Duration = Duration::from_secs(7);
const AWAY: Duration = Duration::from_secs(5);

const TIME_OUT: Duration = Duration::from_secs(2);

/// The answers, one after the other. An empty answer of protobuf means success.
const ANSWERS: [&str; 4] = [
    ACCEPTED,
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
    ACCEPTED,
    "no HTTP\r\n\r\n",
];
const ACCEPTED: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";

/// What became of requests.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Requests that the receiver accepted, and those that it did not.
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    /// How often the receiver went away.
    pub(super) outages: AtomicU64,
}

impl Receiver {
    /// Comes and goes until the soak is over.
    pub(super) fn run(&self, host: &Namespace, findings: &Findings) -> Result<()> {
        for answer in ANSWERS.into_iter().cycle() {
            self.listen(host, answer, findings)?;
            if findings.is_over() {
                return Ok(());
            }
            self.outages.fetch_add(1, Relaxed);
            rest(findings, AWAY);
        }
        Ok(())
    }

    fn listen(&self, host: &Namespace, answer: &str, findings: &Findings) -> Result<()> {
        let listener = host.enter(|| TcpListener::bind(ADDRESS))?.context("the receiver cannot listen")?;
        listener.set_nonblocking(true)?;
        let began = Instant::now();
        while began.elapsed() < THERE && !findings.is_over() {
            match listener.accept() {
                // A client may be ended in the middle of a request.
                Ok((stream, _)) => drop(self.serve(stream, answer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error).context("the receiver cannot accept connections"),
            }
        }
        Ok(())
    }

    /// Reads a request, whatever it contains, and answers it.
    fn serve(&self, mut stream: TcpStream, answer: &str) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIME_OUT))?;
        let (mut request, mut part) = (Vec::new(), [0; 16 << 10]);
        while rest_of(&request).is_none_or(|rest| rest > 0) {
            let read = stream.read(&mut part)?;
            if read == 0 {
                return Ok(());
            }
            request.extend_from_slice(&part[..read]);
        }
        let count = if answer.contains(" 200 ") { &self.accepted } else { &self.refused };
        count.fetch_add(1, Relaxed);
        stream.write_all(answer.as_bytes())
    }
}

/// Returns how many bytes of a request are missing, or `None` while its headers are not complete.
fn rest_of(request: &[u8]) -> Option<usize> {
    let head = request.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    Some((head + length.unwrap_or(0)).saturating_sub(request.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_with_its_body() {
        assert_eq!(rest_of(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n"), None);
        assert_eq!(rest_of(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n123"), Some(2));
        assert_eq!(rest_of(b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345"), Some(0));
        assert_eq!(rest_of(b"GET / HTTP/1.1\r\n\r\n"), Some(0));
    }
}
