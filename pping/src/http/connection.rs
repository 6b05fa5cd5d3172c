//! One connection: one request, one answer, each within a time and a size.

use std::{
    convert::Infallible,
    future::poll_fn,
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

use super::{readers::Reader, site::Site};

/// How long a handshake may take, and a request.
const ASKING: Duration = Duration::from_secs(5);

/// How long it may take from there until the client has all of its answer.
const ANSWERING: Duration = Duration::from_mins(1);

/// How long a client has to read the end of its answer before the connection is closed.
const LINGERING: Duration = Duration::from_secs(1);

/// What request line and headers together may be long, bytes. A token in a header takes some.
const HEAD_BYTES: usize = 16 << 10;

/// How many headers a request may have; Prometheus sends six.
const HEADERS: usize = 64;

/// What is read at most of a request's body, or of whatever comes after it, to get the answer across, bytes.
const DISCARDED: u64 = 256 << 10;

/// Serves a client. `is_answering` is set while an answer is under way.
pub(super) async fn serve(stream: TcpStream, site: Arc<Site>, is_answering: Arc<AtomicBool>) {
    stream.set_nodelay(true).ok();
    let settings = site.web_config.current();
    let Some(tls) = &settings.tls else { return answer(stream, site, is_answering).await };
    match timeout(ASKING, tls.accept(stream)).await {
        Ok(Ok(stream)) => answer(stream, site, is_answering).await,
        Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn answer<S>(stream: S, site: Arc<Site>, is_answering: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let superseded = Arc::new(Notify::new());
    let (reader, flag) = (Reader(Arc::clone(&superseded)), Arc::clone(&is_answering));
    let service = service_fn(move |mut request| {
        flag.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(reader.clone());
        let site = Arc::clone(&site);
        Box::pin(async move { Ok::<_, Infallible>(site.answer(request).await) })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASKING)
        .max_header_size(HEAD_BYTES)
        .max_headers(HEADERS)
        // A scrape every few seconds can afford a connection. Those that wait for a next request cost everybody.
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    let served = timeout(ASKING + ANSWERING, poll_fn(|context| connection.poll_without_shutdown(context)));
    tokio::select! {
        served = served => match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("a request or its answer failed: {error}"),
            Err(_) => return tracing::debug!("a client took too long to read its answer"),
        },
        () = superseded.notified() => return tracing::debug!("a client was too slow to read its page"),
    }
    is_answering.store(false, Ordering::Relaxed);
    linger(connection.into_parts().io.into_inner()).await;
}

/// Ends the stream, and waits a little for the client to do so too. Closing at once, with something unread, would make
/// the system take back what the client has not read yet.
async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) {
    let discard = async {
        stream.shutdown().await.ok();
        copy(&mut stream.take(DISCARDED), &mut sink()).await.ok();
    };
    timeout(LINGERING, discard).await.ok();
}
