//! How long a scrape takes, by the number of groups, compared with copying as many bytes and with the client library.

use std::{
    hint::black_box,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pping::{
    groups::SeriesName,
    http::{Readiness, Server},
    metrics::{Encoding, Metrics, Text},
};
use pping_common::abi::Tally;
use prometheus_client::{
    encoding::text,
    metrics::{family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::{measure::Figure, networks::slices, report::Report};

/// The numbers of groups.
const GROUPS: [u32; 3] = [100, 1_000, 16_384];

/// Scrapes of each kind, of which the median is reported.
const ROUNDS: usize = 9;

/// How long a scrape with the highest number of groups may take.
const LIMIT: Duration = Duration::from_millis(200);

/// Measures scrapes, in memory and by HTTP, and whether they delay the agent.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    println!("\na scrape, by the number of groups (one series each); median of {ROUNDS}");
    println!("groups    lines      bytes    gzip   page  gzip'd    HTTP  gzip'd  copying  client library");
    for groups in GROUPS {
        one(groups, report)?;
    }
    Ok(())
}

fn one(groups: u32, report: &mut Report) -> Result<()> {
    let slices = slices(groups, 0);
    let metrics = Metrics::new(groups, Duration::from_mins(10));
    for _ in 0..20 {
        metrics.add(&slices, Instant::now());
    }
    let fresh = |encoding| {
        // Without a change, the previous page would be served.
        metrics.add(&slices[..1], Instant::now());
        metrics.page(Text::Classic, encoding)
    };
    let (plain, compressed) = (fresh(Encoding::Identity)?, fresh(Encoding::Gzip)?);
    let page = time(|| fresh(Encoding::Identity).map(drop).map_err(Into::into))?;
    let gzip = time(|| fresh(Encoding::Gzip).map(drop).map_err(Into::into))?;

    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::start(anywhere, None, metrics.clone(), Readiness::default())?;
    let address = server.address();
    let http = |encoding| {
        time(|| {
            metrics.add(&slices[..1], Instant::now());
            get(address, encoding).map(drop)
        })
    };
    let (by_http, by_http_gzip) = (http("identity")?, http("gzip")?);

    let text = plain.text();
    let copying = time(|| {
        black_box(text.as_bytes().to_vec());
        Ok(())
    })?;
    let client = client_library(&slices)?;
    for (name, figure) in [
        ("a page", &page),
        ("a page, gzipped", &gzip),
        ("by HTTP", &by_http),
        ("by HTTP, gzipped", &by_http_gzip),
        ("copying as many bytes", &copying),
        ("the client library", &client),
    ] {
        report.take(format!("a scrape of {groups} groups: {name}"), "ms", figure);
    }
    let [page, gzip, by_http, by_http_gzip, copying, client] =
        [page, gzip, by_http, by_http_gzip, copying, client].map(|figure| figure.median);
    println!(
        "{groups:>6} {:>8} {:>11} {:>7} {page:>6.1} {gzip:>7.1} {by_http:>7.1} {by_http_gzip:>7.1} {copying:>8.1} {client:>15.1}",
        text.lines().count(),
        plain.bytes(),
        compressed.bytes(),
    );
    let worst = by_http.max(by_http_gzip);
    if groups == GROUPS[GROUPS.len() - 1] {
        let undisturbed = time(|| {
            metrics.add(&slices, Instant::now());
            Ok(())
        })?;
        let longest = disturbance(&metrics, &slices, address)?.as_secs_f64() * 1e3;
        report.take(format!("taking {groups} series"), "ms", &undisturbed);
        report.take_one(
            format!("taking {groups} series while pages are written, the most"),
            "ms",
            longest,
        )?;
        println!(
            "\nthe slowest scrape takes {worst:.0} ms ({} ms are asked for). Taking {groups} series takes {:.1} ms, and while \
             pages are written without a pause {:.1} ms at most.",
            LIMIT.as_millis(),
            undisturbed.median,
            longest,
        );
    }
    Ok(())
}

/// The longest delay of adding samples to the metrics, with scrapers that never pause.
fn disturbance(metrics: &Metrics, slices: &[(SeriesName, Tally)], address: SocketAddr) -> Result<Duration> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for encoding in ["identity", "gzip"] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    get(address, encoding).ok();
                }
            });
        }
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(300));
            let begin = Instant::now();
            metrics.add(slices, begin);
            longest = longest.max(begin.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        Ok(longest)
    })
}

/// How long the client library takes to write the histograms alone.
fn client_library(slices: &[(SeriesName, Tally)]) -> Result<Figure> {
    let bounds: fn() -> Histogram = || Histogram::new((0..=24).map(|octave| f64::from(1 << octave) / 1e6));
    let family = Family::<Vec<(&'static str, String)>, Histogram, _>::new_with_constructor(bounds);
    let mut registry = Registry::default();
    registry.register_with_unit("pping_rtt", "Round-trip times", Unit::Seconds, family.clone());
    for (name, _) in slices {
        let labels = vec![
            ("interface", "eth0".to_owned()),
            ("method", "tcp-ts".to_owned()),
            ("matched", "ingress".to_owned()),
            ("group", name.group.label.to_string()),
        ];
        family.get_or_create(&labels).observe(0.02);
    }
    time(|| {
        let mut written = String::new();
        text::encode(&mut written, &registry)?;
        black_box(written);
        Ok(())
    })
}

/// Scrapes once, and returns the length of the response.
fn get(address: SocketAddr, encoding: &str) -> Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: pping\r\nAccept-Encoding: {encoding}\r\nConnection: close\r\n\r\n"
    )?;
    let (mut part, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        match stream.read(&mut part)? {
            0 => break,
            read => bytes += read,
        }
    }
    ensure!(bytes > 1_000, "no page of metrics");
    Ok(bytes)
}

/// How many milliseconds `run` takes.
fn time(mut run: impl FnMut() -> Result<()>) -> Result<Figure> {
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let begin = Instant::now();
        run()?;
        // The first round warms up.
        if round > 0 {
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    Figure::of(times)
}
