//! A browser without a window, controlled through its driver (W3C `WebDriver`).

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{Namespace, Process};
use serde_json::{Value, json};
use tempfile::TempDir;

const DRIVER: &str = "http://127.0.0.1:9515";

/// How long the driver gets to start.
const START: Duration = Duration::from_secs(4);

/// A browser. Dropping it ends the browser and the driver.
pub(super) struct Browser<'a> {
    host: &'a Namespace,
    session: String,
    driver: Process,
    /// Chromium leaves some of its files behind.
    _directory: TempDir,
}

impl<'a> Browser<'a> {
    /// Starts the browser on a host.
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

    /// Runs a script and returns its result.
    pub(super) fn script(&self, script: &str) -> Result<Value> {
        let body = json!({"script": script, "args": []});
        request(self.host, &format!("{}/execute/sync", self.session), &body)
    }

    /// Sends a command of Chromium's own protocol and returns its result.
    pub(super) fn protocol(&self, command: &str, parameters: &Value) -> Result<Value> {
        let body = json!({"cmd": command, "params": parameters});
        request(self.host, &format!("{}/goog/cdp/execute", self.session), &body)
    }

    /// Returns the process id of the driver, which starts the browser's processes.
    pub(super) fn id(&self) -> u32 {
        self.driver.id()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // The driver ends the browser, which would go on without it.
        let mut curl = self.host.command("curl");
        curl.args(["-sS", "-X", "DELETE", &format!("{DRIVER}{}", self.session)]);
        curl.output().ok();
    }
}

/// Sends a request to the driver and returns the value of its answer.
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
