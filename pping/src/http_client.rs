//! Requests to HTTP servers.
//!
//! Each request has a connection of its own, so that a server may move, restart or be one of several behind a name.

use std::{
    error::Error,
    io::{self, ErrorKind},
    iter,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig,
    pki_types::{InvalidDnsNameError, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;

use crate::{foreign_text::is_harmful, trust};

/// The longest that a request may take, from the lookup of the host to the end of the answer. It is the default of
/// OpenTelemetry, too.
const TIME_OUT: Duration = Duration::from_secs(10);

/// The longest message of a server that is shown, characters.
const MAX_MESSAGE: usize = 200;

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// An answer. A server may send its head and then fail with the body.
pub(crate) type Answer = Response<Result<Bytes, NoBody>>;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no connection.
    Connection(io::Error),
    /// There is no connection yet.
    LateConnection,
    /// There is no secure connection.
    Tls(io::Error),
    /// The server did not answer, or not by HTTP.
    Exchange(hyper::Error),
    /// There is no answer yet.
    Late,
}

/// Why there is no body.
#[derive(Debug)]
pub(crate) enum NoBody {
    /// It is longer than the caller wants.
    TooLong,
    /// The reason, in words.
    BrokenOff(String),
}

impl Server {
    /// Makes a server to ask by TLS, if there is a configuration for it.
    ///
    /// # Errors
    /// If the host cannot be that of a certificate.
    pub(crate) fn new(
        host: String,
        port: u16,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<Self, InvalidDnsNameError> {
        let name = |config| Ok((config, ServerName::try_from(host.clone())?));
        Ok(Self { tls: tls.map(name).transpose()?, host, port })
    }

    /// The host, without brackets, and the port.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Sends a request, and reads an answer of at most `longest` bytes.
    ///
    /// # Errors
    /// If there is no answer.
    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>, longest: usize) -> Result<Answer, Failure> {
        let deadline = Instant::now() + TIME_OUT;
        let addresses = timeout_at(deadline, lookup_host(self.address())).await;
        let addresses = addresses.map_err(|_| Failure::LateConnection)?.map_err(Failure::Connection)?;
        let stream = connect(&addresses.collect::<Vec<_>>(), deadline).await?;
        let Some((config, name)) = &self.tls else {
            return exchange(stream, request, longest, deadline).await;
        };
        let secured = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream);
        let stream = timeout_at(deadline, secured).await.map_err(|_| Failure::Late)?.map_err(Failure::Tls)?;
        exchange(stream, request, longest, deadline).await
    }
}

/// Connects to the first address that accepts. The time until the deadline is divided among the addresses, so that a silent
/// one does not keep the next from being tried.
async fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Failure> {
    let mut failure = Failure::Connection(io::Error::new(ErrorKind::NotFound, "the name has no address"));
    for (left, address) in (1..=addresses.len() as u32).rev().zip(addresses) {
        let now = Instant::now();
        let end = now + deadline.saturating_duration_since(now) / left;
        failure = match timeout_at(end, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => Failure::Connection(error),
            Err(_) => Failure::LateConnection,
        };
    }
    Err(failure)
}

/// Sends a request. If the head of the answer comes before the deadline and the body does not, the head counts.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    longest: usize,
    deadline: Instant,
) -> Result<Answer, Failure> {
    let handshake = timeout_at(deadline, http1::handshake(TokioIo::new(stream))).await;
    let (mut sender, connection) = handshake.map_err(|_| Failure::Late)?.map_err(Failure::Exchange)?;
    // Dropping the set ends the task, however this function returns.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let answer = timeout_at(deadline, sender.send_request(request)).await.map_err(|_| Failure::Late)?;
    let (head, body) = match answer {
        Ok(answer) => answer.into_parts(),
        // The connection's error says more than the request's.
        Err(error) => match driver.join_next().await {
            Some(Ok(Err(end))) => return Err(Failure::Exchange(end)),
            _ => return Err(Failure::Exchange(error)),
        },
    };
    let body = match timeout_at(deadline, Limited::new(body, longest).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(NoBody::TooLong),
        Ok(Err(error)) => Err(NoBody::BrokenOff(error.to_string())),
        Err(_) => Err(NoBody::BrokenOff(format!("no end within {} s", TIME_OUT.as_secs()))),
    };
    Ok(Response::from_parts(head, body))
}

impl Failure {
    /// Says why there is no answer. `option` names the file of authorities to trust.
    pub(crate) fn in_words(&self, option: &str) -> String {
        match self {
            Self::Connection(error) => error.to_string(),
            Self::Tls(error) => trust::reason(error, option).unwrap_or_else(|| with_causes(error)),
            // A server refuses a client's certificate only after the handshake.
            Self::Exchange(error) => trust::reason(error, option).unwrap_or_else(|| with_causes(error)),
            Self::LateConnection | Self::Late => format!("no answer within {} s", TIME_OUT.as_secs()),
        }
    }

    /// Whether certificates, or what else belongs to TLS, are at fault.
    #[cfg(feature = "otlp")]
    pub(crate) fn is_of_tls(&self) -> bool {
        match self {
            Self::Tls(_) => true,
            Self::Exchange(error) => trust::reason(error, "").is_some(),
            Self::Connection(_) | Self::LateConnection | Self::Late => false,
        }
    }
}

/// Escapes harmful characters in a server's message, and cuts it to [`MAX_MESSAGE`]: it is part of a line of the log or of an
/// error.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.chars().take(MAX_MESSAGE);
    text.flat_map(|it| if is_harmful(it) { it.escape_default().collect() } else { vec![it] }).collect()
}

/// Formats an error with its causes, because the outermost one may say nothing by itself.
fn with_causes(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddrV4, TcpListener},
        os::fd::AsRawFd as _,
    };

    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket,
    };

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn the_head_of_an_answer_counts_even_if_the_body_never_ends() {
        const HEAD: &[u8] =
            b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 100\r\nContent-Length: 10\r\n\r\nand";
        let (client, mut server) = duplex(4096);
        let server = tokio::spawn(async move {
            assert!(server.read(&mut [0; 1024]).await.unwrap() > 0);
            server.write_all(HEAD).await.unwrap();
            server
        });
        let soon = Instant::now() + Duration::from_millis(300);
        let answer = exchange(client, Request::new(Full::default()), 100, soon).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (429, &"100".parse().unwrap())
        );
        assert!(matches!(answer.into_body(), Err(NoBody::BrokenOff(_))));
        drop(server.await.unwrap());
    }

    #[test]
    fn messages_of_a_server_are_escaped_and_cut() {
        assert_eq!(escaped("no\nway\u{1b}[2J\u{202e}"), "no\\nway\\u{1b}[2J\\u{202e}");
        assert_eq!(escaped(&"a".repeat(5_000)).len(), MAX_MESSAGE);
    }

    #[tokio::test]
    async fn a_silent_address_leaves_time_for_the_next() {
        let silent = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
        bind(silent.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))).unwrap();
        listen(&silent, Backlog::new(0).unwrap()).unwrap();
        let name: SockaddrIn = getsockname(silent.as_raw_fd()).unwrap();
        let silent_address = SocketAddr::from((Ipv4Addr::LOCALHOST, name.port()));
        // The one connection that has room. A SYN after it gets no answer.
        let _first = TcpStream::connect(silent_address).await.unwrap();
        // The listener is gone at once.
        let refuses = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let accepts = listener.local_addr().unwrap();

        let deadline = Instant::now() + Duration::from_secs(3);
        let stream = connect(&[silent_address, refuses, accepts], deadline).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), accepts);
        let soon = Instant::now() + Duration::from_millis(100);
        assert!(matches!(connect(&[silent_address], soon).await, Err(Failure::LateConnection)));
        assert!(matches!(connect(&[], deadline).await, Err(Failure::Connection(_))));
    }
}
