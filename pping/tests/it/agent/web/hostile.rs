//! Clients that hold connections or stall while reading pages do not block other clients.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use pping_lab::{Process, Topology};

use super::{Served, curl_from};
use crate::agent::{
    http::{LISTEN, PORT, is_ready},
    monitor::{PATIENCE, endless_ping, interrupt, ok, topology, wait_until, watch},
};

/// More connections than the server accepts.
const CROWD: usize = 150;

/// The connections that the server accepts at once.
const CONNECTIONS: usize = 64;

/// How long an answer may take on a busy machine under attack. A client's timeout is far longer.
const PROMPT: Duration = Duration::from_secs(5);

const HALF: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: y";

/// Opens many connections and sends `sent` on each.
fn crowd(address: SocketAddr, sent: &[u8]) -> Vec<TcpStream> {
    let one = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may already have closed some of them.
        stream.write_all(sent).ok();
        stream
    };
    (0..CROWD).map(one).collect()
}

/// Reads everything available. Returns true if the server has ended the connection.
fn is_over(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[track_caller]
fn assert_prompt(served: &Served) {
    let start = Instant::now();
    let reply = served.curl("--compressed", &served.url("http", "/metrics"));
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert!(start.elapsed() < PROMPT, "it took {:?}", start.elapsed());
}

#[test]
fn web_endless_requests_block_no_others_and_are_cut_off() {
    let served = Served::plain();
    let mut crowd = crowd(served.server.address(), HALF);
    for _ in 0..10 {
        assert_prompt(&served);
    }
    crowd.retain_mut(|stream| !is_over(stream));
    assert!(crowd.len() <= CONNECTIONS, "{}", crowd.len());
    // A client that sends a little more now and then gets no more time.
    let start = Instant::now();
    loop {
        for stream in &mut crowd {
            stream.write_all(b"y").ok();
        }
        crowd.retain_mut(|stream| !is_over(stream));
        if crowd.is_empty() {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{} connections are still open", crowd.len());
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn web_silent_connections_are_closed() {
    let tls = "tls_server_config: {cert_file: server.pem, key_file: server.key}";
    let encrypted = Served::new(tls, |directory| {
        super::certificates::Authority::new("ours").issue(directory, "server", &["localhost"]);
    });
    for served in [&Served::plain(), &encrypted] {
        let mut crowd = crowd(served.server.address(), b"");
        let start = Instant::now();
        while crowd.iter_mut().any(|stream| !is_over(stream)) {
            assert!(start.elapsed() < PATIENCE, "some are still open");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn web_stalled_readers_block_no_others_and_hold_no_pages() {
    /// The number of pages that the server may keep in memory, including the current page of each format.
    const KEPT: usize = 7;
    let served = Served::plain();
    // Pages larger than the system's send buffers.
    served.measure(8_000);
    let full = crowd(served.server.address(), b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // The newest connections wait until the server has given the first ones a second.
    thread::sleep(Duration::from_secs(2));
    assert_prompt(&served);
    drop(full);

    // Each reader asks for a new page, and stops reading after its beginning.
    let mut readers: Vec<TcpStream> = Vec::new();
    for _ in 0..2 * KEPT {
        served.measure(1);
        let mut reader = TcpStream::connect(served.server.address()).unwrap();
        reader.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        // The page is complete in the server's memory when its first bytes arrive.
        reader.read_exact(&mut [0; 512]).unwrap();
        readers.push(reader);
    }
    let start = Instant::now();
    let complete = |reader: &mut TcpStream| {
        reader.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).is_ok() && rest.ends_with(b"\n") && rest.len() > 20_000_000
    };
    let complete: Vec<bool> = readers.iter_mut().map(complete).collect();
    assert!(complete.iter().filter(|&&it| it).count() <= KEPT, "{complete:?}");
    assert_eq!(complete.last(), Some(&true), "the last after {:?}: {complete:?}", start.elapsed());
}

#[test]
fn web_one_client_cannot_crowd_out_others() {
    let served = Served::plain();
    served.measure(8_000);
    let url = served.url("http", "/metrics").replace("localhost", "127.0.0.1");
    let options = "--interface 127.0.0.2 --limit-rate 2M --output /dev/null --http1.1";
    thread::scope(|scope| {
        // The transfer takes some seconds. The crowd arrives near its beginning.
        let friend = scope.spawn(|| served.curl(options, &url));
        thread::sleep(Duration::from_millis(500));
        for sent in [HALF, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
            let crowd = crowd(served.server.address(), sent);
            thread::sleep(Duration::from_millis(1_200));
            drop(crowd);
        }
        assert!(!friend.is_finished());
        let friend = friend.join().unwrap();
        // curl fails if bytes are missing.
        assert_eq!((friend.status, friend.text.trim()), (200, "status 200"));
    });
}

/// Returns the number of samples written so far. The last line may be incomplete.
fn measured(pping: &Process) -> usize {
    ok(pping.stdout()).matches("\"icmp-echo\"").count()
}

#[test]
fn web_many_connections_do_not_disturb_measuring() {
    let topology = topology();
    let router = topology.router();
    let pping = watch(router, Topology::WAN, &format!("{LISTEN} --rate-limit 0"));
    wait_until("it is ready", || is_ready(router));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let mut crowds = ok(router.enter(|| [crowd(address, HALF), crowd(address, b"")]));
    let _pings = endless_ping(topology.client(), Topology::SERVER_IPV4);
    let metrics = format!("http://127.0.0.1:{PORT}/metrics");
    for _ in 0..5 {
        let before = measured(&pping);
        for stream in crowds.iter_mut().flatten() {
            stream.write_all(b"y").ok();
        }
        let start = Instant::now();
        let reply = curl_from(router, "", &metrics);
        assert!(reply.status == 200 && start.elapsed() < PROMPT, "{:?}: {}", start.elapsed(), reply.text);
        wait_until("more samples", || measured(&pping) > before + 20);
    }
    let stderr = ok(pping.stderr());
    interrupt(pping);
    assert!(!stderr.contains("lost"), "{stderr}");
}
