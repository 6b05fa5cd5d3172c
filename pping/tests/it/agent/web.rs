//! `--listen` as the network sees it: who may connect, and what hostile clients can do.

pub(super) mod certificates;
mod hostile;
mod limits;
mod names;
pub(super) mod passwords;
pub(super) mod privileges;
mod scraped;
mod self_signed;
mod stop;
mod tls;
mod wrong;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use pping::{
    groups::{GroupName, SeriesName},
    http::{Access, Contents, Readiness, Server},
    metrics::Metrics,
    recent::{self, RecentHistory},
};
use pping_common::{method::Method, parse::Direction, series::SeriesCounts};
use pping_lab::Namespace;
use tempfile::TempDir;

/// A metrics server in this process.
struct Served {
    server: Server,
    metrics: Metrics,
    directory: TempDir,
}

impl Served {
    /// Starts a server with this web configuration. `prepare` creates the files that it names.
    fn new(web_config: &str, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let file = directory.path().join("web.yml");
        fs::write(&file, web_config).unwrap();
        Self::start(Access { web_config: Some(file), names: Vec::new() }, directory)
    }

    /// Starts a server without a web configuration.
    fn plain() -> Self {
        Self::start(Access::default(), tempfile::tempdir().unwrap())
    }

    fn start(access: Access, directory: TempDir) -> Self {
        let metrics = Metrics::new(u32::MAX, Duration::from_mins(10));
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::start(
            anywhere,
            access,
            Contents::new(metrics.clone(), RecentHistory::new(recent::MEMORY), Readiness::default()),
        )
        .unwrap_or_else(|error| panic!("{error}"));
        Self { server, metrics, directory }
    }

    /// Has the server read the web configuration in this file.
    fn reload(&self, name: &str) {
        self.server.reload(Access { web_config: Some(self.file(name)), names: Vec::new() });
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://localhost:{}{path}", self.server.address().port())
    }

    /// Runs curl with a line of options, in which `@` stands for the directory.
    fn curl(&self, options: &str, url: &str) -> Reply {
        let directory = format!("{}/", self.directory.path().display());
        curl(Command::new("curl"), &options.replace('@', &directory), url)
    }

    /// Makes the page large: some kilobytes for each group. Each call changes the page.
    fn measure(&self, groups: u32) {
        let all_counts: Vec<_> = (0..groups).map(counts_of).collect();
        self.metrics.add(&all_counts, Instant::now());
    }
}

fn counts_of(number: u32) -> (SeriesName, SeriesCounts) {
    let group = GroupName::named(&Ipv4Addr::from(number).to_string());
    let name = SeriesName {
        interface: Some("eth0".into()),
        method: Method::TcpTs,
        matched: Some(Direction::Ingress),
        side: None,
        group: Arc::new(group),
    };
    let mut counts = SeriesCounts::EMPTY;
    counts.sample(10_000_000, 0);
    (name, counts)
}

/// The result of curl.
#[derive(Debug)]
struct Reply {
    /// The HTTP status; 0 if there was no answer.
    status: u16,
    /// The whole output of curl, headers first.
    text: String,
}

/// Runs curl with a line of options. No option may contain a space.
fn curl(mut curl: Command, options: &str, url: &str) -> Reply {
    curl.args(["-sSi", "--noproxy", "*", "--max-time", "60", "--write-out", "\nstatus %{http_code}"]);
    let output = curl
        .args(options.split_whitespace())
        .arg(url)
        .output()
        .expect("this test needs curl, which `cargo xtask setup --tests` installs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, status) = text.rsplit_once("\nstatus ").expect("the status that curl writes");
    let status = status.parse().unwrap();
    Reply { status, text: text + &String::from_utf8_lossy(&output.stderr) }
}

/// Like [`curl`], run on a host.
fn curl_from(host: &Namespace, options: &str, url: &str) -> Reply {
    curl(host.command("curl"), options, url)
}
