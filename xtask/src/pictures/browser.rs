//! Pictures of the page, by a browser without a window and its driver (W3C `WebDriver`).

use std::{fs, path::Path, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pping_lab::{Namespace, Process};
use serde_json::{Value, json};

const DRIVER: &str = "http://127.0.0.1:9515";

/// Names of files, and the colours that the user prefers.
const PICTURES: [(&str, &str); 2] = [("page-light.png", "light"), ("page-dark.png", "dark")];

/// The time that the driver has to start, and the page to load and draw.
const SETTLED: Duration = Duration::from_secs(4);

/// A picture of a page without figures has fewer bytes.
const LEAST: u64 = 80_000;

/// Writes pictures of a page to `folder`.
pub(super) fn pictures(host: &Namespace, url: &str, folder: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut driver = host.command("chromedriver");
    // Chromium leaves some of its files behind.
    driver.envs(["TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map(|name| (name, directory.path())));
    driver.arg("--port=9515");
    let _driver = Process::spawn(driver)?;
    thread::sleep(SETTLED);
    let options =
        json!({"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]});
    let wanted =
        json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}});
    let session = request(host, "/session", &wanted)?;
    let session = format!("/session/{}", session["sessionId"].as_str().context("no session")?);
    let taken = take(host, &session, url, folder);
    // Has the driver end the browser, whatever has failed.
    pping_lab::run(host.command("curl").args(["-sS", "-X", "DELETE", &format!("{DRIVER}{session}")]))?;
    taken
}

fn take(host: &Namespace, session: &str, url: &str, folder: &Path) -> Result<()> {
    let protocol = |command: &str, parameters: Value| {
        request(host, &format!("{session}/goog/cdp/execute"), &json!({"cmd": command, "params": parameters}))
    };
    protocol(
        "Emulation.setDeviceMetricsOverride",
        json!({"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
    )?;
    for (name, scheme) in PICTURES {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        protocol("Emulation.setEmulatedMedia", json!({"features": [feature]}))?;
        request(host, &format!("{session}/url"), &json!({"url": url}))?;
        thread::sleep(SETTLED);
        let picture = protocol("Page.captureScreenshot", json!({"format": "png"}))?;
        let (encoded, file) = (folder.join("picture.base64"), folder.join(name));
        fs::write(&encoded, picture["data"].as_str().context("no picture")?)?;
        let decoded = Command::new("base64").arg("-d").arg(&encoded).output()?;
        fs::remove_file(encoded)?;
        fs::write(&file, decoded.stdout)?;
        ensure!(fs::metadata(&file)?.len() > LEAST, "{name}: the page is empty");
    }
    Ok(())
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
