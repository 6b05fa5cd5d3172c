//! `cargo xtask pictures`: takes the pictures in the README and in docs.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pping_lab::Namespace;
use serde_json::json;

use super::{ADDRESS, Scene, browser::Browser, play, terminal::Terminal};

/// Columns and rows of the terminal.
const SIZE: (u16, u16) = (118, 32);

/// Names of files, and the colour scheme that the user prefers.
const PAGES: [(&str, &str); 2] = [("page-light.png", "light"), ("page-dark.png", "dark")];

/// How long a screen may take to be drawn, and a page to load.
const SETTLED: Duration = Duration::from_secs(4);

/// A picture of a page without figures is smaller, in bytes.
const LEAST: u64 = 80_000;

/// Lets traffic pass for `length`, and writes pictures of what `pping` shows into `folder`.
pub(super) fn take(pping: &Path, length: Duration, folder: &Path) -> Result<()> {
    play(pping, |scene| {
        eprintln!("traffic passes for {} s", length.as_secs());
        if !scene.rest(length) {
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        of_terminal(scene, folder)?;
        of_page(scene.router, folder)
    })
}

fn of_terminal(scene: &Scene<'_>, folder: &Path) -> Result<()> {
    let terminal = Terminal::start(scene.router, SIZE, &format!("{} top", scene.pping.display()))?;
    for (file, key) in [("top.svg", "1"), ("top-heatmap.svg", "3")] {
        terminal.keys(&[key])?;
        thread::sleep(SETTLED);
        fs::write(folder.join(file), terminal.svg()?)?;
    }
    Ok(())
}

fn of_page(router: &Namespace, folder: &Path) -> Result<()> {
    let browser = Browser::start(router)?;
    let size = json!({"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.protocol("Emulation.setDeviceMetricsOverride", &size)?;
    for (name, scheme) in PAGES {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        browser.protocol("Emulation.setEmulatedMedia", &json!({"features": [feature]}))?;
        browser.open(&format!("http://{ADDRESS}/"))?;
        thread::sleep(SETTLED);
        let picture = browser.protocol("Page.captureScreenshot", &json!({"format": "png"}))?;
        let (encoded, file) = (folder.join("picture.base64"), folder.join(name));
        fs::write(&encoded, picture["data"].as_str().context("no picture")?)?;
        let decoded = Command::new("base64").arg("-d").arg(&encoded).output()?;
        fs::remove_file(encoded)?;
        fs::write(&file, decoded.stdout)?;
        ensure!(fs::metadata(&file)?.len() > LEAST, "{name}: the page is empty");
    }
    Ok(())
}
