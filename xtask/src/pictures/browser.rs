//! Pictures of the page, by a browser without a window.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use pping_lab::Namespace;

/// Widths and heights, in CSS pixels.
const PICTURES: [(&str, &str, &str); 2] =
    [("page-light.png", "1280,900", "light"), ("page-dark.png", "1280,900", "dark")];

/// The time that the page has to load and draw, ms.
const SETTLED: u32 = 8_000;

/// Writes pictures of a page to `folder`.
pub(super) fn pictures(host: &Namespace, url: &str, folder: &Path) -> Result<()> {
    for (name, size, scheme) in PICTURES {
        let file = folder.join(name);
        let profile = tempfile::tempdir()?;
        let mut chromium = host.command("chromium");
        chromium.args(["--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"]);
        chromium.arg(format!("--user-data-dir={}", profile.path().display()));
        chromium.arg(format!("--window-size={size}"));
        chromium.arg(format!("--timeout={SETTLED}"));
        if scheme == "dark" {
            chromium.arg("--blink-settings=preferredColorScheme=0");
        }
        chromium.arg(format!("--screenshot={}", file.display())).arg(url);
        pping_lab::run(&mut chromium)?;
        ensure!(fs::metadata(&file)?.len() > 10_000, "{name}: the page is empty");
    }
    Ok(())
}
