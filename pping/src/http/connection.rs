//! A connection: one request and one response, both limited in time and size.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};

use super::{
    client::{ConnectionState, REQUEST_TIMEOUT},
    readers::Reader,
    site::Site,
};

/// How long the server waits for the client to close the connection before it does so itself.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest request line and headers together, bytes. Tokens in headers can be long.
const MAX_HEAD: usize = 16 << 10;

/// The highest number of headers; Prometheus sends six.
const MAX_HEADERS: usize = 64;

/// The most bytes to read and discard after a request, before the connection is closed.
const MAX_DISCARDED: u64 = 256 << 10;

/// Serves a client of this network. `is_responding` is set from the request until the response is written.
pub(super) async fn serve(
    stream: TcpStream,
    network: IpAddr,
    site: Arc<Site>,
    is_responding: Arc<AtomicBool>,
) {
    stream.set_nodelay(true).ok();
    let config = site.web_config.current();
    let Some(tls) = &config.tls else { return respond(stream, network, site, is_responding).await };
    match timeout(REQUEST_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => respond(stream, network, site, is_responding).await,
        Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn respond<S>(stream: S, network: IpAddr, site: Arc<Site>, is_responding: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let superseded = Arc::new(Notify::new());
    let reader = Reader(Arc::clone(&superseded));
    let state = ConnectionState::new(network, Arc::clone(&is_responding));
    let timed_out = state.clone().timed_out();
    let service = service_fn(move |mut request| {
        state.begin_response();
        request.extensions_mut().insert(reader.clone());
        request.extensions_mut().insert(state.clone());
        let site = Arc::clone(&site);
        Box::pin(async move { Ok::<_, Infallible>(site.respond(request).await) })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .max_header_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        // A scrape every few seconds can afford a connection; idle ones would take slots from other clients.
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = poll_fn(|context| connection.poll_without_shutdown(context)) => if let Err(error) = served {
            tracing::debug!("a request or its response failed: {error}");
        },
        () = timed_out => return tracing::debug!("a client took too long to read its response"),
        () = superseded.notified() => return tracing::debug!("closed the connection of a client to make room for others"),
    }
    is_responding.store(false, Ordering::Relaxed);
    linger(connection.into_parts().io.into_inner()).await;
}

/// Shuts the stream down, and waits a little for the client to close. Closing a socket with unread input resets the
/// connection, and the client would lose the end of its response.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let discard = async {
        stream.shutdown().await.ok();
        copy(&mut stream.take(MAX_DISCARDED), &mut sink()).await.ok();
    };
    timeout(LINGER_TIMEOUT, discard).await.ok();
}
