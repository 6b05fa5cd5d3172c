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
    http::{Access, Contents, Readiness, Server},
    metrics::{Encoding, Metrics, PageFormat},
    recent::{self, RecentHistory},
};
use pping_common::series::SeriesCounts;

use crate::{client_library, measure::Figure, networks::slices, report::Report};

/// The numbers of groups.
const GROUPS: [u32; 3] = [100, 1_000, 16_384];

/// Scrapes of each kind, of which the median is reported.
const ROUNDS: usize = 9;

/// How long a scrape with the highest number of groups may take.
const LIMIT: Duration = Duration::from_millis(200);

/// The formats, and how a client asks for them.
const FORMATS: [(PageFormat, &str, &str); 3] = [
    (PageFormat::Classic, "classic", "text/plain"),
    (PageFormat::OpenMetrics, "OpenMetrics", "application/openmetrics-text"),
    (
        PageFormat::Protobuf,
        "protobuf",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
    ),
];

/// Measures scrapes, in memory and by HTTP, and whether they delay the agent.
pub(crate) fn measure(report: &mut Report) -> Result<()> {
    println!("\na scrape, by the number of groups (one series each); ms, median of {ROUNDS}");
    println!("groups  format            bytes    gzip   page  gzip'd    HTTP  gzip'd");
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
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::start(
        anywhere,
        Access::default(),
        Contents::new(metrics.clone(), RecentHistory::new(recent::MEMORY), Readiness::default()),
    )?;
    let address = server.address();
    let mut worst = 0.0_f64;
    for (format, name, accept) in FORMATS {
        let fresh = |encoding| {
            // Without a change, the previous page would be served.
            metrics.add(&slices[..1], Instant::now());
            metrics.page(format, encoding)
        };
        let [plain, compressed] =
            [Encoding::Identity, Encoding::Gzip].map(|encoding| fresh(encoding).bytes());
        let by_http = |encoding| {
            time(|| {
                metrics.add(&slices[..1], Instant::now());
                get(address, accept, encoding).map(drop)
            })
        };
        let page = time(|| {
            drop(fresh(Encoding::Identity));
            Ok(())
        })?;
        let gzip = time(|| {
            drop(fresh(Encoding::Gzip));
            Ok(())
        })?;
        let (by_http, by_http_gzip) = (by_http("identity")?, by_http("gzip")?);
        for (what, figure) in [
            ("a page", &page),
            ("a page, gzipped", &gzip),
            ("by HTTP", &by_http),
            ("by HTTP, gzipped", &by_http_gzip),
        ] {
            report.take(format!("a scrape of {groups} groups in {name}: {what}"), "ms", figure);
        }
        let [page, gzip, by_http, by_http_gzip] =
            [page, gzip, by_http, by_http_gzip].map(|figure| figure.median);
        println!(
            "{groups:>6}  {name:<11} {plain:>11} {compressed:>7} {page:>6.1} {gzip:>7.1} {by_http:>7.1} {by_http_gzip:>7.1}"
        );
        worst = worst.max(by_http).max(by_http_gzip);
    }
    let text = metrics.page(PageFormat::Classic, Encoding::Identity).text();
    let copying = time(|| {
        black_box(text.as_bytes().to_vec());
        Ok(())
    })?;
    let groups_of: Vec<_> = slices.iter().map(|(name, _)| name.group.label.to_string()).collect();
    let registry = client_library::registry(groups_of);
    let client = time(|| client_library::write(&registry))?;
    for (name, figure) in [("copying as many bytes as text", &copying), ("the client library", &client)] {
        report.take(format!("a scrape of {groups} groups: {name}"), "ms", figure);
    }
    println!(
        "{groups:>6}  {} lines of text; copying them {:.1}, the client library's text of as many series {:.1}",
        text.lines().count(),
        copying.median,
        client.median,
    );
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
fn disturbance(
    metrics: &Metrics,
    slices: &[(SeriesName, SeriesCounts)],
    address: SocketAddr,
) -> Result<Duration> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for encoding in ["identity", "gzip"] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    get(address, "text/plain", encoding).ok();
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

/// Scrapes once, and returns the length of the response.
fn get(address: SocketAddr, accept: &str, encoding: &str) -> Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nAccept-Encoding: {encoding}\r\nConnection: close\r\n\r\n"
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
