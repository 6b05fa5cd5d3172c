//! Chromium, controlled by chromedriver: over W3C `WebDriver`, and over Chromium's debugging protocol for what
//! `WebDriver` lacks.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use pping_lab::{Namespace, Process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::monitor::{PATIENCE, ok, wait_until};

const PORT: u16 = 9515;

/// How long the driver may take to answer.
const TIME_OUT: Duration = Duration::from_mins(1);

/// The key under which the protocol refers to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys without letters, in `WebDriver`'s encoding.
pub(super) const TAB: &str = "\u{e004}";
pub(super) const ENTER: &str = "\u{e007}";
pub(super) const ESCAPE: &str = "\u{e00c}";
pub(super) const LEFT: &str = "\u{e012}";
pub(super) const RIGHT: &str = "\u{e014}";
pub(super) const DOWN: &str = "\u{e015}";

/// A browser in a network namespace. It ends on drop.
pub(super) struct Browser<'a> {
    host: &'a Namespace,
    session: String,
    _driver: Process,
    /// Removed after the driver has ended.
    _directory: TempDir,
}

impl<'a> Browser<'a> {
    /// Starts a browser without a window.
    pub(super) fn start(host: &'a Namespace) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = host.command("chromedriver");
        // Chromium leaves some of its files behind, so they go into this directory.
        command.envs(["TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, directory.path())));
        command.arg(format!("--port={PORT}"));
        let driver = Process::spawn(command).unwrap_or_else(|error| {
            panic!("chromedriver, which `cargo xtask setup --tests` installs: {error}")
        });
        let mut browser = Self { host, session: String::new(), _driver: driver, _directory: directory };
        wait_until("the driver of Chromium listens", || {
            ok(host.enter(|| TcpStream::connect(address()))).is_ok()
        });
        let arguments = [
            "--headless=new",
            // The tests run as root, and Chromium's own sandbox refuses to.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            // Chromium's requests to its vendor have nothing to do with the page.
            "--disable-background-networking",
            "--no-first-run",
        ];
        let session = browser.request(
            "POST",
            "/session",
            &json!({"capabilities": {"alwaysMatch": {
                "browserName": "chrome",
                "goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {"args": arguments},
            }}}),
        );
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        browser
    }

    /// Sends a request to the driver, and returns the value in its answer.
    #[track_caller]
    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let answer = ok(self.host.enter(|| exchange(method, path, &body)));
        let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        let answer: Value =
            serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"));
        assert!(answer["value"]["error"].is_null(), "{path} {body:.200}: {answer:#}");
        answer["value"].clone()
    }

    #[track_caller]
    fn command(&self, path: &str, body: &Value) -> Value {
        self.request("POST", &format!("{}{path}", self.session), body)
    }

    /// Loads a page.
    pub(super) fn open(&self, url: &str) {
        // Without `about:blank`, a link to another fragment of the same page would not reload it.
        self.command("/url", &json!({"url": "about:blank"}));
        self.command("/url", &json!({"url": url}));
    }

    /// Returns the value of an expression in the page.
    #[track_caller]
    pub(super) fn value(&self, expression: &str) -> Value {
        self.command("/execute/sync", &json!({"script": format!("return {expression}"), "args": []}))
    }

    /// Returns the text of the first element that matches a selector.
    #[track_caller]
    pub(super) fn text(&self, selector: &str) -> String {
        let selector = json!(selector);
        let text = self.value(&format!("document.querySelector({selector})?.textContent ?? null"));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Runs a script, and returns the value that a promise resolves to.
    #[track_caller]
    pub(super) fn run(&self, script: &str, promise: &str) -> Value {
        self.command("/execute/sync", &json!({"script": script, "args": []}));
        let awaited =
            format!("const done = arguments[0]; {promise}.then(done, (error) => done(String(error)))");
        self.command("/execute/async", &json!({"script": awaited, "args": []}))
    }

    /// Presses keys one after the other, in the focused element.
    #[track_caller]
    pub(super) fn keys(&self, keys: &[&str]) {
        let press =
            |key: &str| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.iter().flat_map(|key| press(key)).collect();
        self.command(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Clicks on the first element that matches a selector.
    #[track_caller]
    pub(super) fn click(&self, selector: &str) {
        let found = self.command("/element", &json!({"using": "css selector", "value": selector}));
        let id = found[ELEMENT].as_str().unwrap();
        self.command(&format!("/element/{id}/click"), &json!({}));
    }

    /// Sets the width of the window. Its height is enough for a page of some length.
    pub(super) fn resize(&self, width: u32) {
        let metrics = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false});
        self.protocol("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Sets whether the user prefers dark or light colours.
    pub(super) fn prefer(&self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.protocol("Emulation.setEmulatedMedia", &json!({"features": [feature]}));
    }

    /// Sends a command of the debugging protocol.
    #[track_caller]
    pub(super) fn protocol(&self, command: &str, parameters: &Value) -> Value {
        self.command("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Returns the warnings and errors on the console since the last call.
    #[track_caller]
    pub(super) fn console(&self) -> Vec<String> {
        let log = self.command("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().unwrap().iter();
        let loud = entries.filter(|entry| ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap()));
        loud.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until an expression in the page is true, and returns how long that took.
    #[track_caller]
    pub(super) fn wait_for(&self, expression: &str) -> Duration {
        let begin = Instant::now();
        while self.value(&format!("Boolean({expression})")) != true {
            assert!(
                begin.elapsed() < PATIENCE,
                "not {expression}: {}\nconsole: {:#?}",
                self.value("document.body.innerText"),
                self.console()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        begin.elapsed()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // The driver ends the browser, even after a failure.
        if !self.session.is_empty() {
            self.host.enter(|| exchange("DELETE", &self.session, "")).ok();
        }
    }
}

/// Sends a request to the driver, and returns its answer. The driver keeps connections open, so the answer ends by its
/// length.
fn exchange(method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address())?;
    stream.set_read_timeout(Some(TIME_OUT))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost:{PORT}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    String::from_utf8(answer).map_err(io::Error::other)
}

fn address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}
