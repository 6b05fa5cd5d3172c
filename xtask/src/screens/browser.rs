//! A browser without a window, by its driver (W3C `WebDriver`).

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{Namespace, Process};
use serde_json::{Value, json};
use tempfile::TempDir;

const DRIVER: &str = "http://127.0.0.1:9515";

/// The time that the driver has to start.
const START: Duration = Duration::from_secs(4);

/// It ends with this.
pub(super) struct Browser<'a> {
    host: &'a Namespace,
    session: String,
    driver: Process,
    /// Chromium leaves some of its files behind.
    _directory: TempDir,
}

impl<'a> Browser<'a> {
    /// Starts it on a host.
    pub(super) fn start(host: &'a Namespace) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut driver = host.command("chromedriver");
        driver.envs(["TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, directory.path())));
        driver.arg("--port=9515");
        let driver = Process::spawn(driver)?;
        thread::sleep(START);
        let options = json!({"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]});
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}});
        let session = request(host, "/session", &wanted)?;
        let session = format!("/session/{}", session["sessionId"].as_str().context("no session")?);
        Ok(Self { host, session, driver, _directory: directory })
    }

    /// Loads a page.
    pub(super) fn open(&self, url: &str) -> Result<()> {
        request(self.host, &format!("{}/url", self.session), &json!({"url": url})).map(drop)
    }

    /// What a script returns.
    pub(super) fn script(&self, script: &str) -> Result<Value> {
        let body = json!({"script": script, "args": []});
        request(self.host, &format!("{}/execute/sync", self.session), &body)
    }

    /// The result of a command of Chromium's own protocol.
    pub(super) fn protocol(&self, command: &str, parameters: &Value) -> Result<Value> {
        let body = json!({"cmd": command, "params": parameters});
        request(self.host, &format!("{}/goog/cdp/execute", self.session), &body)
    }

    /// The process of the driver, whose children are the browser's.
    pub(super) fn id(&self) -> u32 {
        self.driver.id()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // Has the driver end the browser, which would stay without it.
        let mut curl = self.host.command("curl");
        curl.args(["-sS", "-X", "DELETE", &format!("{DRIVER}{}", self.session)]);
        curl.output().ok();
    }
}

/// A request to the driver, and the value that it answers with.
fn request(host: &Namespace, path: &str, body: &Value) -> Result<Value> {
    let mut curl = host.command("curl");
    curl.args([
        "-sS",
        "-H",
        "Content-Type: application/json",
        "-d",
        &body.to_string(),
        &format!("{DRIVER}{path}"),
    ]);
    let answer: Value = serde_json::from_str(&pping_lab::run(&mut curl)?)?;
    ensure!(answer["value"]["error"].is_null(), "{path}: {answer}");
    Ok(answer["value"].clone())
}
